"""The forms in which an answer comes, each with its way of being cut: frames, one body, Gemini's
array of events, or something that is passed on unread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from holdback._body_kind import BLANK, BOM, LINES
from holdback._sse import ArrayOfEvents, EventsOfArray
from holdback.wire import Cutter, WireError


class TooLongError(WireError):
    """An answer in one piece beyond the limit."""


class Form(Protocol):
    """An answer of one form on its way through its cutter."""

    def feed(self, data: bytes) -> bytes:
        """Take a piece; give what may be sent on. Raises `WireError`."""
        ...

    def finish(self) -> bytes:
        """The answer is over; give what is left. Raises `WireError`."""
        ...


class Frames:
    """A stream.

    `first` and `last` are frames that were given out, kept in the Responses API alone: how its
    streams fail depends on how they began, and on what came last.
    """

    def __init__(self, cutter: Cutter) -> None:
        self._cutter = cutter
        self._keeps = cutter.dialect == "openai.responses"
        self._begun = cutter.dialect in LINES
        self.first = self.last = b""

    def feed(self, data: bytes) -> bytes:
        if self._begun and not self._keeps:
            return self._cutter.feed(data)
        blank = b""
        if not self._begun:
            # White space before the first field of an event stream is for nobody, and stays.
            self._begun = True
            rest = data.removeprefix(BOM).lstrip(BLANK)
            blank, data = data[: len(data) - len(rest)], rest
        try:
            return blank + self._noted(self._cutter.feed, data)
        except WireError as error:
            error.output = blank + error.output
            raise

    def finish(self) -> bytes:
        return self._noted(self._cutter.finish)

    def _noted(self, step: Callable[..., bytes], *data: bytes) -> bytes:
        try:
            out = step(*data)
        except WireError as error:
            self.last = error.output or self.last
            raise
        if out and self._keeps:
            self.first, self.last = self.first or out, out
        return out


class EventArray:
    """Gemini's events as one JSON array."""

    def __init__(self, cutter: Cutter) -> None:
        self._cutter = cutter
        self._events, self._array = EventsOfArray(), ArrayOfEvents()

    def feed(self, data: bytes) -> bytes:
        made = self._array.feed(self._cutter.feed(self._events.feed(data)))
        stopped = self._cutter.ended and self._cutter.matches
        return made + self._array.finish() if stopped else made

    def finish(self) -> bytes:
        self._events.finish()
        return self._array.feed(self._cutter.finish()) + self._array.finish()


class Body:
    """One JSON value, kept until it is whole.

    Args:
        cutter: what cuts it.
        streams: a stream was asked for.
        limit: bytes that it may have.
    """

    def __init__(self, cutter: Cutter, *, streams: bool, limit: int) -> None:
        self._cutter, self._streams, self._limit = cutter, streams, limit
        self._kept = list[bytes]()
        self._size = 0
        self.was_lines = False
        """It turned out to be several lines where one body was asked for."""

    def feed(self, data: bytes) -> bytes:
        self._size += len(data)
        if self._size > self._limit:
            self._kept.clear()
            raise TooLongError(f"the answer is longer than {self._limit} bytes")
        self._kept.append(data)
        return b""

    def finish(self) -> bytes:
        data = b"".join(self._kept)
        self._kept.clear()
        if not data.strip():
            return data
        if self._cutter.dialect in LINES and not self._streams and _is_several_lines(data):
            self.was_lines = True
            return self._cutter.feed(data) + self._cutter.finish()
        return self._cutter.body(data.removeprefix(BOM))


class Unread:
    """Nothing that the dialect knows; it passes."""

    def feed(self, data: bytes) -> bytes:
        return data

    def finish(self) -> bytes:
        return b""


def _is_several_lines(data: bytes) -> bool:
    lines = [line.strip() for line in data.splitlines() if line.strip()]
    return len(lines) > 1 and all(line[:1] == b"{" and line[-1:] == b"}" for line in lines)
