"""An upstream's answer on its way to the client: passed on, cut as it streams, put together of a
stream, or cut as a body.

One chunk is read, cut and sent before the next is read. So a slow client slows its upstream, and
what one stream keeps in memory is one chunk and what its cutter holds back.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator

from holdback._answers import AnswerCutter
from holdback._failures import MALFORMED, UNREAD, code_of, failure_frame
from holdback._json import dump_json
from holdback._relay import arelay, has_all
from holdback._requests import Job
from holdback._sse import ArrayOfEvents
from holdback.dialects import DIALECTS, error_status
from holdback.serve.config import Config
from holdback.serve.meter import Metered
from holdback.serve.outbound import JSON_HEADERS, STOP_HEADER, Outbound
from holdback.serve.planning import make_cutter
from holdback.serve.record import Record
from holdback.serve.routes import Target
from holdback.serve.stop_header import stop_header
from holdback.serve.upstream import (
    BROKE_OFF,
    Answer,
    Headers,
    UpstreamError,
    end_to_end,
)
from holdback.serve.whole import Source, Whole
from holdback.wire import WireError, WireMatch

_OURS = (b"date", b"content-length", b"content-encoding")
"""Headers of the upstream's that no longer hold for an answer that was cut."""


async def pass_on(answer: Answer, out: Outbound, record: Record) -> None:
    """Byte for byte."""
    await out.start(answer.status, end_to_end(answer.headers, b"date"))
    while chunk := await answer.next():
        record.meter.passed(len(chunk))
        await out.body(chunk)
    await out.finish()


