"""An upstream's answer on its way to the client: passed on, cut as it streams, put together of a
stream, or cut as a body.

One chunk is read, cut and sent before the next is read. So a slow client slows its upstream, and
what one stream keeps in memory is one chunk and what its cutter holds back.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from time import perf_counter

from holdback._relay import Cutting, arelay, has_all
from holdback.serve.bodies import Assembly, assembly
from holdback.serve.config import Config
from holdback.serve.meter import Metered
from holdback.serve.outbound import JSON_HEADERS, STOP_HEADER, Outbound
from holdback.serve.planning import Job, make_cutter
from holdback.serve.record import Record
from holdback.serve.routes import Target
from holdback.serve.sse import ArrayOfEvents, dump_json, objects
from holdback.serve.upstream import MALFORMED, TOO_LONG, Answer, Headers, UpstreamError, end_to_end
from holdback.wire import Cutter, WireError

MAX_NAMED = 4096
"""Characters of `x-holdback-stop` at the most: many clients refuse an answer with a longer header.
A longer one is left out.
"""
_STREAM_TYPES = (
    "text/event-stream",
    "application/x-ndjson",
    "application/jsonl",
    "application/ndjson",
)
_VAGUE_TYPES = ("", "text/plain", "application/octet-stream")
_LINES = ("ollama.chat", "ollama.generate")


async def pass_on(answer: Answer, out: Outbound, record: Record, *, decoded: bool) -> None:
    """Byte for byte. If the body was `decoded` on its way in, its headers no longer hold."""
    decoded = decoded and any(name == b"content-encoding" for name, _ in answer.headers)
    without = (b"content-length", b"content-encoding") if decoded else ()
    await out.start(answer.status, end_to_end(answer.headers, b"date", *without))
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
        self._path, self._job, self._dialect = target.path, job, job.ask.dialect
        self._cutter = make_cutter(job, target.upstream, config)
        self.takes_frames = False
        """The client is being streamed to, and reads an error as a frame of the stream."""

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
            if not self._is_stream(answer):
                await self._cut_body(answer)
            elif not self._job.ask.stream:
                await self._put_together(answer)
            elif as_events or self._dialect != "gemini":
                await self._cut_events(answer, trailers)
            else:
                await self._cut_array(answer)
        finally:
            self._record.matches = self._cutter.matches

    def _is_stream(self, answer: Answer) -> bool:
        """A stream was asked for: what says nothing of its kind, or not that it is JSON, will be
        one.
        """
        kind = answer.content_type
        asked = self._job.mode in ("stream", "assemble")
        return kind in _STREAM_TYPES or (
            asked and (self._dialect in _LINES or kind in _VAGUE_TYPES)
        )

    async def _cut_events(self, answer: Answer, trailers: bool) -> None:
        self.takes_frames = True
        headers = end_to_end(answer.headers, b"date", b"content-length", b"content-encoding")
        await self._out.start(answer.status, headers, trailers=trailers)
        await self._relay(answer, self._out.body)
        named = self._named_stop()
        comment = b""
        # google-genai takes a comment for broken JSON, and lines of JSON have none.
        if (
            named
            and self._config.stop_comment
            and answer.content_type == "text/event-stream"
            and self._dialect != "gemini"
        ):
            comment = f": x-holdback-stop: {named}\n\n".encode()
        await self._out.finish(comment, named)

    async def _cut_array(self, answer: Answer) -> None:
        """Gemini's events as one JSON array: what it streams to clients that do not ask for
        `alt=sse`.
        """
        array = ArrayOfEvents()
        without = (b"date", b"content-length", b"content-encoding", b"content-type")
        headers = end_to_end(answer.headers, *without)
        headers.append((b"content-type", array.content_type))
        await self._out.start(answer.status, headers)
        await self._relay(answer, lambda data: self._out.body(array.feed(data)))
        await self._out.finish(array.finish())

    async def _put_together(self, answer: Answer) -> None:
        """One body out of the stream that was asked for in the client's stead."""
        whole = assembly(self._dialect, self._path, self._job.ask.body)
        limit, meter = self._config.max_answer_bytes, self._record.meter

        async def take(data: bytes) -> None:
            if meter.bytes_out > limit:
                raise UpstreamError(TOO_LONG, f"the upstream's answer is longer than {limit} bytes")
            _add(whole, data)

        await self._relay(answer, take)
        without = (b"date", b"content-length", b"content-encoding", b"content-type")
        headers = end_to_end(answer.headers, *without) + JSON_HEADERS
        if whole.error is not None:
            self._record.failed("upstream_error")
            await self._send_whole(502, headers, dump_json(whole.error))
            return
        body = whole.body()
        if body is None:
            raise UpstreamError("upstream_broke_off", "the upstream ended before its answer did")
        await self._send_whole(answer.status, self._with_stop(headers), dump_json(body))

    async def _cut_body(self, answer: Answer) -> None:
        raw = await answer.read(self._config.max_answer_bytes)
        meter, start = self._record.meter, perf_counter()
        try:
            body = self._cutter.body(raw)
        except WireError as error:
            raise UpstreamError(
                MALFORMED, f"the upstream's answer cannot be read: {error}"
            ) from error
        meter.added.add(perf_counter() - start)
        meter.chunks, meter.bytes_in = 1, len(raw)
        headers = end_to_end(answer.headers, b"date", b"content-length", b"content-encoding")
        await self._send_whole(answer.status, self._with_stop(headers), body)

    async def _relay(self, answer: Answer, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send the stream on, cut. Unless `on_match` is `drain`, the upstream has been left when it
        returns if a stop ended it.
        """
        drains = self._config.on_match == "drain"
        cutting: Cutting = _Draining(self._cutter) if drains else self._cutter
        metered = Metered(cutting, self._record.meter)
        try:
            async with contextlib.aclosing(
                arelay(_pieces(answer), metered, answer.close)
            ) as pieces:
                async for piece in pieces:
                    await send(piece)
        except WireError as error:
            if metered.finishing:
                raise UpstreamError(
                    "upstream_broke_off", f"the upstream broke off: {error}"
                ) from error
            raise UpstreamError(
                MALFORMED, f"the upstream's stream cannot be read: {error}"
            ) from error
        if has_all(metered):
            self._record.end = "stop"
            self._record.hung_up("match")
        elif self._cutter.matches:
            self._record.end = "drained"

    async def _send_whole(self, status: int, headers: Headers, body: bytes) -> None:
        self._record.meter.bytes_out = len(body)
        await self._out.whole(status, headers, body)

    def _with_stop(self, headers: Headers) -> Headers:
        named = self._named_stop()
        return [*headers, (STOP_HEADER, named.encode())] if named else headers

    def _named_stop(self) -> str | None:
        named = stop_header(self._cutter, self._job.ask.choices)
        return named if named and len(named) <= MAX_NAMED else None


class _Draining:
    """A cutter whose upstream is read to its end: a stop does not end the answer."""

    ended = False

    def __init__(self, cutter: Cutter) -> None:
        self.feed, self.finish = cutter.feed, cutter.finish
        self.matches = ()


async def _pieces(answer: Answer) -> AsyncIterator[bytes]:
    while piece := await answer.next():
        yield piece


def _add(whole: Assembly, data: bytes) -> None:
    """Add the events of whole frames. Raises `UpstreamError` for a shape that no answer has."""
    try:
        for event in objects(data):
            whole.add(event)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise UpstreamError(
            MALFORMED, "the upstream sends events that no answer can be made of"
        ) from error


def stop_header(cutter: Cutter, choices: int) -> str | None:
    r"""The value of `x-holdback-stop`: each stop as a JSON string in ASCII, with its choice if
    there are several.

    `None` without a stop.

    >>> cutter = Cutter("ollama.generate", ["\n\n"])
    >>> _ = cutter.feed(b'{"response":"a\\n\\n","done":false}\n')
    >>> print(stop_header(cutter, 1))
    "\n\n"
    """
    named = [
        json.dumps(match.stop) + (f";choice={match.choice}" if choices > 1 else "")
        for match in cutter.matches
        if not match.reasoning or len(cutter.matches) == 1
    ]
    return ", ".join(named) or None
