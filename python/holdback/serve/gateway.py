"""The ASGI application, plain, without a framework: ``/healthz``, ``/metrics``, and everything else
is for an upstream.
"""

from __future__ import annotations

import json
from typing import Any

from holdback import __version__
from holdback.serve import failures
from holdback.serve.config import Config
from holdback.serve.exchange import Exchange
from holdback.serve.inbound import Message, Receive
from holdback.serve.metrics import Metrics
from holdback.serve.outbound import Send
from holdback.serve.unstreamed import Unstreamed
from holdback.serve.upstream import Client, Headers


class Gateway:
    """The gateway of one configuration, as an ASGI application."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.stopping = False
        """The server is going down: what it cancels is to be ended, not to be broken off."""
        self.metrics = Metrics()
        self.client = Client(config)
        self.unstreamed = Unstreamed()
        self._in_flight = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection's scope."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.client.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _http(self, scope: Message, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        if path == "/healthz" and method in ("GET", "HEAD"):
            await _reply(
                send, 200, {"status": "ok", "version": __version__, "in_flight": self._in_flight}
            )
        elif path == "/metrics" and method in ("GET", "HEAD"):
            text, kind = self.metrics.text()
            await _reply_bytes(send, 200, text, [(b"content-type", kind.encode())])
        elif self._in_flight >= self.config.max_streams:
            self.metrics.errors.labels("", "too_many_streams").inc()
            error = failures.body(None, 503, "too many requests in flight", code="too_many_streams")
            await _reply(send, 503, error, [(b"retry-after", b"1"), (b"connection", b"close")])
        else:
            self._in_flight += 1
            try:
                await Exchange(self, scope, receive, send).run()
            finally:
                self._in_flight -= 1


async def _reply(send: Send, status: int, value: Any, headers: Headers | None = None) -> None:
    await _reply_bytes(
        send,
        status,
        json.dumps(value).encode(),
        [(b"content-type", b"application/json"), *(headers or [])],
    )


async def _reply_bytes(send: Send, status: int, body: bytes, headers: Headers) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [*headers, (b"content-length", b"%d" % len(body))],
        }
    )
    await send({"type": "http.response.body", "body": body})
