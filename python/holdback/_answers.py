"""One answer to a request with stops, cut whatever it turns out to be: frames or one body,
compressed or not, labelled truly or not.

The law of everything that cuts with this: a request with stops ends in exactly one of three ways.
The stops were sent to an upstream that enforces and names them; every text of the answer was read
and cut; or the client is told that it could not be done. So nothing passes here that was not
understood: it is an error, for the adapter to answer in the protocol's own words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from holdback._body_kind import BLANK, BOM, LINES, Kind, body_kind
from holdback._codings import CodingError, Decoder, codings_of
from holdback._sse import ArrayOfEvents, EventsOfArray
from holdback.wire import Cutter, WireError, WireMatch

MAX_BODY_BYTES = 64 << 20
"""The longest answer in one piece that is kept to be cut."""

MAX_START_BYTES = 64 << 10
"""White space, or an incomplete first line, after which it is decided what an answer is."""

SHOWN = 60
"""Characters of an unread beginning that a message shows."""


class UnreadError(WireError):
    """An answer in which no text was found that could be cut, and which was not empty."""


class TooLongError(WireError):
    """An answer in one piece beyond the limit."""


class AnswerCutter:
    """Cuts one answer. It has what a `Cutter` has: `feed`, `finish`, `ended`, `matches`.

    Args:
        cutter: of the answer's dialect, not used before.
        streams: a stream was asked for.
        label: the answer's content type, with or without parameters.
        coding: its `content-encoding`; what comes out is not encoded.
        on_unread: `"fail"` or `"pass"`, for a body that is nothing the dialect knows.
        max_body_bytes: limit of an answer in one piece.

    Raises:
        WireError: for a coding that cannot be decoded.
    """

    def __init__(
        self,
        cutter: Cutter,
        *,
        streams: bool,
        label: str = "",
        coding: str = "",
        on_unread: Literal["fail", "pass"] = "fail",
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        self.cutter = cutter
        self.kind: Kind | None = None
        """What it is, once that is known."""
        self.first = self.last = b""
        """Frames that were given out, kept in the Responses API alone: how its streams fail depends
        on how they began, and on what came last."""
        self._keeps_frames = cutter.dialect == "openai.responses"
        self._streams = streams
        self._label = label.partition(";")[0].strip().lower()
        self._passes = on_unread == "pass"
        self._limit = max_body_bytes
        self._kept = list[bytes]()
        self._size = 0
        self._done = False
        self._array: tuple[EventsOfArray, ArrayOfEvents] | None = None
        self._decoder: Decoder | None = None
        if codings_of(coding):
            try:
                self._decoder = Decoder(coding)
            except CodingError as error:
                raise UnreadError(str(error)) from error

    @property
    def ended(self) -> bool:
        """The end of the answer has been given out."""
        return self.cutter.ended if self.kind in ("stream", "array") else self._done

    @property
    def matches(self) -> tuple[WireMatch, ...]:
        """The stops found so far."""
        return self.cutter.matches

    @property
    def frames_unread(self) -> int:
        """Frames that could not be placed; an answer that is nothing the dialect knows is one."""
        return self.cutter.frames_unread + (self.kind == "other")

    @property
    def stopped(self) -> bool:
        """A stop ended it."""
        return self.ended and bool(self.matches)

    def feed(self, data: bytes, /) -> bytes:
        """Take a piece, cut anywhere; give what may be sent on. Raises `WireError`."""
        if self._decoder is None:
            return self._feed(data)
        out = list[bytes]()
        try:
            for piece in self._decoder.pieces(data):
                out.append(self._feed(piece))
                if self.stopped:
                    break
        except CodingError as error:
            raise UnreadError(str(error), b"".join(out) + self._rest()) from error
        except WireError as error:
            error.output = b"".join(out) + error.output
            raise
        return b"".join(out)

    def finish(self) -> bytes:
        """The answer is over; give what is left. Raises `WireError`."""
        if self._done or self.stopped:
            return b""
        if self._decoder is not None:
            try:
                self._decoder.finish()
            except CodingError as error:
                raise WireError(str(error), self._rest()) from error
        if self.kind is None:
            start = self._taken()
            self.kind = self._decide(start, over=True)
            out = self._feed_start(start)
        else:
            out = b""
        out += self._finish_known()
        self._done = True
        return out

    def _feed(self, data: bytes) -> bytes:
        if self.kind == "stream" and not self._keeps_frames:
            return self.cutter.feed(data)
        if self.kind is None:
            self._kept.append(data)
            start = self._taken()
            self.kind = self._decide(start, over=len(start) > MAX_START_BYTES)
            if self.kind is None:
                self._kept.append(start)
                return b""
            return self._feed_start(start)
        return self._feed_known(data)

    def _feed_start(self, data: bytes) -> bytes:
        """White space before the first field of an event stream is for nobody, and stays."""
        if self.kind != "stream" or self.cutter.dialect in LINES:
            return self._feed_known(data)
        rest = data.removeprefix(BOM).lstrip(BLANK)
        return data[: len(data) - len(rest)] + self._feed_known(rest)

    def _decide(self, start: bytes, *, over: bool) -> Kind | None:
        kind = body_kind(
            self.cutter.dialect, start, streams=self._streams, label=self._label, over=over
        )
        if kind == "other" and not self._passes:
            shown = start[:SHOWN].decode("utf-8", "replace")
            raise UnreadError(
                f"the answer is neither a stream nor a body of {self.cutter.dialect}: it begins "
                f"with {shown!r}"
            )
        if kind == "array":
            self._array = EventsOfArray(), ArrayOfEvents()
        return kind

    def _feed_known(self, data: bytes) -> bytes:
        if self.kind == "stream":
            return self._noted(self.cutter.feed, data)
        if self._array is not None:
            events, array = self._array
            made = array.feed(self.cutter.feed(events.feed(data)))
            return made + array.finish() if self.stopped else made
        if self.kind == "other":
            return data
        self._keep(data)
        return b""

    def _finish_known(self) -> bytes:
        if self.kind == "stream":
            return self._noted(self.cutter.finish)
        if self._array is not None:
            events, array = self._array
            events.finish()
            return array.feed(self.cutter.finish()) + array.finish()
        if self.kind == "other":
            return b""
        return self._cut_body(self._taken())

    def _noted(self, step: Callable[..., bytes], *data: bytes) -> bytes:
        """A step of the cutter, with what it gave out kept where that is asked for."""
        try:
            out = step(*data)
        except WireError as error:
            self.last = error.output or self.last
            raise
        if out and self._keeps_frames:
            self.first, self.last = self.first or out, out
        return out

    def _cut_body(self, data: bytes) -> bytes:
        if not data.strip():
            return data
        if self.cutter.dialect in LINES and not self._streams and _is_several_lines(data):
            self.kind = "stream"  # lines where one body was asked for
            return self.cutter.feed(data) + self.cutter.finish()
        return self.cutter.body(data.removeprefix(BOM))

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._limit:
            self._kept.clear()
            raise TooLongError(f"the answer is longer than {self._limit} bytes")
        self._kept.append(data)

    def _taken(self) -> bytes:
        data = b"".join(self._kept)
        self._kept.clear()
        self._size = 0
        return data

    def _rest(self) -> bytes:
        """What a stream that cannot be read on still holds."""
        if self.kind != "stream":
            return b""
        try:
            return self.cutter.finish()
        except WireError as error:
            return error.output


def _is_several_lines(data: bytes) -> bool:
    lines = [line.strip() for line in data.splitlines() if line.strip()]
    return len(lines) > 1 and all(line[:1] == b"{" and line[-1:] == b"}" for line in lines)
