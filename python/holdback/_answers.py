"""One answer to a request with stops, cut whatever it turns out to be: frames or one body,
compressed or not, labelled truly or not.

The law of everything that cuts with this: a request with stops ends in exactly one of three ways.
The stops were sent to an upstream that enforces and names them; every text of the answer was read
and cut; or the client is told that it could not be done. So nothing passes here that was not
understood: it is an error, for the adapter to answer in the protocol's own words.
"""

from __future__ import annotations

from typing import Literal

from holdback._body_kind import Kind, body_kind
from holdback._codings import CodingError, Decoder, codings_of
from holdback._forms import Body, EventArray, Form, Frames, TooLongError, Unread
from holdback.wire import Cutter, WireError, WireMatch

__all__ = ["AnswerCutter", "TooLongError", "UnreadError"]

MAX_BODY_BYTES = 64 << 20
"""The longest answer in one piece that is kept to be cut."""

MAX_START_BYTES = 64 << 10
"""White space, or an incomplete first line, after which it is decided what an answer is."""

SHOWN = 60
"""Characters of an unread beginning that a message shows."""


class UnreadError(WireError):
    """An answer in which no text was found that could be cut, and which was not empty."""


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
        self._streams, self._limit = streams, max_body_bytes
        self._label = label.partition(";")[0].strip().lower()
        self._passes = on_unread == "pass"
        self._start = b""  # until it is known
        self._form: Form | None = None
        self._done = False
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
    def first_and_last(self) -> tuple[bytes, bytes]:
        """Frames that were given out, as `Frames` keeps them."""
        form = self._form
        return (form.first, form.last) if isinstance(form, Frames) else (b"", b"")

    def pass_all(self) -> None:
        """It is no answer but an error of the upstream's own, so it passes whatever it is."""
        self.kind, self._form = "other", Unread()

    def feed(self, data: bytes, /) -> bytes:
        """Take a piece, cut anywhere; give what may be sent on. Raises `WireError`."""
        if self._decoder is None:
            return self._feed(data)
        out = list[bytes]()
        try:
            for piece in self._decoder.pieces(data):
                out.append(self._feed(piece))
                if self._stopped:
                    break
        except CodingError as error:
            raise UnreadError(str(error), b"".join(out) + self._rest()) from error
        except WireError as error:
            error.output = b"".join(out) + error.output
            raise
        return b"".join(out)

    def finish(self) -> bytes:
        """The answer is over; give what is left. Raises `WireError`."""
        if self._done or self._stopped:
            return b""
        if self._decoder is not None:
            try:
                self._decoder.finish()
            except CodingError as error:
                raise WireError(str(error), self._rest()) from error
        out = b""
        form = self._form
        if form is None:
            form = self._decide(over=True) or Unread()
            out = form.feed(self._taken())
        out += form.finish()
        if isinstance(form, Body) and form.was_lines:
            self.kind = "stream"
        self._done = True
        return out

    @property
    def _stopped(self) -> bool:
        return self.ended and bool(self.matches)

    def _feed(self, data: bytes) -> bytes:
        if self._form is not None:
            return self._form.feed(data)
        self._start += data
        form = self._decide(over=len(self._start) > MAX_START_BYTES)
        return form.feed(self._taken()) if form is not None else b""

    def _taken(self) -> bytes:
        start, self._start = self._start, b""
        return start

    def _decide(self, *, over: bool) -> Form | None:
        """What the answer is, by its start, if that can be told yet."""
        cutter = self.cutter
        kind = body_kind(
            cutter.dialect, self._start, streams=self._streams, label=self._label, over=over
        )
        if kind == "other" and not self._passes:
            shown = self._start[:SHOWN].decode("utf-8", "replace")
            raise UnreadError(
                f"the answer is neither a stream nor a body of {cutter.dialect}: it begins with "
                f"{shown!r}"
            )
        self.kind = kind
        if kind == "stream":
            self._form = Frames(cutter)
        elif kind == "array":
            self._form = EventArray(cutter)
        elif kind == "body":
            self._form = Body(cutter, streams=self._streams, limit=self._limit)
        elif kind == "other":
            self._form = Unread()
        return self._form

    def _rest(self) -> bytes:
        """What a stream that cannot be read on still holds."""
        if not isinstance(self._form, Frames):
            return b""
        try:
            return self._form.finish()
        except WireError as error:
            return error.output
