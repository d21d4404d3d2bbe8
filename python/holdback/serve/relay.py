"""The stream itself: chunks of the upstream in, frames for the client out, and hanging up at the
match.

One chunk is read, cut and sent before the next is read. So a slow client slows its upstream, and
what one stream keeps in memory is one chunk and what its cutter holds back.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Literal

from holdback.serve.metrics import ADDED_BOUNDS, HELD_BOUNDS, Tally
from holdback.serve.upstream import Answer, UpstreamError
from holdback.wire import Cutter, WireError

End = Literal["stop", "upstream", "drained"]
"""How a stream ended well: by a stop, after which the gateway hung up; by the upstream; by a stop,
and the upstream was read to its end.
"""

MALFORMED = "malformed"

TIMED = 16
"""One chunk in so many is timed, the first of every stream among them: timing all costs as much as
cutting them.
"""


class Meter:
    """What one stream has to tell at its end."""

    __slots__ = ("added", "bytes_in", "bytes_out", "chunks", "held", "held_since")

    def __init__(self) -> None:
        self.added = Tally(ADDED_BOUNDS)
        self.held = Tally(HELD_BOUNDS)
        self.chunks = self.bytes_in = self.bytes_out = 0
        self.held_since: float | None = None

    def kept(self, fewer: bool) -> None:
        """A chunk gave out fewer bytes than it brought, so some are held; or as many, so what was
        held is out.
        """
        now = perf_counter()
        if not fewer:
            self.released(now)
        elif self.held_since is None:
            self.held_since = now

    def released(self, now: float) -> None:
        """Nothing is held any more."""
        if self.held_since is not None:
            self.held.add(now - self.held_since)
            self.held_since = None


async def cut(
    answer: Answer,
    cutter: Cutter,
    send: Callable[[bytes], Awaitable[None]],
    meter: Meter,
    *,
    drain: bool,
) -> End:
    """Send the answer on, cut. Returns once it is over and, unless ``drain`` says otherwise, has
    hung up if a stop ended it.

    Raises :class:`UpstreamError` when the upstream breaks off or sends what cannot be read; all
    that can be sent has been sent then.
    """
    read, feed = answer.next, cutter.feed
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
        try:
            if meter.chunks % TIMED:
                data = feed(chunk)
            else:
                start = perf_counter()
                data = feed(chunk)
                meter.added.add(perf_counter() - start)
        except WireError as error:
            await _send_rest(send, error.output)
            raise UpstreamError(
                MALFORMED, f"the upstream's stream cannot be read: {error}"
            ) from error
        came, went = len(chunk), len(data)
        meter.chunks += 1
        meter.bytes_in += came
        meter.bytes_out += went
        if cutter.ended and cutter.matches and not drain:
            answer.close()  # first of all: from here on every token is generated in vain
            meter.held_since = None  # what was held was the stop
            await _send_rest(send, data)
            return "stop"
        if went < came or meter.held_since is not None:
            meter.kept(went < came)
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
    r"""The value of ``x-holdback-stop``: each stop as a JSON string in ASCII, with its choice if
    there are several.

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
