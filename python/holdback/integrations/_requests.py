"""What a request to a model asks for, as far as stops are concerned: shared by the adapters that
see HTTP requests.

A request is understood by its path and its JSON body. One that is not understood (another path,
another shape, stops that cannot be compiled) is `None` here, and whoever asked passes it on
untouched: the provider's own error is better than ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import holdback
from holdback import StopSet, providers
from holdback.dialects import DIALECTS, dialect_of
from holdback.stop_fields import find_stops, put_stops
from holdback.wire import Cutter, Dialect

# Whose facts hold for a host.
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


def stay_here(options: Mapping[str, Any]) -> bool:
    """True if these options of a stream say that stops count in some places only, or are to be
    seen.

    An upstream knows nothing of that: it would end inside a region, too early, or without the stop.
    So it is sent no stops then.
    """
    return any(options.get(name) for name in ("include_stop", "ignore_inside", "min_chars"))


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
        """A cutter for the answer.

        Frames that it cannot read pass: it was only guessed what they are.
        """
        settings = {
            "choices": self.choices,
            "skip_chars": self.skip_chars,
            "on_malformed": "pass",
            **options,
        }
        return Cutter(self.dialect, self.stops, max_choices=max(128, self.choices), **settings)


def read_exchange(
    path: str,
    query: str,
    raw: bytes,
    *,
    host: str = "",
    provider: str | providers.Provider | None = None,
    stop: Iterable[str] | None = None,
    must_name: bool = False,
    local: bool = False,
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
        local: send no stops, see `stay_here`.
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
    try:
        field, given = find_stops(dialect, body)
    except ValueError:
        return None
    wanted = given or list(stop or ())
    spec = DIALECTS[dialect]
    streams = spec.wants_stream(path, body)
    choices, skip_chars = spec.choices(body), spec.echoed(body)
    if (
        not wanted
        or skip_chars is None
        or (dialect == "gemini" and streams and "alt=sse" not in query.split("&"))
    ):
        return None  # nothing asked for; or an echo of unknown length; or an array that is streamed
    known = provider or next(
        (
            table[dialect]
            for pattern, table in _HOSTS
            if re.search(pattern, host) and dialect in table
        ),
        None,
    )
    try:
        compiled = holdback.compile(wanted)
        plan = providers.plan(
            compiled, known or spec.assumed, spec.model(path, body), must_name=must_name
        )
    except (TypeError, ValueError):
        return None
    send = [] if local else plan.send
    enforced = plan.enforce if known and not local else list(compiled.stops)
    if not enforced:
        return None
    try:
        changed = send != given and put_stops(body, field, send)
    except ValueError:
        return None
    made = json.dumps(body, separators=(",", ":")).encode() if changed else raw
    return Exchange(dialect, holdback.compile(enforced), streams, choices, skip_chars, made)
