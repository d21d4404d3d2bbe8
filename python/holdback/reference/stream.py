"""Sections 2, 4, 5 and 6: one response."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .decode import RawDecoder, TextDecoder
from .options import Options, check
from .pattern import Pattern
from .scan import Scanner
from .scan_patterns import PatternScanner
from .stops import StopSet, machine_of
from .whole import Whole

# What a stream takes and gives is str or bytes, depending on how it was made. The types here do not
# follow that.
Text = Any


@dataclass(frozen=True)
class StopMatch:
    """The stop that ended a stream, and where (section 4).

    Immutable, hashable; equal when all attributes are.
    """

    stop: str | bytes  # as given; of a pattern the text that matched
    index: int  # its position in the list as given
    start: int  # offsets in the stream, in characters (byte_stream: bytes)
    end: int
    start_chunk: int  # which feed, from 0, brought the first and the last character
    end_chunk: int
    rest: str | bytes  # what followed in the chunk that completed the stop, in that chunk's type
    cut: int = -1  # how much was emitted in all; as an argument: ``start`` if it is left out
    pattern: Pattern | None = None  # the stop, if it is a pattern; ``stop`` is what matched then

    def __post_init__(self) -> None:
        if self.cut == -1:
            object.__setattr__(self, "cut", self.start)

    def __repr__(self) -> str:
        names = ["stop", "index", "start", "end", "start_chunk", "end_chunk", "rest"]
        if self.pattern is not None:
            names += ["cut", "pattern"]
        return f"StopMatch({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class State:
    """All that a stream knows.

    A call works on a copy of it, which takes its place when the call succeeds: a call that raises
    leaves the stream as it was, and counts nothing.
    """

    def __init__(self, stops: StopSet, options: Options) -> None:
        self.stops = stops
        self.options = options
        self.decoder = RawDecoder() if options.raw else TextDecoder(options.errors)
        self.scanner = _scanner(stops, options)
        self.whole = Whole(options.whole)
        self.chunks = 0  # chunks fed so far
        self.chunk_of: tuple[int, ...] = ()  # for each character the chunk that completed it
        self.last_end = 0  # where in its chunk the last character ends
        self.last_chunk: str | bytes = "" if not options.raw else b""
        self.emitted = 0  # characters emitted so far
        self.match: StopMatch | None = None
        self.flushed = False

    def copy(self) -> State:
        """Copy what changes; text, numbers and tuples do not."""
        other = copy.copy(self)
        other.decoder = copy.copy(self.decoder)
        other.scanner = copy.copy(self.scanner)
        other.whole = copy.copy(self.whole)
        return other

    @property
    def over(self) -> bool:
        """Whether nothing will be emitted any more."""
        return self.match is not None or self.flushed

    @property
    def held(self) -> Text:
        """Text that was seen and is not emitted."""
        return self.given_back("" if self.over else self.scanner.text[self.emitted :])

    def feed(self, given: object) -> Text:
        """Take one chunk; return what is emitted."""
        chunk = self._checked(given)
        if self.match is not None:
            return self.given_back("")
        self.must_be_open()
        self.chunks += 1
        self.last_chunk = chunk
        self._read(self.decoder.read(chunk))  # type: ignore[arg-type]  # str or bytes by now
        return self._emit(self._held_from())

    def must_be_open(self) -> None:
        """After ``flush`` nothing can be fed."""
        if self.flushed:
            raise ValueError("this stream was flushed: reset() it, or make a new one")

    def flush(self) -> Text:
        """Take the end of the text; return what is emitted."""
        if not self.over:
            self.last_chunk = self.last_chunk[:0]  # what flush makes is followed by nothing
            self._read(self.decoder.finish())
            if self.match is None:
                found = self.scanner.finish()
                if found is not None:
                    self._matched(found, self.last_chunk)
        everything = len(self.scanner.text)
        emitted = self._emit(everything)
        self.flushed = True
        return emitted

    def _read(self, characters: Iterator[tuple[str, int]]) -> None:
        # What follows the end of the stream is not even asked for, so it is not decoded.
        for character, end_in_chunk in characters:
            before = len(self.scanner.text)
            found = self.scanner.read(character)
            if found is not None and len(self.scanner.text) == before:
                # The character only decided that a stop had ended in front of it.
                completed_here = self.chunk_of[-1] == self.chunks - 1
                self._matched(found, self.last_chunk[self.last_end if completed_here else 0 :])
                return
            self.whole.read(self.scanner.text)
            # flush() makes characters of the last chunk fed, which has been counted already.
            self.chunk_of += (self.chunks - 1,)
            self.last_end = end_in_chunk
            if found is not None:
                self._matched(found, self.last_chunk[end_in_chunk:])
                return
            self.scanner.settle()

    def _matched(self, found: tuple[int, int, int], rest: str | bytes) -> None:
        index, start, end = found
        stop = self.stops.stops[index]
        pattern = stop if isinstance(stop, Pattern) else None
        sent = self.scanner.given_up
        if isinstance(stop, Pattern):
            stop = self.given_back(self.scanner.text[max(start, min(sent, end - 256)) : end])
        self.match = StopMatch(
            stop=stop,
            index=index,
            start=start,
            end=end,
            start_chunk=self.chunk_of[start],
            end_chunk=self.chunk_of[end - 1],
            rest=rest,
            cut=end if index in self.options.included else max(start, sent),
            pattern=pattern,
        )

    def _held_from(self) -> int:
        return self.whole.held_from(self.scanner.text, self.scanner.given_up)

    def _emit(self, until: int) -> Text:
        # Emit what stands in front of `until`; after a match, what stands in front of the cut.
        if self.match is not None:
            until = self.match.cut
        text = self.scanner.text[self.emitted : until]
        self.emitted = max(self.emitted, until)
        return self.given_back(text)

    def given_back(self, text: str) -> Text:
        """Text as the caller knows it."""
        return text.encode("latin-1") if self.options.raw else text

    def _checked(self, chunk: object) -> str | bytes:
        if isinstance(chunk, str) and not self.options.raw:
            return chunk
        if not isinstance(chunk, str):
            try:
                return memoryview(chunk).tobytes()  # type: ignore[arg-type]  # a copy: the caller may change it later
            except TypeError:
                pass
        wanted = "bytes" if self.options.raw else "str or bytes"
        raise TypeError(f"a chunk must be {wanted}, not {type(chunk).__name__}")


def _scanner(stops: StopSet, options: Options) -> Scanner | PatternScanner:
    region = 0 if options.start_inside else None
    literals = tuple(stop for stop in options.stops if isinstance(stop, str))
    if len(literals) == len(options.stops):
        return Scanner(
            stops=literals,
            tie=stops.tie,
            included=options.included,
            regions=options.regions,
            min_chars=options.min_chars,
            region=region,
        )
    return PatternScanner(
        machine=machine_of(stops, options.raw, tuple(opener for opener, _ in options.regions)),
        included=options.included,
        regions=options.regions,
        min_chars=options.min_chars,
        region=region,
    )


class StopStream:
    """One response. Made by ``StopSet.stream()`` and ``StopSet.byte_stream()``."""

    def __init__(self, stops: StopSet, /, *, raw: bool, **options: Any) -> None:
        self._options = check(stops, raw=raw, **options)
        self._state = State(stops, self._options)
        self._busy = threading.Lock()

    def feed(self, chunk: Text, /) -> tuple[Text, StopMatch | None]:
        """Take one chunk; return what may be emitted now and will never be taken back, and the
        match if there is one.

        >>> stream = StopSet(["END"]).stream()
        >>> stream.feed("the E"), stream.feed("ast")
        (('the ', None), ('East', None))
        """
        with _Alone(self):
            state = self._state.copy()
            emitted = state.feed(chunk)
            self._state = state
            return emitted, state.match

    def feed_many(self, chunks: Iterable[Text], /) -> tuple[Text, StopMatch | None]:
        """Feed one block of chunks.

        The same as feeding them one by one up to a match, but if one of them is bad, none was fed.
        Behind the end of the stream nothing is looked at.
        """
        if isinstance(chunks, (str, bytes)):
            raise TypeError(
                f"feed_many takes an iterable of chunks, not one {type(chunks).__name__}"
            )
        iterator = iter(chunks)
        with _Alone(self):
            state = self._state.copy()
            emitted = state.given_back("")
            if state.match is None:
                state.must_be_open()
            while state.match is None:
                try:
                    chunk = next(iterator)
                except StopIteration:
                    break
                emitted += state.feed(chunk)
            self._state = state
            return emitted, state.match

    def flush(self) -> Text:
        """No more text comes. Return what is still to be emitted."""
        with _Alone(self):
            state = self._state.copy()
            emitted = state.flush()
            self._state = state
            return emitted

    def reset(self) -> None:
        """Start afresh, with the same stops and options."""
        with _Alone(self):
            self._state = State(self._state.stops, self._options)

    def copy(self) -> StopStream:
        """An independent stream in the same state."""
        with _Alone(self):
            return copy.copy(self)

    def arm(self) -> None:
        """From now on stops count (section 7)."""
        with _Alone(self):
            self._change(lambda scanner: scanner.arm())

    def disarm(self) -> None:
        """From now on a stop that ends is text like any other (section 7)."""
        with _Alone(self):
            self._change(lambda scanner: scanner.disarm())

    def _change(self, call: Callable[[Scanner | PatternScanner], None]) -> None:
        if self._state.over:
            return
        state = self._state.copy()
        call(state.scanner)
        state.scanner.settle()  # the call decides what is held; it comes out with the next feed or flush
        self._state = state

    @property
    def armed(self) -> bool:
        """Whether a stop that ends at the very next character would count."""
        return self._state.scanner.armed

    @property
    def region(self) -> tuple[Any, Any] | None:
        """The pair ``(opener, closer)`` that the stream is asleep in (section 8)."""
        number = self._state.scanner.region
        return None if number is None else self._options.regions_as_given[number]

    @property
    def stops(self) -> StopSet:
        """The set that the stream was made from."""
        return self._state.stops

    @property
    def match(self) -> StopMatch | None:
        """The stop that ended the stream."""
        return self._state.match

    @property
    def held(self) -> Text:
        """Text that was seen and is not emitted yet."""
        return self._state.held

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_state": self._state}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._busy = threading.Lock()


class _Alone:
    """Section 5: one stream fed from two threads at once is a ``RuntimeError``."""

    def __init__(self, *streams: StopStream) -> None:
        # The same stream may stand in a batch twice: it is locked once.
        self.locks = list({id(stream): stream._busy for stream in streams}.values())

    def __enter__(self) -> None:
        for number, lock in enumerate(self.locks):
            if not lock.acquire(blocking=False):
                for taken in self.locks[:number]:
                    taken.release()
                raise RuntimeError(
                    "this stream is in use by another call, of another thread or around this one"
                )

    def __exit__(self, *_: object) -> None:
        for lock in self.locks:
            lock.release()


def feed_batch(
    streams: Iterable[StopStream], chunks: Iterable[Text], /
) -> tuple[list[Text], list[tuple[int, StopMatch]]]:
    """Feed one chunk to each stream: the emits, in order, and who has ended, as pairs of a position
    and its match.

    >>> stops = StopSet(["END"])
    >>> emits, ended = feed_batch([stops.stream(), stops.stream()], ["an E", "an END"])
    >>> emits, [(position, match.start) for position, match in ended]
    (['an ', 'an '], [(1, 3)])
    """
    streams = list(streams)
    chunks = list(chunks)
    for position, stream in enumerate(streams):
        if not isinstance(stream, StopStream):
            raise TypeError(f"streams[{position}] must be StopStream, not {type(stream).__name__}")
    if len(streams) != len(chunks):
        raise ValueError(f"{len(streams)} streams but {len(chunks)} chunks")
    with _Alone(*streams):
        states = {id(stream): stream._state.copy() for stream in streams}
        emits = []
        ended = []
        for position, (stream, chunk) in enumerate(zip(streams, chunks, strict=True)):
            state = states[id(stream)]
            emits.append(state.feed(chunk))
            if state.match is not None:
                ended.append((position, state.match))
        for stream in streams:  # all went well: only now is any stream changed
            stream._state = states[id(stream)]
        return emits, ended
