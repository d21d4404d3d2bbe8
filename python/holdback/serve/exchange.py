"""One request and its answer, from the client's first byte to the last line of the log.

The order of things: the request is read and planned, the upstream is asked while somebody watches
whether the client leaves, and the answer goes back untouched, cut as it streams, put together, or
cut as a whole.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from holdback.serve import failures
from holdback.serve.asking import BadRequestError, read_ask
from holdback.serve.bodies import assembly
from holdback.serve.config import Config
from holdback.serve.log import log_event
from holdback.serve.metrics import Metrics
from holdback.serve.planning import Job, Mode, make_cutter, prepare
from holdback.serve.relay import MALFORMED, Meter, cut, stop_header
from holdback.serve.routes import Target, address, find_target, has_dot_segments
from holdback.serve.sse import ArrayOfEvents, dump_json, objects
from holdback.serve.upstream import TOO_LONG, Answer, Client, Headers, UpstreamError, end_to_end
from holdback.wire import Cutter, Dialect, WireError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_TOLD = 4096
"""Characters of ``x-holdback-stop`` at the most: many clients refuse an answer with a longer
header. A longer one is left out.
"""
STOP_HEADER, ID_HEADER = b"x-holdback-stop", b"x-holdback-id"
_STREAM_TYPES = (
    "text/event-stream",
    "application/x-ndjson",
    "application/jsonl",
    "application/ndjson",
)
_VAGUE_TYPES = ("", "text/plain", "application/octet-stream")
_LINES = ("ollama.chat", "ollama.generate")


class _RefusalError(Exception):
    """The request cannot be served; nothing has been answered yet."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param


class _ClientGoneError(Exception):
    """Nobody is left to answer."""


