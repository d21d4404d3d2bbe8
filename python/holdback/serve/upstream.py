"""The way to the upstreams: one pool of connections, kept alive, and answers that are read piece by
piece.

The client is aiohttp: in the gateway's shape of work (many streams of small events) it takes a
third of the processor time an event that httpx and httpx2 take, see benches/serve_clients.py. It
never follows a redirect, keeps no cookies and reads no proxy settings, so only configured upstreams
can be reached, and nothing of one client comes near another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from holdback._failures import MALFORMED
from holdback.serve.config import Config
from holdback.serve.extras import need

if TYPE_CHECKING:
    import aiohttp

Headers = list[tuple[bytes, bytes]]
Body = Sequence[bytes | memoryview]
"""A request's body, in parts."""

SENT_AT_ONCE = 256 << 10
"""Bytes of a body that are handed over in one go; others have their turn after them."""

BROKE_OFF = "upstream_broke_off"

MAX_TRIES = 8
"""Kept connections that one request may find closed, one after the other; after a restart of the
upstream they all are.
"""

_CONTROLS = bytes({*range(32), 127} - {ord("\t")})

HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
"""Headers that speak of one connection (RFC 9110, 7.6.1), not of the message."""


class UpstreamError(Exception):
    """An upstream that cannot be reached, is silent for too long, or breaks off.

    ``kind`` is a word for metrics and clients.
    """

    def __init__(self, kind: str, message: str, status: int = 502) -> None:
        super().__init__(message)
        self.kind, self.status = kind, status


def end_to_end(headers: Iterable[tuple[bytes, bytes]], *without: bytes) -> Headers:
    """The headers that go on to the other side: not those of the connection, not those that it
    names, not ``without``.

    Nor one with control characters in it, which a server takes for an attack and answers nothing at
    all.
    """
    headers = [
        header for header in headers if len(header[1].translate(None, _CONTROLS)) == len(header[1])
    ]
    dropped = HOP_BY_HOP.union(without)
    for name, value in headers:
        if name.lower() == b"connection":
            dropped = dropped.union(token.strip().lower() for token in value.split(b","))
    return [(name, value) for name, value in headers if name.lower() not in dropped]


class Answer:
    """An upstream's answer: status and headers are there, the body is still to come."""

    def __init__(self, response: aiohttp.ClientResponse, errors: _Errors) -> None:
        self.status = response.status
        self.headers: Headers = [(name.lower(), value) for name, value in response.raw_headers]
        self._response = response
        self._errors = errors
        self._next = response.content.readany
        self._broken: UpstreamError | None = None

    @property
    def content_type(self) -> str:
        """Without parameters, in lower case."""
        kinds = [value for name, value in self.headers if name == b"content-type"]
        return kinds[0].decode("latin-1").partition(";")[0].strip().lower() if kinds else ""

    @property
    def coding(self) -> str:
        """Its `content-encoding`; several headers are one list."""
        named = (value for name, value in self.headers if name == b"content-encoding")
        return b",".join(named).decode("latin-1")

    async def next(self) -> bytes:
        """What has arrived, once something has; empty at the end. Raises :class:`UpstreamError`."""
        if self._broken:
            raise self._broken
        try:
            return await self._next()
        except self._errors.all as error:
            self._broken = self._errors.in_our_words(error)
            # aiohttp tells the error first and forgets what arrived with it; without the error it
            # gives that out.
            content = self._response.content
            content.set_exception(None)  # type: ignore[arg-type]  # None takes it back
            rest = content.read_nowait()
            if rest:
                return rest
            raise self._broken from error

    def close(self) -> None:
        """Hang up. After the end of the body nothing is left to close, and the connection is back
        in the pool.
        """
        self._response.close()

    def __enter__(self) -> Answer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Errors:
    """aiohttp's errors in the gateway's words."""

    def __init__(self, aiohttp: Any) -> None:
        self.all = (aiohttp.ClientError, TimeoutError, aiohttp.ServerTimeoutError, OSError)
        self._connect = aiohttp.ClientConnectorError
        self._timeout = (TimeoutError, aiohttp.ServerTimeoutError)
        self.hung_up = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)
        self._connect_timeout = aiohttp.ConnectionTimeoutError

    def in_our_words(self, error: BaseException) -> UpstreamError:
        """No text of the error itself: it may hold addresses that are not for clients."""
        if isinstance(error, (self._connect, self._connect_timeout)):
            return UpstreamError("upstream_unreachable", "the upstream cannot be reached")
        if isinstance(error, self._timeout):
            return UpstreamError(
                "upstream_timeout", "the upstream has been silent for too long", 504
            )
        return UpstreamError(BROKE_OFF, "the upstream broke off")


