"""Sections 1 and 5: the list of stops, what is wrong with it, and which of them can never match."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from .cutting import AsyncCut, Cut
from .pattern import Pattern, tree_of
from .running import Machine
from .syntax import ENDLESS, longest
from .words import Words, literal

if TYPE_CHECKING:
    from .stream import StopMatch, StopStream

Stop: TypeAlias = "str | bytes | Pattern"

MAX_STOPS = 1_000_000
MAX_BYTES = 4 * 1024 * 1024
MAX_STATES = 65_536


class StopSet:
    """A validated list of stops. Immutable; any number of streams may share it.

    Args:
        stops: one stop, an iterable of stops, or ``None``. A ``bytes`` stop is for ``byte_stream()`` only.
        tie: which of several stops that end at the same character is the match: ``"longest"``, or ``"first"`` in the
            list.
        max_stops: refuse longer lists (default 1,000,000).
        max_bytes: refuse lists with more bytes of UTF-8 in all stops together (default 4 MiB).

    Raises:
        TypeError, ValueError: see section 5; the message names the index, the type, the limit.

    >>> StopSet(["bcd", "c"]).unreachable
    (0,)
    """

    __slots__ = ("_stops", "_tie")

    def __init__(
        self,
        stops: Stop | Iterable[Stop] | None = None,
        /,
        *,
        tie: str | None = None,
        max_stops: int | None = None,
        max_bytes: int | None = None,
        max_states: int | None = None,
    ) -> None:
        tie = "longest" if tie is None else tie
        max_stops = _limit("max_stops", max_stops, MAX_STOPS)
        max_bytes = _limit("max_bytes", max_bytes, MAX_BYTES)
        _limit("max_states", max_states, MAX_STATES)  # there are no states here
        if tie not in ("longest", "first"):
            raise ValueError(f'tie must be "longest" or "first", not {tie!r}')
        checked: list[Stop] = []
        nbytes = 0
        given = listed(stops, "stops")
        if len(given) > max_stops:
            raise ValueError(f"{len(given)} stops are more than max_stops={max_stops}")
        for index, stop in enumerate(given):
            data = _text_of(stop, f"stop {index}")
            if not data:
                raise ValueError(f"stop {index} is empty")
            nbytes += len(data)
            checked.append(stop)
        if nbytes > max_bytes:
            raise ValueError(f"the stops have {nbytes} bytes, more than max_bytes={max_bytes}")
        self._stops = tuple(checked)
        self._tie = tie

    @property
    def stops(self) -> tuple[Stop, ...]:
        """The stops as given."""
        return self._stops

    @property
    def tie(self) -> str:
        """Which of several stops that end together is the match."""
        return self._tie

    @property
    def unreachable(self) -> tuple[int, ...]:
        """Indices of the stops that can never be the match of a stream that is always armed
        (section 1).
        """
        if has_patterns(self):
            return machine_of(self, _in_bytes(self)).unreachable
        return tuple(index for index in range(len(self)) if self._is_unreachable(index))

    @property
    def bounds(self) -> tuple[int | None, ...]:
        """How many characters each stop can hold at most; bytes, if a stop is ``bytes`` (section
        11.3).

        >>> from holdback.reference import Pattern
        >>> StopSet(["END", Pattern(r"\\d+;", max_hold=9), Pattern(r"\\s+x")]).bounds
        (2, 9, None)
        """
        return machine_of(self, _in_bytes(self)).bounds

    def _is_unreachable(self, index: int) -> bool:
        stops = [utf8(stop) for stop in self._stops]
        stop = stops[index]
        if any(other in stop[:-1] for other in stops):  # another one ends strictly inside it
            return True
        if stop in stops[:index]:  # an equal one is listed earlier
            return True
        return self._tie == "first" and any(stop.endswith(earlier) for earlier in stops[:index])

    @property
    def nbytes(self) -> int:
        """Bytes of UTF-8 in all stops: there is no automaton here whose memory could be told."""
        return sum(len(_text_of(stop)) for stop in self._stops)

    def stream(self, **options: Any) -> StopStream:
        """Start a text stream.

        Options: ``include_stop``, ``errors``, ``min_chars``, ``ignore_inside``, ``start_inside``,
        ``atomic``.
        """
        from .stream import StopStream

        return StopStream(self, raw=False, **options)

    def byte_stream(self, **options: Any) -> StopStream:
        """Start a stream of bytes: no decoding, offsets in bytes. The options of ``stream()``
        without ``errors``.
        """
        from .stream import StopStream

        if "errors" in options:
            raise TypeError("byte_stream() decodes nothing and takes no errors")
        return StopStream(self, raw=True, **options)

    def truncate(self, text: str, /, **options: Any) -> tuple[str, StopMatch | None]:
        """Take a whole text at once: what a stream emits for it, and the match.

        >>> StopSet("END").truncate("all ENDs")[0]
        'all '
        """
        stream = self.stream(**options)
        emitted, _ = stream.feed(text)
        emitted += stream.flush()
        return emitted, stream.match

    def truncate_many(
        self, texts: Iterable[str | None], /, **options: Any
    ) -> tuple[list[str | None], list[StopMatch | None]]:
        """`truncate` for each text; two lists of the same length. `None` stays `None`."""
        if isinstance(texts, (str, bytes)):
            raise TypeError(
                f"truncate_many takes an iterable of texts, not one {type(texts).__name__}"
            )
        kept: list[str | None] = []
        matches: list[StopMatch | None] = []
        for at, text in enumerate(texts):
            if text is not None and not isinstance(text, (str, bytes, bytearray, memoryview)):
                raise TypeError(f"text {at} is {type(text).__name__}, not str, bytes-like or None")
            emitted, match = (None, None) if text is None else self.truncate(text, **options)
            kept.append(emitted)
            matches.append(match)
        return kept, matches

    def cut(self, chunks: Iterable[str | bytes], /, **options: Any) -> Cut:
        """Cut an iterable of chunks (section 10)."""
        return Cut(self.stream(**options), chunks)

    def acut(self, chunks: AsyncIterable[str | bytes], /, **options: Any) -> AsyncCut:
        """Cut an asynchronous iterable of chunks (section 10)."""
        return AsyncCut(self.stream(**options), chunks)

    def __len__(self) -> int:
        return len(self._stops)

    def __iter__(self) -> Iterator[Stop]:
        return iter(self._stops)

    def __contains__(self, stop: object) -> bool:
        return bool(same_stops(self, stop))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StopSet):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        # The type belongs to the key: "a" and b"a" find the same text, but only one of them allows
        # a text stream.
        return (self._tie, *((type(stop), stop) for stop in self._stops))

    def __repr__(self) -> str:
        tie = "" if self._tie == "longest" else f", tie={self._tie!r}"
        return f"StopSet({list(self._stops)!r}{tie})"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._stops, self._tie)


def _rebuild(stops: tuple[Stop, ...], tie: str) -> StopSet:
    """What was accepted once is accepted again, whatever the limits were."""
    nbytes = sum(len(_text_of(stop)) for stop in stops)
    return StopSet(stops, tie=tie, max_stops=len(stops), max_bytes=nbytes)


def compile(  # noqa: A001 - named like re.compile
    stops: Stop | Iterable[Stop] | None = None, /, **options: Any
) -> StopSet:
    """``StopSet(stops, **options)``.

    The real one remembers recent lists; that can only be seen on a clock.
    """
    return StopSet(stops, **options)


def listed(literals: Any, what: str) -> list[Any]:
    """``None`` is an empty list, one ``str`` or ``bytes`` is one literal and never its letters
    (section 5).
    """
    if literals is None:
        return []
    if isinstance(literals, (str, bytes, Pattern)):
        return [literals]
    try:
        return list(literals)
    except TypeError:
        raise TypeError(
            f"{what} must be str, bytes or an iterable of them, not {type(literals).__name__}"
        ) from None


def utf8(literal: Any, name: str = "") -> bytes:
    """What a literal is compared by: ``"a"`` and ``b"a"`` are equal. ``name`` says in an error
    which one is bad.
    """
    if isinstance(literal, bytes):
        return literal
    if not isinstance(literal, str):
        raise TypeError(f"{name} must be str, bytes or Pattern, not {type(literal).__name__}")
    try:
        return literal.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{name} has a lone surrogate: {literal!r}") from None


def has_patterns(stops: StopSet) -> bool:
    """Whether there is a pattern in the set."""
    return any(isinstance(stop, Pattern) for stop in stops)


def machine_of(stops: StopSet, raw: bool, openers: tuple[str, ...] = ()) -> Machine:
    """What section 11 computes from a set, for streams of text or (``raw``) of bytes."""
    return _machine(stops.stops, stops.tie, raw, openers)


@functools.lru_cache(maxsize=1000)
def _machine(stops: tuple[Stop, ...], tie: str, raw: bool, openers: tuple[str, ...]) -> Machine:
    words, endless = [], []
    for stop in stops:
        if isinstance(stop, Pattern):
            tree = tree_of(stop)
            words.append(Words(tree, utf8=raw and isinstance(stop.pattern, str)))
        else:
            data = utf8(stop)
            tree = literal(data.decode("latin-1" if raw else "utf-8"))
            words.append(Words(tree, utf8=False))
        endless.append(longest(tree) == ENDLESS)
    return Machine(
        tuple(words),
        tuple(stop.max_hold if isinstance(stop, Pattern) else None for stop in stops),
        tuple(endless),
        tie,
        openers,
        raw=raw,
        made_by=(_machine, stops, tie, raw, openers),
        plain=_machine(stops, tie, raw, ()) if openers else None,
    )


def _in_bytes(stops: StopSet) -> bool:
    """Whether it can make byte streams only."""
    return any(
        isinstance(stop.pattern if isinstance(stop, Pattern) else stop, bytes) for stop in stops
    )


def _text_of(stop: Any, name: str = "") -> bytes:
    """A literal, or the text of a pattern, in UTF-8."""
    return utf8(stop.pattern if isinstance(stop, Pattern) else stop, name)


def same_stops(stops: StopSet, wanted: object) -> list[int]:
    """The indices of the stops of a set that are equal to ``wanted``."""
    if isinstance(wanted, Pattern):
        return [index for index, stop in enumerate(stops.stops) if stop == wanted]
    try:
        data = utf8(wanted)
    except (TypeError, ValueError):
        return []
    return [
        index
        for index, stop in enumerate(stops.stops)
        if not isinstance(stop, Pattern) and utf8(stop) == data
    ]


def _limit(name: str, value: object, default: int) -> int:
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} must not be negative, it is {value}")
    return value