class Exchange:
    """One request and its answer."""

    def __init__(
        self,
        config: Config,
        metrics: Metrics,
        client: Client,
        scope: Message,
        receive: Receive,
        send: Send,
    ) -> None:
        self.config, self.metrics, self.client = config, metrics, client
        self.scope, self.receive, self.send = scope, receive, send
        self.begin = perf_counter()
        raw_path = (
            (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
        )
        if not raw_path.startswith("/"):  # some servers hand on `GET http://host/path` as it came
            raw_path = (
                urlsplit(raw_path).path
                if raw_path.startswith(("http://", "https://"))
                else raw_path
            )
        self.raw_path = re.sub(
            "%3a", ":", raw_path, flags=re.IGNORECASE
        )  # some clients escape the one in Gemini's paths
        self.id = uuid4().hex
        self.target: Target | None = None
        self.mode: Mode | None = None
        self.job: Job | None = None
        self.cutter: Cutter | None = None
        self.meter = Meter()
        self.status = 0
        self.first_byte: float | None = None
        self.error: str | None = None
        self.end: str = "upstream"
        self.trailers = self.as_array = False
        self.body_left = True  # the client has not had the end of its answer yet

    @property
    def dialect(self) -> Dialect | None:
        """Of the request; ``None`` if it is not for an answer, or nobody is there to give one."""
        return self.target.dialect if self.target else None

    @property
    def upstream_name(self) -> str:
        """As logs and metrics tell it."""
        return self.target.upstream.name if self.target else ""

    async def run(self) -> None:
        """Serve it. Whatever happens, the client is told in its own dialect, and the log and the
        metrics hear of it.
        """
        try:
            await self._serve()
        except _RefusalError as failed:
            self.end, self.error = "error", failed.code
            error = failures.body(
                self.dialect, failed.status, str(failed), code=failed.code, param=failed.param
            )
            await self._start(
                failed.status, [(b"content-type", b"application/json")], json.dumps(error).encode()
            )
        except _ClientGoneError:
            self.end = "client_gone"
        except asyncio.CancelledError:
            self.end = "shutdown"
            raise
        except Exception:
            self.end, self.error = "error", "internal"
            logging.getLogger("holdback.serve").exception("internal error")
            if not self.status:
                error = failures.body(
                    self.dialect, 500, "internal error of the gateway", code="internal"
                )
                await self._start(
                    500, [(b"content-type", b"application/json")], json.dumps(error).encode()
                )
        finally:
            self._report()

    async def _serve(self) -> None:
        if not self.raw_path.startswith(
            "/"
        ):  # behind the upstream's address, `@host/` would be another host's
            raise _RefusalError(400, "bad_request", "the path does not begin with /")
        if has_dot_segments(self.raw_path):
            raise _RefusalError(400, "bad_request", "the path has dot segments")
        method = self.scope["method"]
        target = self.target = find_target(method, self.raw_path, self.config.upstreams)
        if target is None:
            raise _RefusalError(404, "not_found", "no upstream is configured for this path")
        query = self.scope["query_string"].decode("latin-1")
        if target.dialect is None:
            allowed = self.config.other_paths
            if allowed == "none" or (allowed == "read" and method not in ("GET", "HEAD")):
                raise _RefusalError(
                    404,
                    "not_found",
                    f"{method} of this path is not served here (setting other_paths)",
                )
            body, path = await self._request_body(), target.path
        else:
            raw = await self._request_body()
            try:
                ask = read_ask(target.dialect, target.path, raw, self.config)
                self.job = prepare(ask, target.upstream, target.path, query, self.config)
            except BadRequestError as error:
                raise _RefusalError(400, "bad_request", str(error), error.param) from error
            body, path, query, self.mode = (
                self.job.body,
                self.job.path,
                self.job.query,
                self.job.mode,
            )
        await self._forward(method, address(target.upstream, path, query), body)

    async def _request_body(self) -> bytes:
        limit, pieces, size = self.config.max_request_bytes, [], 0
        while True:
            try:
                message = await asyncio.wait_for(self.receive(), self.config.request_timeout)
            except asyncio.TimeoutError as error:
                raise _RefusalError(
                    408, "request_timeout", "the request has not arrived in time"
                ) from error
            if message["type"] == "http.disconnect":
                raise _ClientGoneError
            piece = message.get("body", b"")
            size += len(piece)
            if size > limit:
                raise _RefusalError(
                    413, "request_too_large", f"the request is longer than {limit} bytes"
                )
            pieces.append(piece)
            if not message.get("more_body"):
                return b"".join(pieces)

    # --- the upstream
    # ---------------------------------------------------------------------------------------------

    async def _forward(self, method: str, url: str, body: bytes) -> None:
        headers = end_to_end(
            self.scope["headers"], b"host", b"content-length", b"expect", b"accept-encoding"
        )
        cutting = self.mode not in (None, "pass")
        accepted = [
            (name, value) for name, value in self.scope["headers"] if name == b"accept-encoding"
        ]
        headers += [(b"accept-encoding", b"identity")] if cutting else accepted
        if self.mode == "assemble":
            headers = [(name, value) for name, value in headers if name != b"accept"] + [
                (b"accept", b"*/*")
            ]
        gone = asyncio.ensure_future(self._disconnected())
        opening = asyncio.ensure_future(
            self.client.open(method, url, headers, body, decompress=cutting)
        )
        answer: Answer | None = None
        self.metrics.open.labels(self.upstream_name).inc()
        try:
            answer = await self._opened(opening, gone)
            await self._answer(answer)
        except UpstreamError as error:
            if gone.done():
                self._cancelled("client_gone")
                raise _ClientGoneError from error
            self.end, self.error = "error", error.kind
            if error.kind in (MALFORMED, TOO_LONG):  # it would go on
                self._cancelled("error")
            await self._tell(error)
        except _ClientGoneError:
            self._cancelled("client_gone")
            raise
        except asyncio.CancelledError:
            self._cancelled("shutdown")
            raise
        finally:
            self.metrics.open.labels(self.upstream_name).dec()
            opening.cancel()
            gone.cancel()
            if answer is not None:
                answer.close()

    async def _opened(self, opening: asyncio.Future[Answer], gone: asyncio.Future[None]) -> Answer:
        """The upstream's answer once its head is there.

        From then on, a client that leaves closes it, which ends any waiting for it.
        """
        await asyncio.wait((gone, opening), return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():
            raise _ClientGoneError
        answer = await opening
        self.first_byte = perf_counter() - self.begin

        def hang_up(_: object) -> None:
            if self.body_left:
                answer.close()

        gone.add_done_callback(hang_up)
        return answer

    async def _disconnected(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass

    def _cancelled(self, reason: str) -> None:
        self.metrics.cancels.labels(self.upstream_name, reason).inc()

    # --- the answer
    # -----------------------------------------------------------------------------------------------

    async def _answer(self, answer: Answer) -> None:
        job, target = self.job, self.target
        assert target is not None
        good = 200 <= answer.status < 300 and answer.status != 204
        if job is None or job.stops is None or not good:
            await self._pass(answer)
            return
        self.cutter = make_cutter(job, target.upstream, self.config)
        kind = answer.content_type
        # A stream was asked for: what says nothing of its kind, or not that it is JSON, will be
        # one.
        asked = job.mode in ("stream", "assemble")
        streams = kind in _STREAM_TYPES or (
            asked and (job.ask.dialect in _LINES or kind in _VAGUE_TYPES)
        )
        if not streams:
            await self._cut_body(answer, self.cutter)
        elif job.ask.stream:
            await self._cut_stream(answer, self.cutter, job)
        else:
            await self._put_together(answer, self.cutter, job)

    async def _pass(self, answer: Answer) -> None:
        """Byte for byte."""
        decompressed = self.mode not in (None, "pass") and any(
            name == b"content-encoding" for name, _ in answer.headers
        )
        without = (b"content-length", b"content-encoding") if decompressed else ()
        await self._start(answer.status, end_to_end(answer.headers, b"date", *without))
        while chunk := await answer.next():
            self.meter.bytes_in += len(chunk)
            self.meter.bytes_out += len(chunk)
            await self._body(chunk)
        await self._finish()

    async def _cut_stream(self, answer: Answer, cutter: Cutter, job: Job) -> None:
        headers = end_to_end(answer.headers, b"date", b"content-length", b"content-encoding")
        as_array = (
            ArrayOfEvents()
            if job.ask.dialect == "gemini" and "alt=sse" not in self.scope["query_string"].decode()
            else None
        )
        if as_array:
            self.as_array = True
            headers = [(name, value) for name, value in headers if name != b"content-type"]
            headers.append((b"content-type", as_array.content_type))
        self.trailers = "http.response.trailers" in (self.scope.get("extensions") or {})
        if self.trailers:
            headers.append((b"trailer", STOP_HEADER))
        await self._start(answer.status, headers)
        drain = self.config.on_match == "drain"
        if as_array is None:
            self.end = await cut(answer, cutter, self._body, self.meter, drain=drain)
        else:
            make = as_array.feed
            self.end = await cut(
                answer, cutter, lambda data: self._body(make(data)), self.meter, drain=drain
            )
            await self._body(as_array.finish())
        if self.end == "stop":
            self._cancelled("match")
        told = stop_header(cutter, job.ask.choices)
        if told and len(told) > MAX_TOLD:
            told = None
        # google-genai takes a comment for broken JSON, and lines of JSON have none.
        comments = (
            answer.content_type == "text/event-stream"
            and self.dialect != "gemini"
            and self.config.stop_comment
        )
        await self._finish(
            f": x-holdback-stop: {told}\n\n".encode() if told and comments else b"", told
        )

    async def _put_together(self, answer: Answer, cutter: Cutter, job: Job) -> None:
        """One body out of the stream that was asked for in the client's stead."""
        whole = assembly(job.ask.dialect, self.target.path if self.target else "", job.ask.body)
        limit = self.config.max_answer_bytes

        async def take(data: bytes) -> None:
            if self.meter.bytes_out > limit:
                raise UpstreamError(TOO_LONG, f"the upstream's answer is longer than {limit} bytes")
            try:
                for event in objects(data):
                    whole.add(event)
            except (
                ValueError,
                TypeError,
                AttributeError,
                KeyError,
            ) as error:  # of a shape that no answer has
                raise UpstreamError(
                    MALFORMED, "the upstream sends events that no answer can be made of"
                ) from error

        self.end = await cut(
            answer, cutter, take, self.meter, drain=self.config.on_match == "drain"
        )
        if self.end == "stop":
            self._cancelled("match")
        headers = end_to_end(
            answer.headers, b"date", b"content-length", b"content-encoding", b"content-type"
        )
        headers.append((b"content-type", b"application/json"))
        if whole.error is not None:
            self.end, self.error = "error", "upstream_error"
            await self._start(502, headers, dump_json(whole.error))
            return
        body = whole.body()
        if body is None:
            raise UpstreamError("upstream_broke_off", "the upstream ended before its answer did")
        await self._start_told(answer.status, headers, dump_json(body), cutter, job)

    async def _cut_body(self, answer: Answer, cutter: Cutter) -> None:
        job = self.job
        assert job is not None
        raw = await answer.read(self.config.max_answer_bytes)
        start = perf_counter()
        try:
            body = cutter.body(raw)
        except WireError as error:
            raise UpstreamError(
                MALFORMED, f"the upstream's answer cannot be read: {error}"
            ) from error
        self.meter.added.add(perf_counter() - start)
        self.meter.chunks, self.meter.bytes_in = 1, len(raw)
        headers = end_to_end(answer.headers, b"date", b"content-length", b"content-encoding")
        await self._start_told(answer.status, headers, body, cutter, job)

    async def _start_told(
        self, status: int, headers: Headers, body: bytes, cutter: Cutter, job: Job
    ) -> None:
        told = stop_header(cutter, job.ask.choices)
        if told and len(told) <= MAX_TOLD:
            headers.append((STOP_HEADER, told.encode()))
        await self._start(status, headers, body)

    async def _tell(self, error: UpstreamError) -> None:
        """An error to a client who may have a part of the answer already."""
        if not self.status:
            raise _RefusalError(error.status, error.kind, str(error)) from error
        if self.cutter is not None and self.dialect is not None and not self.as_array:
            await self._finish(
                failures.frame(self.dialect, error.status, str(error), code=error.kind)
            )
        # A stream that passes untouched, or is one JSON array, gets no frame of ours: its
        # connection breaks off, as the upstream's did.

    # --- the client
    # -----------------------------------------------------------------------------------------------

    async def _start(self, status: int, headers: Headers, body: bytes | None = None) -> None:
        """Send the head of the answer, and its whole body if it is there."""
        self.status = status
        if body is not None:
            headers = [*headers, (b"content-length", b"%d" % len(body))]
            self.meter.bytes_out = len(body)
        message: Message = {
            "type": "http.response.start",
            "status": status,
            "headers": [*headers, (b"via", b"1.1 holdback"), (ID_HEADER, self.id.encode())],
        }
        if self.trailers:
            message["trailers"] = True
        await self.send(message)
        if body is not None:
            await self._finish(body)

    async def _body(self, data: bytes) -> None:
        if data:
            await self.send({"type": "http.response.body", "body": data, "more_body": True})

    async def _finish(self, data: bytes = b"", stop: str | None = None) -> None:
        self.body_left = False
        await self.send({"type": "http.response.body", "body": data, "more_body": False})
        if self.trailers:
            trailers = [(STOP_HEADER, stop.encode())] if stop else []
            await self.send(
                {"type": "http.response.trailers", "headers": trailers, "more_trailers": False}
            )

    # --- afterwards
    # -----------------------------------------------------------------------------------------------

    def _report(self) -> None:
        metrics, name, dialect = self.metrics, self.upstream_name, self.dialect or ""
        mode = self.mode or "other"
        metrics.requests.labels(name, dialect, mode, str(self.status or 499)).inc()
        metrics.chunks.inc(self.meter.chunks)
        metrics.added.take(self.meter.added)
        metrics.held.take(self.meter.held)
        matches = self.cutter.matches if self.cutter else ()
        if matches:
            metrics.fired.labels(name, dialect).inc(len(matches))
        if self.first_byte is not None:
            metrics.first_byte.labels(name).observe(self.first_byte)
        if self.error:
            metrics.errors.labels(name, self.error).inc()
        job = self.job
        log_event(
            "request",
            id=self.id,
            method=self.scope["method"],
            path=self.raw_path[:200],
            upstream=name or None,
            dialect=self.dialect,
            model=job.ask.model[:100] if job and job.ask.model else None,
            mode=mode,
            status=self.status or 499,
            end=self.end,
            error=self.error,
            stops_sent=len(job.split.send) if job else None,
            stops_enforced=len(job.split.enforce) if job else None,
            fired=[match.index for match in matches] or None,
            chunks=self.meter.chunks or None,
            bytes_in=self.meter.bytes_in,
            bytes_out=self.meter.bytes_out,
            first_byte_ms=_ms(self.first_byte),
            ms=_ms(perf_counter() - self.begin),
        )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)
