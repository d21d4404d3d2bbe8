"""What a request to a model asks for, as far as stops are concerned: shared by the adapters that see HTTP requests.

A request is understood by its path and its JSON body. One that is not understood (another path, another shape, stops that cannot be
compiled) is `None` here, and whoever asked passes it on untouched: the provider's own error is better than ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import holdback
from holdback import StopSet, providers
from holdback.wire import Cutter, Dialect

# By the end of the path, because what stands in front differs: /v1, /v1beta/openai, /openai/deployments/x, /proxy/...
_PATHS: tuple[tuple[str, Dialect], ...] = (
    (r"/chat/completions$", "openai.chat"),
    (r"/completions$", "openai.completions"),
    (r"/responses$", "openai.responses"),
    (r"/v1/messages$", "anthropic.messages"),
    (r":(?:streamG|g)enerateContent$", "gemini"),
    (r"/api/chat$", "ollama.chat"),
    (r"/api/generate$", "ollama.generate"),
    (r"/completion$", "llama.cpp"),
    (r"/generate(?:_stream)?$", "tgi"),
)

# Where stops stand in a body, from the outside in. The Responses API has no place for them; `stop` is what people add by hand.
_FIELDS: dict[Dialect, tuple[str, ...]] = {
    "openai.chat": ("stop",),
    "openai.completions": ("stop",),
    "openai.responses": ("stop",),
    "anthropic.messages": ("stop_sequences",),
    "gemini": ("generationConfig", "stopSequences"),
    "ollama.chat": ("options", "stop"),
    "ollama.generate": ("options", "stop"),
    "llama.cpp": ("stop",),
    "tgi": ("parameters", "stop"),
}

# Whose facts hold for a host, and whose are assumed where nothing is known but the dialect.
_HOSTS: tuple[tuple[str, dict[Dialect, str]], ...] = (
    (
        r"^api\.openai\.com$|\.openai\.azure\.com$",
        {"openai.chat": "openai", "openai.completions": "openai.completions"},
    ),
    (r"^api\.anthropic\.com$", {"anthropic.messages": "anthropic"}),
    (r"^generativelanguage\.googleapis\.com$", {"gemini": "gemini"}),
    (r"-?aiplatform\.googleapis\.com$", {"gemini": "vertex"}),
    (r"^api\.deepseek\.com$", {"openai.chat": "deepseek", "openai.completions": "deepseek"}),
    (r"^api\.mistral\.ai$", {"openai.chat": "mistral"}),
    (r"^api\.x\.ai$", {"openai.chat": "xai"}),
)
_ASSUMED: dict[Dialect, str] = {
    "openai.chat": "openai",
    "openai.completions": "openai.completions",
    "openai.responses": "openai.responses",
    "anthropic.messages": "anthropic",
    "gemini": "gemini",
    "ollama.chat": "ollama",
    "ollama.generate": "ollama",
    "llama.cpp": "llama.cpp",
    "tgi": "tgi",
}


@dataclass(frozen=True)
class Exchange:
    """A request whose answer is to be cut."""

    dialect: Dialect
    stops: StopSet
    streams: bool
    choices: int
    skip_chars: int  # of a prompt that is echoed in front of the answer
    body: bytes  # the request as it is to be sent: the bytes that came, if nothing in them has to change

    def cutter(self, **options: Any) -> Cutter:
        """A cutter for the answer. Frames that it cannot read pass: it was only guessed what they are."""
        settings = {"choices": self.choices, "skip_chars": self.skip_chars, "on_malformed": "pass", **options}
        return Cutter(self.dialect, self.stops, max_choices=max(128, self.choices), **settings)


def dialect_of(path: str) -> Dialect | None:
    """The dialect of a POST to a path, `None` for a path that is none of a model's."""
    return next((dialect for pattern, dialect in _PATHS if re.search(pattern, path)), None)


