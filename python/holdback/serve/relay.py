"""The stream itself: chunks of the upstream in, frames for the client out, and hanging up at the match.

One chunk is read, cut and sent before the next is read. So a slow client slows its upstream, and what one stream keeps in memory is one
chunk and what its cutter holds back.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Literal

from holdback.serve.metrics import ADDED_BOUNDS, HELD_BOUNDS, Tally
from holdback.serve.upstream import Answer, UpstreamError
from holdback.wire import Cutter, WireError

End = Literal["stop", "upstream", "drained"]
"""How a stream ended well: by a stop, after which the gateway hung up; by the upstream; by a stop, and the upstream was read to its end."""

MALFORMED = "malformed"


class Meter:
    """What one stream has to tell at its end."""

    __slots__ = ("added", "bytes_in", "bytes_out", "held", "held_since")

    def __init__(self) -> None:
        self.added = Tally(ADDED_BOUNDS)
        self.held = Tally(HELD_BOUNDS)
        self.bytes_in = self.bytes_out = 0
        self.held_since: float | None = None

    def count(self, came: int, went: int, start: float, end: float) -> None:
        """A chunk of ``came`` bytes was cut between two moments, and ``went`` bytes left."""
        self.bytes_in += came
        self.bytes_out += went
        added = self.added
        taken = end - start
        added.counts[bisect_left(ADDED_BOUNDS, taken)] += (
            1  # as Tally.add does, without its call: this runs for every chunk
        )
        added.total += taken
        if went < came:
            if self.held_since is None:
                self.held_since = start
        elif self.held_since is not None:
            self.released(end)

    def released(self, now: float) -> None:
        """Nothing is held any more."""
        if self.held_since is not None:
            self.held.add(now - self.held_since)
            self.held_since = None


async def cut(
    answer: Answer, cutter: Cutter, send: Callable[[bytes], Awaitable[None]], meter: Meter, *, drain: bool
) -> End:
    """Send the answer on, cut. Returns once it is over and, unless ``drain`` says otherwise, has hung up if a stop ended it.

    Raises :class:`UpstreamError` when the upstream breaks off or sends what cannot be read; all that can be sent has been sent then.
    """
    read, feed, count = answer.next, cutter.feed, meter.count
    while True:
        try:
            chunk = await read()
        except UpstreamError:
            await _send_rest(
                send, _finished(cutter)
            )  # what was held is text that the upstream did send: nothing may be lost
            raise
        if not chunk:
            break
        start = perf_counter()
        try:
            data = feed(chunk)
        except WireError as error:
            await _send_rest(send, error.output)
            raise UpstreamError(MALFORMED, f"the upstream's stream cannot be read: {error}") from error
        if cutter.ended and cutter.matches and not drain:
            answer.close()  # first of all: from here on every token is generated in vain
            count(len(chunk), len(data), start, perf_counter())
            meter.held_since = None  # what was held was the stop
            await _send_rest(send, data)
            return "stop"
        count(len(chunk), len(data), start, perf_counter())
        if data:
            await send(data)
    try:
        data = cutter.finish()
    except WireError as error:
        await _send_rest(send, error.output)
        raise UpstreamError("upstream_broke_off", f"the upstream broke off: {error}") from error
    meter.released(perf_counter())
    meter.bytes_out += len(data)
    await _send_rest(send, data)
    return "drained" if cutter.matches else "upstream"


def _finished(cutter: Cutter) -> bytes:
    try:
        return cutter.finish()
    except WireError as error:
        return error.output


async def _send_rest(send: Callable[[bytes], Awaitable[None]], data: bytes) -> None:
    if data:
        await send(data)


def stop_header(cutter: Cutter, choices: int) -> str | None:
    r"""The value of ``x-holdback-stop``: each stop as a JSON string in ASCII, with its choice if there are several.

    ``None`` without a stop.

    >>> cutter = Cutter("ollama.generate", ["\n\n"])
    >>> _ = cutter.feed(b'{"response":"a\\n\\n","done":false}\n')
    >>> print(stop_header(cutter, 1))
    "\n\n"
    """
    told = [
        json.dumps(match.stop) + (f";choice={match.choice}" if choices > 1 else "")
        for match in cutter.matches
        if not match.reasoning or len(cutter.matches) == 1
    ]
    return ", ".join(told) or None
