"""What Python knows about each dialect: one file per dialect, one table of all.

The gateway and the adapters look up here how a request of a dialect is read and changed, how one
body is made of its streams, how its errors are written, and who speaks it; cutting itself is
`holdback.wire`'s. A new dialect is one file here (and one in the Rust crate), and a line in the
table.

>>> DIALECTS["gemini"].stop_fields[0]
('generationConfig', 'stopSequences')
>>> dialect_of("/openai/deployments/x/chat/completions"), dialect_of("/v1/models")
('openai.chat', None)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from holdback import wire
from holdback.dialects._spec import Assembly, Large, Spec
from holdback.dialects.anthropic import ANTHROPIC_MESSAGES
from holdback.dialects.cohere import COHERE_CHAT
from holdback.dialects.gemini import GEMINI
from holdback.dialects.llama_cpp import LLAMA_CPP
from holdback.dialects.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from holdback.dialects.openai_chat import OPENAI_CHAT
from holdback.dialects.openai_completions import OPENAI_COMPLETIONS
from holdback.dialects.openai_responses import OPENAI_RESPONSES
from holdback.dialects.tgi import TGI
from holdback.wire import Dialect

__all__ = [
    "DIALECTS",
    "Assembly",
    "Large",
    "Spec",
    "dialect_of",
    "dialects_of",
    "error_status",
    "kin_of",
    "only_reads",
    "placed",
]

_ALL = (
    OPENAI_CHAT,
    OPENAI_COMPLETIONS,
    OPENAI_RESPONSES,
    ANTHROPIC_MESSAGES,
    GEMINI,
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    LLAMA_CPP,
    TGI,
    COHERE_CHAT,
)

DIALECTS: Mapping[Dialect, Spec] = MappingProxyType({spec.name: spec for spec in _ALL})
"""Each dialect's record by its name."""

if tuple(DIALECTS) != wire.DIALECTS:
    raise ImportError("holdback.wire and holdback.dialects do not know the same dialects")

_ENDINGS = sorted(
    ((ending, spec.name) for spec in _ALL for ending in spec.paths if ending != "/"),
    key=lambda entry: -len(entry[0]),
)
_ROOT = next(spec.name for spec in _ALL if "/" in spec.paths)
_BEGINNINGS = sorted(
    ((beginning, spec.name) for spec in _ALL for beginning in spec.other_paths),
    key=lambda entry: -len(entry[0]),
)


def placed(path: str) -> tuple[str, Dialect] | None:
    """The path of a POST as its API writes it, and its dialect; `None` for a path that is none of a
    model's.

    Doubled slashes, one at the end and the case of the known part make no difference, as they make
    none to many servers.

    >>> placed("/v1//Chat/completions/"), placed("/v1/models")
    (('/v1/chat/completions', 'openai.chat'), None)
    """
    path = re.sub("/{2,}", "/", path)
    path = path.rstrip("/") or path[:1]
    if path == "/":
        return path, _ROOT
    for ending, name in _ENDINGS:
        end = path[-len(ending) :]
        if end == ending or (end.isascii() and end.lower() == ending.lower()):
            return path[: -len(ending)] + ending, name
    return None


def dialect_of(path: str) -> Dialect | None:
    """The dialect of a POST to a path, `None` for a path that is none of a model's."""
    found = placed(path)
    return found[1] if found else None


def kin_of(path: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> Dialect | None:
    """The dialect whose API a path belongs to that is not for an answer, by the headers that only
    its clients send, else by how the path begins. `None` for a path of no known API.

    >>> kin_of("/v1/models"), kin_of("/v1/models", [(b"anthropic-version", b"2023-06-01")])
    ('openai.chat', 'anthropic.messages')
    """
    names = {name.lower() for name, _ in headers}
    known = next((name for beginning, name in _BEGINNINGS if path.startswith(beginning)), None)
    if known is None:
        return None
    return next((spec.name for spec in _ALL if names.intersection(spec.headers)), known)


def only_reads(path: str) -> bool:
    """Whether a POST to a path that is not for an answer changes nothing and brings no text.

    >>> only_reads("/v1/embeddings"), only_reads("/v1/files")
    (True, False)
    """
    return any(path.endswith(spec.other_posts) for spec in _ALL)


def dialects_of(provider: str) -> tuple[Dialect, ...] | None:
    """What a provider's systems speak, by its name in `holdback.providers`; `None` if that is not
    known.

    >>> dialects_of("vertex"), dialects_of("bedrock")
    (('gemini',), None)
    """
    return (
        tuple(spec.name for spec in _ALL if provider in (*spec.native_to, *spec.spoken_by)) or None
    )


def error_status(dialect: Dialect, body: Any) -> int:
    """The HTTP status of an error that came inside a stream: that of its `code` or `status` where
    it is a number, else that of its word, else 502.

    >>> error_status("openai.chat", {"error": {"type": "BadRequestError", "code": 400}})
    400
    >>> error_status("anthropic.messages", {"type": "error", "error": {"type": "overloaded_error"}})
    529
    >>> error_status("ollama.chat", {"error": "it broke"})
    502
    """
    inner = body.get("error") if isinstance(body, dict) else None
    fields = {**(body if isinstance(body, dict) else {}), **(inner if type(inner) is dict else {})}
    words = DIALECTS[dialect].error_words
    given = [fields.get(key) for key in ("code", "status", "status_code", "type", "error_type")]
    for value in given:
        number = (
            int(value) if isinstance(value, str) and re.fullmatch("[45][0-9]{2}", value) else value
        )
        if type(number) is int and 400 <= number <= 599:
            return number
    return next((words[word] for word in given if isinstance(word, str) and word in words), 502)
