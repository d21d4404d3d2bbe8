"""A planned request on its way to its upstream, and the answer back, while somebody watches whether
the client leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdback._failures import MALFORMED, TOO_LONG, UNREAD
from holdback._requests import Job
from holdback.serve.answer import Delivery, pass_on
from holdback.serve.config import Config
from holdback.serve.inbound import ClientGoneError, Inbound, RefusalError
from holdback.serve.outbound import Outbound
from holdback.serve.record import Record
from holdback.serve.routes import Target, address
from holdback.serve.upstream import (
    Answer,
    Body,
    Client,
    Headers,
    UpstreamError,
    end_to_end,
)

REFUSALS = (400, 403, 422)
"""How upstreams refuse a stream, or the option that asks for its usage figures."""


class Forward:
    """The way of one request to its upstream and back."""

    def __init__(
        self, config: Config, client: Client, record: Record, request: Inbound, out: Outbound
    ) -> None:
        self._config, self._client, self._record = config, client, record
        self._request, self._out = request, out
        self._delivery: Delivery | None = None

    async def run(
        self, target: Target, job: Job | None, body: Body, as_asked: Callable[[], Job | None]
    ) -> None:
        """Ask the upstream and send its answer.

        Args:
            target: where the request goes.
            job: how its answer comes back; `None` for what is not a request for an answer.
            body: what is sent.
            as_asked: the same job without a stream that the client did not ask for: for upstreams
                that refuse what the gateway made of the request.

        Raises:
            RefusalError: there is no answer, and the client has had nothing yet.
            ClientGoneError: it left, and so did we.
        """
        record = self._record
        gone = asyncio.ensure_future(self._request.disconnected())
        record.opened(1)
        answer: Answer | None = None
        try:
            answer = await self._open(target, job, body, gone)
            if job is not None and job.mode == "assemble" and answer.status in REFUSALS:
                answer.close()
                record.job = job = as_asked()
                answer = await self._open(target, job, job.parts if job else body, gone)
            await self._answer(target, job, answer)
        except UpstreamError as error:
            if gone.done():
                record.hung_up("client_gone")
                raise ClientGoneError from error
            if error.kind in (MALFORMED, TOO_LONG, UNREAD):  # it would go on
                record.hung_up("error")
            await self._report_failure(error)
        except ClientGoneError:
            record.hung_up("client_gone")
            raise
        except asyncio.CancelledError:
            record.hung_up("shutdown")
            raise
        finally:
            record.opened(-1)
            gone.cancel()
            if answer is not None:
                answer.close()

    async def _answer(self, target: Target, job: Job | None, answer: Answer) -> None:
        good = 200 <= answer.status < 300 and answer.status != 204
        if job is None or job.stops is None or not good:
            await pass_on(answer, self._out, self._record)
            return
        self._delivery = Delivery(self._config, self._record, self._out, target, job)
        request = self._request
        as_events = "alt=sse" in request.query
        await self._delivery.run(answer, as_events=as_events, trailers=request.takes_trailers)

    async def _open(
        self, target: Target, job: Job | None, body: Body, gone: asyncio.Future[None]
    ) -> Answer:
        """The upstream's answer once its head is there.

        From then on, a client that leaves closes it, which ends any waiting for it.
        """
        path, query = (job.path, job.query) if job else (target.path, self._request.query)
        url = address(target.upstream, path, query)
        opening = asyncio.ensure_future(
            self._client.open(self._request.method, url, self._headers(job), body)
        )
        try:
            await asyncio.wait((gone, opening), return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                raise ClientGoneError
            answer = await opening
        finally:
            opening.cancel()
        self._record.got_head()

        def hang_up(_: object) -> None:
            if not self._out.complete:
                answer.close()

        gone.add_done_callback(hang_up)
        return answer

    def _headers(self, job: Job | None) -> Headers:
        """The client's headers as they go on. Raises `RefusalError` for one that cannot be sent."""
        for name, value in self._request.headers:
            if not _is_utf_8(value):  # the client for upstreams writes text
                shown = name.decode("latin-1")
                message = f"the header {shown} has bytes that are not UTF-8"
                raise RefusalError(400, "bad_request", message)
        without = [b"host", b"content-length", b"expect"]
        more: Headers = []
        if job is not None:
            without.append(b"content-encoding")  # what is sent was decoded to be read
        if job is not None and job.mode != "pass":
            without.append(b"accept-encoding")
            more.append((b"accept-encoding", b"identity"))
        if job is not None and job.mode == "assemble":
            without.append(b"accept")
            more.append((b"accept", b"*/*"))
        return end_to_end(self._request.headers, *without) + more

    async def _report_failure(self, error: UpstreamError) -> None:
        """An error to a client who may have a part of the answer already."""
        self._record.failed(error.kind)
        if not self._out.status:
            raise RefusalError(error.status, error.kind, str(error)) from error
        await self.send_error(error.status, str(error), error.kind)

    async def send_error(self, status: int, message: str, code: str) -> None:
        """End a stream under way with an error in its own words.

        A stream that passes untouched, or is one JSON array, gets no frame of ours: its connection
        breaks off, as the upstream's did.
        """
        delivery = self._delivery
        frame = delivery.failure_frame(status, message, code) if delivery is not None else None
        if frame is not None:
            await self._out.finish(frame)


def _is_utf_8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
