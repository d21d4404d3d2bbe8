"""The client's side of a request: what it asks for, read within limits, and whether it is still
there.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class RefusalError(Exception):
    """The request cannot be served; nothing has been answered yet.

    `code` is a word for programs, `param` the field at fault.
    """

    def __init__(self, status: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param

    @property
    def closes(self) -> bool:
        """The rest of the request is not read, so its connection is of no use any more."""
        return self.status in (408, 413)


class ClientGoneError(Exception):
    """Nobody is left to answer."""


class Inbound:
    """A request on its way in, as the server hands it over (ASGI)."""

    def __init__(self, scope: Message, receive: Receive) -> None:
        self._receive = receive
        self.method: str = scope["method"]
        self.headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        self.query: str = scope["query_string"].decode("latin-1")
        self.coding = ", ".join(
            value.decode("latin-1") for name, value in self.headers if name == b"content-encoding"
        )
        self.takes_trailers = "http.response.trailers" in (scope.get("extensions") or {})
        self.path = _raw_path(scope)

    async def body(self, limit: int, patience: float) -> bytes:
        """All of the body.

        Args:
            limit: bytes that it may have.
            patience: seconds that the client may be silent.

        Raises:
            RefusalError: it is longer, or has not come in time.
            ClientGoneError: the client has left.
        """
        # Unlike a join, this copies no more than a piece at a time: one copy of all of a long body
        # would keep every other stream waiting.
        pieces, size = io.BytesIO(), 0
        while True:
            try:
                message = await asyncio.wait_for(self._receive(), patience)
            except asyncio.TimeoutError as error:
                raise RefusalError(
                    408, "request_timeout", "the request has not arrived in time"
                ) from error
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            piece = message.get("body", b"")
            size += len(piece)
            if size > limit:
                raise RefusalError(
                    413, "request_too_large", f"the request is longer than {limit} bytes"
                )
            pieces.write(piece)
            if not message.get("more_body"):
                return pieces.getvalue()

    async def disconnected(self) -> None:
        """Return once the client has left. The body has been read before."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _raw_path(scope: Message) -> str:
    """The path as the client wrote it, without the query."""
    raw = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
    if raw.startswith(("http://", "https://")):  # some servers hand on `GET http://host/path`
        raw = urlsplit(raw).path
    return re.sub("%3a", ":", raw, flags=re.IGNORECASE)  # some escape the one in Gemini's paths
