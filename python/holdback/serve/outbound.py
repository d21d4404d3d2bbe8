"""The client's side of an answer: its head, its body, its end, each sent once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from holdback.serve.inbound import Message
from holdback.serve.upstream import Headers

Send = Callable[[Message], Awaitable[None]]

STOP_HEADER, ID_HEADER = b"x-holdback-stop", b"x-holdback-id"

JSON_HEADERS: Headers = [(b"content-type", b"application/json")]


class Outbound:
    """An answer on its way to the client (ASGI)."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._id = request_id.encode()
        self._trailers = False
        self.status = 0
        """Of the head that was sent; 0 before."""
        self.complete = False
        """The end was sent."""

    async def start(self, status: int, headers: Headers, *, trailers: bool = False) -> None:
        """Send the head. With `trailers` the stop may be named at the end."""
        self.status, self._trailers = status, trailers
        headers = [*headers, (b"via", b"1.1 holdback"), (ID_HEADER, self._id)]
        message: Message = {"type": "http.response.start", "status": status, "headers": headers}
        if trailers:
            headers.append((b"trailer", STOP_HEADER))
            message["trailers"] = True
        await self._send(message)

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Send an answer in one piece."""
        await self.start(status, [*headers, (b"content-length", b"%d" % len(body))])
        await self.finish(body)

    async def body(self, data: bytes) -> None:
        """Send a piece of the body."""
        if data:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self, data: bytes = b"", stop: str | None = None) -> None:
        """Send the last piece; `stop` is the trailer's value, if trailers were promised."""
        self.complete = True
        await self._send({"type": "http.response.body", "body": data, "more_body": False})
        if self._trailers:
            trailers = [(STOP_HEADER, stop.encode())] if stop else []
            await self._send(
                {"type": "http.response.trailers", "headers": trailers, "more_trailers": False}
            )
