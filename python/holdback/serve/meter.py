"""What one answer has to report at its end: chunks, bytes, and the time that cutting took and cost.

A stream counts for itself, in plain numbers: a counter of prometheus_client costs more than cutting
a frame.
"""

from __future__ import annotations

from time import perf_counter

from holdback._relay import Cutting, has_all
from holdback.serve.metrics import ADDED_BOUNDS, HELD_BOUNDS, Tally
from holdback.wire import WireMatch

TIMED = 16
"""One chunk in so many is timed, the first of every stream among them: timing all costs as much as
cutting them.
"""


class Meter:
    """The figures of one answer."""

    __slots__ = ("added", "bytes_in", "bytes_out", "chunks", "held", "held_since")

    def __init__(self) -> None:
        self.added = Tally(ADDED_BOUNDS)
        self.held = Tally(HELD_BOUNDS)
        self.chunks = self.bytes_in = self.bytes_out = 0
        self.held_since: float | None = None

    def passed(self, size: int) -> None:
        """Bytes went on as they came."""
        self.bytes_in += size
        self.bytes_out += size

    def note_held(self, holds: bool) -> None:
        """A chunk gave out fewer bytes than it brought, so some are held; or as many, so what was
        held is out.
        """
        now = perf_counter()
        if not holds:
            self.note_released(now)
        elif self.held_since is None:
            self.held_since = now

    def note_released(self, now: float) -> None:
        """Nothing is held any more."""
        if self.held_since is not None:
            self.held.add(now - self.held_since)
            self.held_since = None


class Metered:
    """Something that cuts, with a meter on it."""

    def __init__(self, cutting: Cutting, meter: Meter) -> None:
        self._cutting, self._meter = cutting, meter
        self._feed = cutting.feed
        self.finishing = False
        """The input is over: what cannot be read from now on was never sent to its end."""

    @property
    def ended(self) -> bool:
        """As in what is metered."""
        return self._cutting.ended

    @property
    def matches(self) -> tuple[WireMatch, ...]:
        """As in what is metered."""
        return self._cutting.matches

    def feed(self, data: bytes, /) -> bytes:
        """As in what is metered."""
        meter = self._meter
        if meter.chunks % TIMED:
            out = self._feed(data)
        else:
            start = perf_counter()
            out = self._feed(data)
            meter.added.add(perf_counter() - start)
        came, went = len(data), len(out)
        meter.chunks += 1
        meter.bytes_in += came
        meter.bytes_out += went
        if went < came or meter.held_since is not None:
            if has_all(self._cutting):
                meter.held_since = None  # what was held was the stop
            else:
                meter.note_held(went < came)
        return out

    def finish(self) -> bytes:
        """As in what is metered."""
        self.finishing = True
        out = self._cutting.finish()
        self._meter.note_released(perf_counter())
        self._meter.bytes_out += len(out)
        return out
