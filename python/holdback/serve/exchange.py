"""One request and its answer, from the client's first byte to the last line of the log.

The order of things: the request is read and planned, the upstream is asked while somebody watches
whether the client leaves, and the answer goes back (`answer`).
"""

from __future__ import annotations

import asyncio
import logging

from holdback.serve import failures
from holdback.serve.answer import Delivery, pass_on
from holdback.serve.asking import BadRequestError, read_ask
from holdback.serve.config import Config
from holdback.serve.inbound import ClientGoneError, Inbound, Message, Receive, RefusalError
from holdback.serve.metrics import Metrics
from holdback.serve.outbound import JSON_HEADERS, Outbound, Send
from holdback.serve.planning import Job, prepare
from holdback.serve.record import Record
from holdback.serve.routes import Target, address, find_target, has_dot_segments
from holdback.serve.sse import dump_json
from holdback.serve.upstream import (
    MALFORMED,
    TOO_LONG,
    Answer,
    Client,
    Headers,
    UpstreamError,
    end_to_end,
)


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
        self._config, self._client = config, client
        self._record = Record(metrics)
        self._request = Inbound(scope, receive)
        self._out = Outbound(send, self._record.id)

    async def run(self) -> None:
        """Serve it. Whatever happens, the client reads it in its own dialect, and the log and the
        metrics report it.
        """
        record = self._record
        try:
            await self._serve()
        except RefusalError as refusal:
            record.failed(refusal.code)
            await self._refuse(refusal)
        except ClientGoneError:
            record.end = "client_gone"
        except asyncio.CancelledError:
            record.end = "shutdown"
            raise
        except Exception:
            record.failed("internal")
            logging.getLogger("holdback.serve").exception("internal error")
            if not self._out.status:
                await self._refuse(RefusalError(500, "internal", "internal error of the gateway"))
        finally:
            record.report(self._request.method, self._request.path, self._out.status)

    async def _refuse(self, refusal: RefusalError) -> None:
        error = failures.body(
            self._record.dialect,
            refusal.status,
            str(refusal),
            code=refusal.code,
            param=refusal.param,
        )
        body = dump_json(error)
        self._record.meter.bytes_out = len(body)
        await self._out.whole(refusal.status, JSON_HEADERS, body)

    async def _serve(self) -> None:
        request, config = self._request, self._config
        if not request.path.startswith("/"):
            # After the upstream's address, `@host/` would be another host's.
            raise RefusalError(400, "bad_request", "the path does not begin with /")
        if has_dot_segments(request.path):
            raise RefusalError(400, "bad_request", "the path has dot segments")
        target = find_target(request.method, request.path, config.upstreams)
        if target is None:
            raise RefusalError(404, "not_found", "no upstream is configured for this path")
        self._record.target = target
        if target.dialect is None and not self._forwards_other():
            message = f"{request.method} of this path is not served here (setting other_paths)"
            raise RefusalError(404, "not_found", message)
        raw = await request.body(config.max_request_bytes, config.request_timeout)
        if target.dialect is None:
            await self._forward(target, None, raw)
            return
        try:
            ask = read_ask(target.dialect, target.path, raw, config)
            job = prepare(ask, target.upstream, target.path, request.query, config)
        except BadRequestError as error:
            raise RefusalError(400, "bad_request", str(error), error.param) from error
        self._record.job = job
        await self._forward(target, job, job.body)

    def _forwards_other(self) -> bool:
        """Whether what is not a request for an answer is forwarded."""
        allowed = self._config.other_paths
        return allowed == "all" or (allowed == "read" and self._request.method in ("GET", "HEAD"))

    async def _forward(self, target: Target, job: Job | None, body: bytes) -> None:
        path, query = (job.path, job.query) if job else (target.path, self._request.query)
        url = address(target.upstream, path, query)
        cutting = job is not None and job.mode != "pass"
        headers = self._headers(job)
        gone = asyncio.ensure_future(self._request.disconnected())
        opening = asyncio.ensure_future(
            self._client.open(self._request.method, url, headers, body, decompress=cutting)
        )
        record, answer = self._record, None
        record.opened(1)
        delivery: Delivery | None = None
        try:
            answer = await self._opened(opening, gone)
            good = 200 <= answer.status < 300 and answer.status != 204
            if job is None or job.stops is None or not good:
                await pass_on(answer, self._out, record, decoded=cutting)
                return
            delivery = Delivery(self._config, record, self._out, target, job)
            await delivery.run(
                answer,
                as_events="alt=sse" in self._request.query,
                trailers=self._request.takes_trailers,
            )
        except UpstreamError as error:
            if gone.done():
                record.hung_up("client_gone")
                raise ClientGoneError from error
            if error.kind in (MALFORMED, TOO_LONG):  # it would go on
                record.hung_up("error")
            await self._report_failure(error, delivery)
        except ClientGoneError:
            record.hung_up("client_gone")
            raise
        except asyncio.CancelledError:
            record.hung_up("shutdown")
            raise
        finally:
            record.opened(-1)
            opening.cancel()
            gone.cancel()
            if answer is not None:
                answer.close()

    def _headers(self, job: Job | None) -> Headers:
        """The client's headers as they go on."""
        cutting = job is not None and job.mode != "pass"
        without = [b"host", b"content-length", b"expect"]
        more: Headers = []
        if cutting:
            without.append(b"accept-encoding")
            more.append((b"accept-encoding", b"identity"))
        if job is not None and job.mode == "assemble":
            without.append(b"accept")
            more.append((b"accept", b"*/*"))
        return end_to_end(self._request.headers, *without) + more

    async def _opened(self, opening: asyncio.Future[Answer], gone: asyncio.Future[None]) -> Answer:
        """The upstream's answer once its head is there.

        From then on, a client that leaves closes it, which ends any waiting for it.
        """
        await asyncio.wait((gone, opening), return_when=asyncio.FIRST_COMPLETED)
        if not opening.done():
            raise ClientGoneError
        answer = await opening
        self._record.got_head()

        def hang_up(_: object) -> None:
            if not self._out.complete:
                answer.close()

        gone.add_done_callback(hang_up)
        return answer

    async def _report_failure(self, error: UpstreamError, delivery: Delivery | None) -> None:
        """An error to a client who may have a part of the answer already."""
        self._record.failed(error.kind)
        dialect = self._record.dialect
        if not self._out.status:
            raise RefusalError(error.status, error.kind, str(error)) from error
        if delivery is not None and delivery.takes_frames and dialect is not None:
            await self._out.finish(
                failures.frame(dialect, error.status, str(error), code=error.kind)
            )
        # A stream that passes untouched, or is one JSON array, gets no frame of ours: its
        # connection breaks off, as the upstream's did.