class Delivery:
    """An answer that has to be cut."""

    def __init__(
        self, config: Config, record: Record, out: Outbound, target: Target, job: Job
    ) -> None:
        self._config, self._record, self._out = config, record, out
        self._target, self._job, self._dialect = target, job, job.ask.dialect
        self._takes_frames = False
        self._cutting: AnswerCutter | None = None

    async def run(self, answer: Answer, *, as_events: bool, trailers: bool) -> None:
        """Send it.

        Args:
            answer: the upstream's, which is closed at the match.
            as_events: the client takes event streams; else Gemini's are one JSON array.
            trailers: the server can send them.

        Raises:
            UpstreamError: the upstream broke off, or sent what cannot be cut. All that can be sent
                has been sent then.
        """
        try:
            self._cutting = cutting = self._make_cutting(answer)
        except WireError as error:
            raise UpstreamError(UNREAD, str(error)) from error
        drains = self._config.on_match == "drain"
        metered = Metered(_Draining(cutting) if drains else cutting, self._record.meter)
        whole = None if self._job.ask.stream else self._make_whole(cutting)
        source = Source(answer, whole)
        try:
            async with contextlib.aclosing(
                arelay(source.pieces(), metered, answer.close)
            ) as pieces:
                if whole is None:
                    await self._stream(answer, cutting, pieces, as_events, trailers)
                else:
                    async for piece in pieces:
                        whole.add(piece)
        except WireError as error:
            raise _failure(error, cutting, metered.finishing) from error
        finally:
            self._record.matches = cutting.matches
            self._record.unread = cutting.frames_unread
        if has_all(metered):
            self._record.end = "stop"
            self._record.hung_up("match")
        elif cutting.matches:
            self._record.end = "drained"
        if whole is not None:
            await self._send_whole(answer, whole)

    def failure_frame(self, status: int, message: str, code: str) -> bytes | None:
        """The end of a stream that failed, if the client is being streamed to in frames."""
        if not self._takes_frames:
            return None
        return failure_frame(self._dialect, status, message, code, self._cutting)

    def _make_cutting(self, answer: Answer) -> AnswerCutter:
        return AnswerCutter(
            make_cutter(self._job, self._target.upstream, self._config),
            streams=self._job.mode in ("stream", "assemble"),
            label=answer.content_type,
            coding=answer.coding,
            on_unread="pass" if self._config.on_unread == "pass" else "fail",
            max_body_bytes=self._config.max_answer_bytes,
        )

    def _make_whole(self, cutting: AnswerCutter) -> Whole:
        ask = self._job.ask
        return Whole(
            cutting, ask.dialect, self._target.path, ask.body, self._config.max_answer_bytes
        )

    async def _stream(
        self,
        answer: Answer,
        cutting: AnswerCutter,
        pieces: AsyncGenerator[bytes],
        as_events: bool,
        trailers: bool,
    ) -> None:
        """To a client that streams."""
        labelled = answer.content_type == "text/event-stream"
        # What it is decides how it is sent, unless it says that it is a stream: then the head goes
        # out at once.
        first = b"" if labelled else await anext(pieces, b"")
        if cutting.kind == "body":
            headers = end_to_end(answer.headers, *_OURS) + self._stop_headers(cutting.matches)
            self._record.meter.bytes_out = len(first)
            await self._out.whole(answer.status, headers, first)
            return
        array = None if as_events or self._dialect != "gemini" else ArrayOfEvents()
        headers = end_to_end(answer.headers, *_OURS, *([b"content-type"] if array else []))
        if array is not None:
            headers.append((b"content-type", array.content_type))
            trailers = False
        self._takes_frames = array is None
        await self._out.start(answer.status, headers, trailers=trailers)

        def as_client_takes_it(piece: bytes) -> bytes:
            return array.feed(piece) if array is not None and cutting.kind == "stream" else piece

        await self._out.body(as_client_takes_it(first))
        async for piece in pieces:
            await self._out.body(as_client_takes_it(piece))
        if array is not None:
            await self._out.finish(array.finish() if cutting.kind == "stream" else b"")
            return
        named = stop_header(cutting.matches, self._job.ask.choices)
        commented = labelled and cutting.kind == "stream"
        await self._out.finish(self._comment(named) if commented else b"", named)

    def _comment(self, named: str | None) -> bytes:
        """The stop as a last line of the stream.

        It has no blank line after it. The standard dispatches nothing for a block of comments, but
        readers that exist dispatch an empty event at any blank line once they have seen an `id:`.
        """
        takes = DIALECTS[self._dialect].takes_comments
        if not named or not self._config.stop_comment or not takes:
            return b""
        return f": x-holdback-stop: {named}\n".encode()

    async def _send_whole(self, answer: Answer, whole: Whole) -> None:
        """An answer in one piece: the upstream's own, or one put together."""
        if whole.own is not None:
            headers, status, body = end_to_end(answer.headers, *_OURS), answer.status, whole.own
        else:
            headers = end_to_end(answer.headers, *_OURS, b"content-type") + JSON_HEADERS
            status, value = answer.status, whole.value()
            if whole.error is not None:
                status, value = error_status(self._dialect, whole.error), whole.error
                self._record.failed("upstream_error")
            body = dump_json(value)
        if whole.error is None:
            headers += self._stop_headers(whole.matches)
        self._record.meter.bytes_out = len(body)
        await self._out.whole(status, headers, body)

    def _stop_headers(self, matches: tuple[WireMatch, ...]) -> Headers:
        named = stop_header(matches, self._job.ask.choices)
        return [(STOP_HEADER, named.encode())] if named else []


class _Draining:
    """A cutter whose upstream is read to its end: a stop does not end the answer."""

    ended = False

    def __init__(self, cutting: AnswerCutter) -> None:
        self.feed, self.finish = cutting.feed, cutting.finish
        self.matches = ()


def _failure(error: WireError, cutting: AnswerCutter, finishing: bool) -> UpstreamError:
    """What cannot be cut, as the upstream's fault that it is."""
    code = code_of(error, cutting)
    if code == MALFORMED and finishing and cutting.kind == "stream":
        return UpstreamError(BROKE_OFF, f"the upstream broke off: {error}")
    return UpstreamError(code, f"the upstream's answer cannot be cut: {error}")