def read_exchange(
    path: str,
    query: str,
    raw: bytes,
    *,
    host: str = "",
    provider: str | providers.Provider | None = None,
    stop: Iterable[str] | None = None,
    must_name: bool = False,
) -> Exchange | None:
    """Read a POST; `None` if its answer is none of our business.

    Args:
        path: of the request, without the query.
        query: of the request.
        raw: its body.
        host: of the request; it tells whose limits hold. Where that is not known those that the dialect suggests are kept to, and
            all stops are enforced here too.
        provider: whose limits hold, for hosts that do not tell.
        stop: stops for requests that bring none.
        must_name: as for `providers.plan`.
    """
    dialect = dialect_of(path)
    if dialect is None:
        return None
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict):
        return None
    given = _stops(body, dialect)
    wanted = list(stop or ()) if given == [] else given
    streams = _streams(body, dialect, path)
    choices, skip_chars = _choices(body, dialect), _echoed(body, dialect)
    if not wanted or skip_chars is None or (dialect == "gemini" and streams and "alt=sse" not in query.split("&")):
        return None  # nothing asked for; or an echo of unknown length; or an array that is streamed
    known = provider or next(
        (table[dialect] for pattern, table in _HOSTS if re.search(pattern, host) and dialect in table), None
    )
    try:
        compiled = holdback.compile(wanted)
        plan = providers.plan(compiled, known or _ASSUMED[dialect], _model(body, dialect, path), must_name=must_name)
    except (TypeError, ValueError):
        return None
    enforced = plan.enforce if known else list(compiled.stops)
    if not enforced:
        return None
    changed = _put(body, dialect, plan.send, given)
    made = json.dumps(body, separators=(",", ":")).encode() if changed else raw
    return Exchange(dialect, holdback.compile(enforced), streams, choices, skip_chars, made)


def _stops(body: dict[str, Any], dialect: Dialect) -> list[str] | None:
    """The stops of a request: `[]` for none, `None` for something that is not a list of stops."""
    value: Any = body
    for name in _FIELDS[dialect]:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, str):
        return [value]
    if value is None:
        return []
    return value if isinstance(value, list) and all(isinstance(entry, str) for entry in value) else None


def _put(body: dict[str, Any], dialect: Dialect, send: list[str], given: list[str] | None) -> bool:
    """Leave just the stops to be sent in the body, never an empty list; says whether that changed anything."""
    if send == given:
        return False
    *outer, name = _FIELDS[dialect]
    holder: Any = body
    for key in outer:
        holder = holder.setdefault(key, {}) if send else holder.get(key, {})
    if send:
        holder[name] = send
    else:
        holder.pop(name, None)
    return True


def _model(body: dict[str, Any], dialect: Dialect, path: str) -> str | None:
    if dialect == "gemini":
        return path.rpartition("/")[2].partition(":")[0]
    model = body.get("model")
    return model if isinstance(model, str) else None


def _streams(body: dict[str, Any], dialect: Dialect, path: str) -> bool:
    if dialect == "gemini":
        return path.endswith(":streamGenerateContent")
    if dialect == "tgi":
        return path.endswith("/generate_stream")
    if dialect in ("ollama.chat", "ollama.generate"):
        return body.get("stream") is not False  # the one API that streams unless told not to
    return body.get("stream") is True


def _choices(body: dict[str, Any], dialect: Dialect) -> int:
    count: Any = body.get("n")
    if dialect == "gemini":
        settings = body.get("generationConfig")
        count = settings.get("candidateCount") if isinstance(settings, dict) else None
    one = (
        count if type(count) is int and count > 0 and dialect in ("gemini", "openai.chat", "openai.completions") else 1
    )
    prompts = body.get("prompt") if dialect == "openai.completions" else None
    several = isinstance(prompts, list) and prompts and not all(type(token) is int for token in prompts)
    return one * len(prompts) if several and prompts else one


def _echoed(body: dict[str, Any], dialect: Dialect) -> int | None:
    """Characters of an echoed prompt; `None` if they cannot be known."""
    if dialect != "openai.completions" or body.get("echo") is not True:
        return 0
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    return len(prompt) if isinstance(prompt, str) else None
