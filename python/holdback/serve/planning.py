"""What is sent on and what is done here: the stops to send, the stops to enforce, and the request
as the upstream gets it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import holdback
from holdback import StopSet, providers
from holdback.dialects import DIALECTS
from holdback.dialects.gemini import with_events
from holdback.serve.asking import Ask, BadRequestError
from holdback.serve.config import Config, Upstream
from holdback.serve.sse import dump_json
from holdback.stop_fields import put_stops
from holdback.wire import Cutter, Dialect

# It sends the usage figures unasked, and answers 422 to whoever asks
# (openai/openai-agents-python#442).
_REFUSE_USAGE_OPTION = frozenset(("mistral",))

# Planning looks at every beginning and end of every stop, which grows with the square of their
# length. Longer lists are enforced here.
MAX_PLANNED_CHARS = 4096

Mode = Literal["pass", "stream", "assemble", "body"]
"""How the answer comes back: untouched, cut as it streams, cut as it streams and put together, or
cut as a whole.
"""


@dataclass(frozen=True, slots=True)
class Split:
    """A stop list in two."""

    send: tuple[str, ...]
    enforce: tuple[str, ...]


@dataclass(slots=True)
class Job:
    """A request, ready to be forwarded."""

    ask: Ask
    split: Split
    mode: Mode
    path: str
    query: str
    body: bytes
    stops: StopSet | None
    """The enforced ones, compiled."""


def prepare(ask: Ask, upstream: Upstream, path: str, query: str, config: Config) -> Job:
    """Decide. Raises :class:`BadRequestError` for stops that cannot be compiled."""
    stops = (*ask.stops, *(stop for stop in upstream.stops if stop not in ask.stops))
    try:
        compiled = holdback.compile(stops)
    except ValueError as error:
        raise BadRequestError(f"{'.'.join(ask.field)}: {error}", ".".join(ask.field)) from error
    # An upstream knows nothing of regions: it would end inside one.
    inside = bool(upstream.ignore_inside)
    split = (
        Split((), stops)
        if inside
        else split_stops(stops, upstream.provider, ask.dialect, ask.model, config.must_name)
    )
    enforced = (
        (compiled if split.enforce == stops else holdback.compile(split.enforce))
        if split.enforce
        else None
    )
    mode: Mode = "pass"
    if enforced is not None:
        if ask.stream:
            mode = "stream"
        elif config.buffered == "stream" and ask.has_stream_form:
            mode = "assemble"
        else:
            mode = "body"
    try:
        # Where the API has no such field, not even an empty one is sent.
        change = split.send != ask.stops or not DIALECTS[ask.dialect].has_stop_field
        changed = change and put_stops(ask.body, ask.field, split.send)
    except ValueError as error:
        raise BadRequestError(str(error), ask.field[0]) from error
    if mode == "assemble":
        usage = upstream.provider not in _REFUSE_USAGE_OPTION
        path, query = DIALECTS[ask.dialect].ask_for_stream(path, query, ask.body, usage)
        changed = True
    elif mode == "stream" and ask.dialect == "gemini":
        query = with_events(
            query
        )  # without it the answer is one JSON array, which is made here of the events
    try:
        body = dump_json(ask.body) if changed else ask.raw
    except ValueError as error:
        raise BadRequestError(f"the body cannot be sent on: {error}") from error
    return Job(ask, split, mode, path, query, body, enforced)


def make_cutter(job: Job, upstream: Upstream, config: Config) -> Cutter:
    """The cutter of one answer to ``job``."""
    ask = job.ask
    return Cutter(
        ask.dialect,
        job.stops,
        include_stop=ask.include_stop,
        ignore_inside=list(upstream.ignore_inside) or None,
        choices=ask.choices,
        max_choices=max(128, ask.choices),
        skip_chars=ask.skip_chars,
        cut_reasoning=upstream.cut_reasoning,
        stop_field=field_for(ask.dialect, config.stop_field),
        on_match="drain" if config.on_match == "drain" else "cancel",
        on_unread="pass" if config.on_unread == "pass" else "fail",
    )


@lru_cache(maxsize=64)
def field_for(dialect: Dialect, stop_field: str | None) -> str | None:
    """The setting ``stop_field``, which is for all dialects, as this one can have it: a key that it
    has itself stays its own.

    >>> field_for("gemini", "stop_reason"), field_for("anthropic.messages", "stop_reason")
    ('stop_reason', 'auto')
    """
    try:
        Cutter(dialect, (), stop_field=stop_field)
    except ValueError:
        return "auto"
    return stop_field


@lru_cache(maxsize=512)
def split_stops(
    stops: tuple[str, ...],
    provider: str | None,
    dialect: Dialect,
    model: str | None,
    must_name: bool,
) -> Split:
    """Which stops `provider` is sent and which are enforced here. Without facts about this very
    route, all are enforced.

    >>> split_stops(("a", "b", "c", "d", "e"), "vllm", "openai.chat", None, True)
    Split(send=('a', 'b', 'c', 'd'), enforce=('e',))
    >>> split_stops(("a", "b"), "openai", "openai.chat", "gpt-4.1", True)
    Split(send=(), enforce=('a', 'b'))
    """
    facts = _facts(provider, dialect)
    if facts is None or not stops or sum(map(len, stops)) > MAX_PLANNED_CHARS:
        return Split((), stops)
    made = providers.plan(list(stops), facts, model, must_name=must_name)
    return Split(tuple(made.send), tuple(str(stop) for stop in made.enforce))


def _facts(provider: str | None, dialect: Dialect) -> providers.Provider | None:
    """The facts that hold for this route of the provider."""
    if provider is None:
        return None
    spec = DIALECTS[dialect]
    for suffix in spec.facts:
        try:
            return providers.get(f"{provider}.{suffix}")
        except ValueError:
            continue
    found = providers.get(provider)
    field = found.facts.get("field")
    same = field is not None and field.value == ".".join(spec.stop_fields[0])
    return found if same and spec.has_stop_field else None
