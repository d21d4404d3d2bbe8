"""A request to a model: read, planned and rewritten, for the gateway and all adapters alike.

Read: what it asks for, as far as its answer depends on it. Planned: which stops are sent on and
which are enforced here. Rewritten: the stops that are sent, and a stream asked for where one is
wanted; all other bytes stay as they came. What cannot be understood or done is a `BadRequestError`
for the client: stops that are not enforced in silence would be the worst of answers.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import holdback
from holdback import StopSet, providers
from holdback._codings import (
    BrokenCodingError,
    CodingError,
    DecodedTooLongError,
    codings_of,
    decode,
)
from holdback._json import Document, Edits
from holdback.dialects import DIALECTS, Large, placed
from holdback.wire import Cutter, Dialect

MAX_CHOICES = 65_535
"""Answers to one request; each that turns up costs memory."""

MAX_PLANNED_CHARS = 4096
"""Of all stops together. Planning looks at every beginning and end of every stop, which grows with
the square of their length; longer lists are enforced here.
"""

_REFUSE_USAGE_OPTION = frozenset(("mistral",))
"""They send the usage figures unasked, and answer 422 to whoever asks
(openai/openai-agents-python#442).
"""

_EVERYWHERE = (("include_stop_str_in_output",), ("no_stop_trim",))

Mode = Literal["pass", "stream", "assemble", "body"]
"""How the answer comes back: untouched, cut as it streams, cut as it streams and put together, or
cut as a whole.
"""


class BadRequestError(ValueError):
    """A request that cannot be served; the message is for the client.

    `param` is the field at fault, `status` that of HTTP, `code` a word for programs.
    """

    def __init__(
        self,
        message: str,
        param: str | None = None,
        *,
        status: int = 400,
        code: str = "bad_request",
    ) -> None:
        super().__init__(message)
        self.param, self.status, self.code = param, status, code


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may ask for."""

    max_stops: int = 100_000
    max_stop_bytes: int = 4 << 20
    """All stops together."""


@dataclass(slots=True)
class Ask:
    """A request for an answer, read."""

    dialect: Dialect
    document: Document
    path: str
    body: dict[str, Any]
    """The fields that matter here."""
    model: str | None
    stops: tuple[str, ...]
    field: tuple[str, ...]
    """Where the stops stood, or would."""
    stream: bool
    """The client wants a stream."""
    include_stop: bool
    """The client wants to see the stop's text."""
    choices: int
    skip_chars: int | None
    """Characters of the prompt that come back in front of the answer, `None` if that cannot be
    known."""
    has_stream_form: bool
    """A stream can bring all that this request asks for."""


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
    parts: Sequence[bytes | memoryview]
    """The request as it is to be sent: the bytes that came, if nothing in them has to change."""
    stops: StopSet | None
    """The enforced ones, compiled."""

    @property
    def body(self) -> bytes:
        """The parts as one."""
        first = self.parts[0]
        if len(self.parts) == 1 and isinstance(first, bytes):
            return first
        return b"".join(self.parts)

    def cutter(self, **options: Any) -> Cutter:
        """A cutter for the answer; `options` are those of `holdback.wire.Cutter`."""
        ask = self.ask
        settings: dict[str, Any] = {
            "include_stop": ask.include_stop,
            "choices": ask.choices,
            "max_choices": max(128, ask.choices),
            "skip_chars": ask.skip_chars or 0,
        }
        return Cutter(ask.dialect, self.stops, **{**settings, **options})


def decoded(coding: str, raw: bytes, limit: int) -> bytes:
    """The body of a request whose `content-encoding` is `coding`.

    Raises `BadRequestError`: 415 for a coding that is not decoded here, 413 for more than `limit`
    bytes, 400 for what is not of that coding.
    """
    if not codings_of(coding):
        return raw
    try:
        return decode(coding, raw, limit=limit)
    except DecodedTooLongError as error:
        raise BadRequestError(
            f"the request is too long: {error}", status=413, code="request_too_large"
        ) from error
    except BrokenCodingError as error:
        raise BadRequestError(f"the request's {error}") from error
    except CodingError as error:
        raise BadRequestError(
            f"the request's {error}", status=415, code="unsupported_coding"
        ) from error


def read_ask(dialect: Dialect, path: str, raw: bytes, limits: Limits | None = None) -> Ask:
    """Read the body of a POST to `path`.

    Raises `BadRequestError` for what is no request, or whose stops cannot be used.
    """
    spec = DIALECTS[dialect]
    known = placed(path)
    path = known[0] if known else path
    try:
        document = Document(raw, (*spec.stop_fields, *spec.reads, *_EVERYWHERE))
    except ValueError as error:
        raise BadRequestError(f"the body is not a JSON object that can be read: {error}") from error
    body = document.body
    field, stops = _find_stops(dialect, body)
    _check_stops(stops, ".".join(field), limits or Limits())
    choices = spec.choices(body)
    if choices > MAX_CHOICES:
        raise BadRequestError(
            f"{choices} answers are asked for; at most {MAX_CHOICES} are given", "n"
        )
    return Ask(
        dialect=dialect,
        document=document,
        path=path,
        body=body,
        model=spec.model(path, body),
        stops=tuple(stops),
        field=field,
        stream=spec.wants_stream(path, body),
        include_stop=any(body.get(key) is True for (key,) in _EVERYWHERE),
        choices=choices,
        skip_chars=spec.echoed(body),
        has_stream_form=spec.has_stream_form(body),
    )


def _find_stops(dialect: Dialect, body: dict[str, Any]) -> tuple[tuple[str, ...], list[str]]:
    """Where the stops stand, or would, and what they are.

    A dialect may have several places for them. Only one can be used: which one the upstream would
    believe is not known.
    """
    places = DIALECTS[dialect].stop_fields
    found = list[tuple[tuple[str, ...], list[str]]]()
    for field in places:
        value: Any = body
        for key in field:
            value = value.get(key) if isinstance(value, dict) else None
        name = ".".join(field)
        if isinstance(value, Large):
            raise BadRequestError(f"{name} is too long to be read", name)
        if isinstance(value, str):
            found.append((field, [value]))
        elif isinstance(value, list) and all(isinstance(stop, str) for stop in value):
            found.append((field, value))
        elif value is not None:
            raise BadRequestError(f"{name} is a string or a list of strings", name)
    found = [place for place in found if place[1]] or found[:1]
    if len(found) > 1:
        names = " and ".join(".".join(field) for field, _ in found)
        raise BadRequestError(f"stops stand in {names}: one place only", ".".join(found[1][0]))
    return found[0] if found else (places[0], [])


def _check_stops(stops: list[str], name: str, limits: Limits) -> None:
    most, most_bytes = limits.max_stops, limits.max_stop_bytes
    if len(stops) > most:
        raise BadRequestError(f"{name} has {len(stops)} stops; at most {most} are taken", name)
    if sum(map(len, stops)) * 4 > most_bytes:
        # An upper bound first: most lists are far from the limit.
        size = sum(len(stop.encode("utf-8", "surrogatepass")) for stop in stops)
        if size > most_bytes:
            raise BadRequestError(
                f"{name} has {size} bytes of stops; at most {most_bytes} are taken", name
            )


def prepare(
    ask: Ask,
    query: str,
    *,
    more: tuple[str, ...] = (),
    provider: str | providers.Provider | None = None,
    must_name: bool,
    local: bool = False,
    guess: bool = False,
    assemble: bool = False,
    as_events: bool = False,
) -> Job:
    """Decide how a request is served, and write it as it is to be sent.

    Args:
        ask: the request.
        query: of it.
        more: stops beside its own.
        provider: whose limits hold. Without facts about its route all stops are enforced here.
        must_name: as for `providers.plan`.
        local: send no stops: they count in some places only, which no upstream knows.
        guess: without facts, send what the dialect suggests, and enforce all stops here as well.
        assemble: ask for a stream where the client did not, if it can bring all of the answer.
        as_events: a stream has to come as events, also where the client asked for another form.

    Raises:
        BadRequestError: the stops cannot be compiled, or not be enforced on what is asked for.
    """
    spec, name = DIALECTS[ask.dialect], ".".join(ask.field)
    stops = (*ask.stops, *(stop for stop in more if stop not in ask.stops))
    try:
        compiled = holdback.compile(stops)
    except ValueError as error:
        raise BadRequestError(f"{name}: {error}", name) from error
    split = Split((), stops)
    if not local:
        split = _split(stops, provider, ask.dialect, ask.model, must_name, guess)
    if stops:
        _check_answer(ask)
    enforced: StopSet | None = None
    mode: Mode = "pass"
    if split.enforce:
        enforced = compiled if split.enforce == stops else holdback.compile(split.enforce)
        mode = "stream" if ask.stream else "body"
        if mode == "body" and assemble and ask.has_stream_form:
            mode = "assemble"
    edits = Edits(ask.document)
    path = ask.path
    try:
        # Where the API has no such field, not even an empty one is sent.
        if split.send != ask.stops or not spec.has_stop_field:
            _put_stops(edits, ask, split.send)
        if mode == "assemble":
            asked = copy.deepcopy(ask.body)
            named = provider.name if isinstance(provider, providers.Provider) else provider
            usage = named not in _REFUSE_USAGE_OPTION
            path, query = spec.ask_for_stream(path, query, asked, usage)
            for key, value in asked.items():
                if ask.body.get(key) != value:
                    edits.put((key,), value)
        elif mode == "stream" and as_events:
            query = spec.event_query(query)
    except ValueError as error:
        raise BadRequestError(str(error), ask.field[0]) from error
    return Job(ask, split, mode, path, query, edits.pieces(), enforced)


def _check_answer(ask: Ask) -> None:
    """Refuse stops for an answer that cannot be cut."""
    if ask.skip_chars is None:
        raise BadRequestError(
            "echo together with stops needs one prompt that is text: stops do not count inside it",
            "echo",
        )
    refusal = DIALECTS[ask.dialect].refusal(ask.body)
    if refusal is not None:
        field, why = refusal
        raise BadRequestError(why, field)


def _put_stops(edits: Edits, ask: Ask, stops: tuple[str, ...]) -> None:
    """Leave just these stops in the request, never an empty list."""
    if stops:
        edits.put(ask.field, list(stops))
        return
    holder: Any = ask.body
    for key in ask.field[:-1]:
        holder = holder.get(key) if isinstance(holder, dict) else None
    if isinstance(holder, dict):
        edits.remove(ask.field)


# --- who takes which stops


def facts_for(
    provider: str | providers.Provider | None, dialect: Dialect
) -> providers.Provider | None:
    """The facts that hold for this route of a provider, `None` if there are none."""
    if provider is None:
        return None
    spec = DIALECTS[dialect]
    name = provider if isinstance(provider, str) else provider.name
    for suffix in spec.facts:
        try:
            return providers.get(f"{name}.{suffix}")
        except ValueError:
            continue
    found = providers.get(provider) if isinstance(provider, str) else provider
    field = found.facts.get("field")
    same = field is not None and field.value == ".".join(spec.stop_fields[0])
    return found if same and spec.has_stop_field else None


@lru_cache(maxsize=512)
def split_stops(
    stops: tuple[str, ...],
    provider: str | None,
    dialect: Dialect,
    model: str | None,
    must_name: bool,
    guess: bool = False,
) -> Split:
    """Which stops `provider` is sent and which are enforced here. Without facts about this very
    route, all are enforced; those that the dialect suggests are sent then if `guess` is set.

    >>> split_stops(("a", "b", "c", "d", "e"), "vllm", "openai.chat", None, True)
    Split(send=('a', 'b', 'c', 'd'), enforce=('e',))
    >>> split_stops(("a", "b"), "openai", "openai.chat", "gpt-4.1", True)
    Split(send=(), enforce=('a', 'b'))
    """
    return _plan(stops, provider, dialect, model, must_name, guess)


def _split(
    stops: tuple[str, ...],
    provider: str | providers.Provider | None,
    dialect: Dialect,
    model: str | None,
    must_name: bool,
    guess: bool,
) -> Split:
    if isinstance(provider, providers.Provider):
        return _plan(stops, provider, dialect, model, must_name, guess)
    return split_stops(stops, provider, dialect, model, must_name, guess)


def _plan(
    stops: tuple[str, ...],
    provider: str | providers.Provider | None,
    dialect: Dialect,
    model: str | None,
    must_name: bool,
    guess: bool,
) -> Split:
    facts = facts_for(provider, dialect)
    limits = facts or (providers.get(DIALECTS[dialect].assumed) if guess else None)
    if limits is None or not stops or sum(map(len, stops)) > MAX_PLANNED_CHARS:
        return Split((), stops)
    made = providers.plan(list(stops), limits, model, must_name=must_name)
    enforce = tuple(str(stop) for stop in made.enforce) if facts else stops
    return Split(tuple(made.send), enforce)