class Client:
    """The pool. It belongs to one event loop, and is made by the first request if nothing opened it
    before.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._session: aiohttp.ClientSession | None = None
        self._errors: _Errors | None = None

    def _opened(self) -> tuple[aiohttp.ClientSession, _Errors]:
        if self._session is None or self._errors is None:
            aiohttp = need("aiohttp")
            self._errors = _Errors(aiohttp)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),  # max_streams is the limit
                timeout=aiohttp.ClientTimeout(
                    total=None,
                    sock_connect=self._config.connect_timeout,
                    sock_read=self._config.idle_timeout,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=("user-agent", "accept", "accept-encoding", "content-type"),
                auto_decompress=False,
                trace_configs=[self._noting_reuse(aiohttp)],
            )
        return self._session, self._errors

    @staticmethod
    def _noting_reuse(package: Any) -> aiohttp.TraceConfig:
        """Tell each request, in its `trace_request_ctx`, whether its connection had served another
        one before.
        """
        config: aiohttp.TraceConfig = package.TraceConfig()

        async def reused(_session: Any, context: Any, _params: Any) -> None:
            context.trace_request_ctx.append(True)

        config.on_connection_reuseconn.append(reused)
        return config

    async def open(self, method: str, url: str, headers: Headers, body: Body) -> Answer:
        """Send a request and wait for the head of its answer. Raises :class:`UpstreamError`.

        A server may close a kept connection at the very moment at which the next request leaves on
        it: such a request was not answered because it was never read, and is sent again. A
        connection of its own that is closed is an answer, and is not tried twice.
        """
        from yarl import URL

        session, errors = self._opened()
        for tries in range(MAX_TRIES):
            reused: list[bool] = []
            try:
                response = await session.request(
                    method,
                    URL(url, encoded=True),  # as the client wrote it
                    headers=[
                        (name.decode("latin-1"), value.decode("utf-8", "replace"))
                        for name, value in (*headers, *_length(body))
                    ],
                    data=_data(body),
                    allow_redirects=False,
                    trace_request_ctx=reused,
                )
            except (*errors.all, ValueError) as error:
                if reused and isinstance(error, errors.hung_up) and tries + 1 < MAX_TRIES:
                    continue
                raise errors.in_our_words(error) from error
            if not 200 <= response.status <= 599:  # no status of an answer, and no server sends it
                response.close()
                raise UpstreamError(
                    MALFORMED, f"the upstream answers with the status {response.status}"
                )
            return Answer(response, errors)
        raise AssertionError("the last try returns or raises")

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def _size(body: Body) -> int:
    return sum(map(len, body))


def _length(body: Body) -> Headers:
    """The header of a body that is sent piece by piece."""
    size = _size(body)
    return [(b"content-length", b"%d" % size)] if size > SENT_AT_ONCE else []


def _data(body: Body) -> bytes | AsyncIterator[memoryview] | None:
    if _size(body) > SENT_AT_ONCE:
        return _in_turns(body)
    return b"".join(body) or None


async def _in_turns(body: Body) -> AsyncIterator[memoryview]:
    for part in body:
        view = memoryview(part)
        for at in range(0, len(view), SENT_AT_ONCE):
            yield view[at : at + SENT_AT_ONCE]
            await asyncio.sleep(0)
