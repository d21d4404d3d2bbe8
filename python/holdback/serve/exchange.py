"""One request and its answer, from the client's first byte to the last line of the log.

The request is read and planned here, goes to its upstream and comes back as an answer (`forward`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import Protocol

from holdback._failures import MALFORMED, NO_RETRY, TOO_LONG, UNREAD
from holdback._json import dump_json
from holdback._requests import Ask, BadRequestError, Job, decoded, read_ask
from holdback.dialects import dialect_of, kin_of, only_reads
from holdback.serve import failures
from holdback.serve.config import Config
from holdback.serve.forward import Forward
from holdback.serve.inbound import ClientGoneError, Inbound, Message, Receive, RefusalError
from holdback.serve.metrics import Metrics
from holdback.serve.outbound import JSON_HEADERS, Outbound, Send
from holdback.serve.planning import limits_of, prepare
from holdback.serve.record import Record
from holdback.serve.routes import RouteError, Target, find_target, has_dot_segments
from holdback.serve.unstreamed import Unstreamed
from holdback.serve.upstream import Client

READ_HERE_BYTES = 256 << 10
"""A request up to this size is read at once; a thread costs more than that."""


class Shared(Protocol):
    """What all exchanges of a gateway share."""

    config: Config
    metrics: Metrics
    client: Client
    unstreamed: Unstreamed
    stopping: bool


class Exchange:
    """One request and its answer."""

    def __init__(self, gateway: Shared, scope: Message, receive: Receive, send: Send) -> None:
        self._gateway, self._config = gateway, gateway.config
        self._record = Record(gateway.metrics)
        self._request = Inbound(scope, receive)
        self._out = Outbound(send, self._record.id)
        self._forward = Forward(
            gateway.config, gateway.client, self._record, self._request, self._out
        )

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
            if not self._gateway.stopping:
                raise
            with contextlib.suppress(asyncio.CancelledError):
                await self._end_early()
        except Exception:
            record.failed("internal")
            logging.getLogger("holdback.serve").exception("internal error")
            if not self._out.status:
                await self._refuse(RefusalError(500, "internal", "internal error of the gateway"))
        finally:
            record.report(self._request.method, self._request.path, self._out.status)

    async def _end_early(self) -> None:
        """Tell the client that the gateway goes down, as far as it can still be told."""
        message = "the gateway is going down"
        if not self._out.status:
            await self._refuse(RefusalError(503, "shutdown", message))
        else:
            await self._forward.send_error(503, message, "shutdown")

    async def _refuse(self, refusal: RefusalError) -> None:
        path = self._request.path
        error = failures.body(
            self._record.dialect or dialect_of(path) or kin_of(path, self._request.headers),
            refusal.status,
            str(refusal),
            code=refusal.code,
            param=refusal.param,
        )
        body = dump_json(error)
        self._record.meter.bytes_out = len(body)
        headers = [*JSON_HEADERS]
        if refusal.closes:
            headers.append((b"connection", b"close"))
        if refusal.code in (MALFORMED, TOO_LONG, UNREAD):
            headers.append((NO_RETRY[0].encode(), NO_RETRY[1].encode()))
        await self._out.whole(refusal.status, headers, body)

    async def _serve(self) -> None:
        request, config = self._request, self._config
        if not request.path.startswith("/"):
            # After the upstream's address, `@host/` would be another host's.
            raise RefusalError(400, "bad_request", "the path does not begin with /")
        if has_dot_segments(request.path):
            raise RefusalError(400, "bad_request", "the path has dot segments")
        try:
            target = find_target(request.method, request.path, config.upstreams, request.headers)
        except RouteError as error:
            code = "not_found" if error.status == 404 else "bad_request"
            raise RefusalError(error.status, code, str(error)) from error
        self._record.target = target
        if target.dialect is None and not self._forwards_other(target.path):
            message = (
                f"{request.method} of this path is not served here; it would be with"
                ' the setting other_paths = "all"'
            )
            raise RefusalError(404, "not_found", message)
        raw = await request.body(config.max_request_bytes, config.request_timeout)
        ask = await self._read(target, raw)
        job = self._plan(target, ask)
        self._record.job = job
        parts = job.parts if job is not None else (raw,)
        await self._forward.run(target, job, parts, lambda: self._plan(target, ask, as_asked=True))
        self._remember(target, job)

    def _forwards_other(self, path: str) -> bool:
        """Whether what is not a request for an answer is forwarded."""
        allowed, method = self._config.other_paths, self._request.method
        reads = method in ("GET", "HEAD") or (method == "POST" and only_reads(path))
        return allowed == "all" or (allowed == "read" and reads)

    async def _read(self, target: Target, raw: bytes) -> Ask | None:
        """What is asked for; `None` for what is not a request for an answer.

        A large request is read in a thread: that costs no other stream its time, since reading
        takes place without the GIL.
        """
        if target.dialect is None:
            return None
        if len(raw) > READ_HERE_BYTES or self._request.coding:
            return await asyncio.to_thread(self._read_here, target, raw)
        return self._read_here(target, raw)

    def _read_here(self, target: Target, raw: bytes) -> Ask | None:
        config = self._config
        try:
            raw = decoded(self._request.coding, raw, config.max_request_bytes)
            return target.dialect and read_ask(target.dialect, target.path, raw, limits_of(config))
        except BadRequestError as error:
            raise _refused(error) from error

    def _plan(self, target: Target, ask: Ask | None, *, as_asked: bool = False) -> Job | None:
        """How the request is served; `None` for what is not a request for an answer.

        With `as_asked` no stream is asked for where the client did not ask for one.
        """
        if ask is None:
            return None
        upstream = target.upstream
        if as_asked or (target, ask.model) in self._gateway.unstreamed:
            upstream = replace(upstream, buffered="pass")
        try:
            return prepare(ask, upstream, self._request.query, self._config)
        except BadRequestError as error:
            raise _refused(error) from error

    def _remember(self, target: Target, job: Job | None) -> None:
        """A second try that was not refused tells that the first was refused for its stream."""
        tried = self._record.job
        if job is not None and tried is not job and 200 <= self._out.status < 300:
            self._gateway.unstreamed.add(target, job.ask.model)


def _refused(error: BadRequestError) -> RefusalError:
    return RefusalError(error.status, error.code, str(error), error.param)
