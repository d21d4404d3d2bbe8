"""An upstream without a model: it streams one canned answer in every dialect, a piece at a time,
and takes no stops at all.

``holdback serve --demo`` puts the gateway in front of it. It also says what it saw: a line on
standard error when a client left early, and ``GET /seen``, a JSON list of the requests it had, with
the pieces it sent of each. The project's tests use it as well.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from holdback._requests import Ask, BadRequestError, read_ask
from holdback.dialects import DIALECTS, dialect_of
from holdback.serve.sse import objects
from holdback.wire import Dialect

ANSWER = (
    "The capital of France is Paris.\n",
    "Obs", "ervation", ": it lies on the Seine.\n",
    "Thought: that will do.\n",
    "</ans", "wer>\n",
    "##", "# END ###\n",
    "\n\nUs", "er: and of Italy?\n",
    "\n\nHuman", ": and of Spain?\n",
    "This model never stops by itself, ", "and every word of it costs money. ",
    "It goes on, ", "and on, ", "and on, ", "and on, ", "and on.",
)  # fmt: skip
"""The pieces of the answer: several stops that people use, most of them cut in half, and then more
text than anybody wants.
"""


@dataclass(slots=True)
class Seen:
    """What the upstream saw of one request."""

    path: str
    dialect: str
    stream: bool
    stops: tuple[str, ...]
    """Those that were sent; it ignores them."""
    authorization: bool
    sent: int = 0
    """Pieces of the answer that were sent."""
    pieces: int = 0
    client_left: bool = False


class Demo:
    """The upstream, as an ASGI application."""

    def __init__(
        self,
        pieces: Sequence[str] = ANSWER,
        *,
        delay: Callable[[int], float] = lambda _: 0.05,
        told: Callable[[Seen], None] | None = None,
    ) -> None:
        self.pieces = pieces
        self.delay = delay  # seconds before each piece
        self.seen: deque[Seen] = deque(maxlen=1000)
        self._told = told

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        path = scope["path"]
        dialect = dialect_of(path) if scope["method"] == "POST" else None
        if dialect is None:
            await _whole(send, *self._other(path))
            return
        parts, more = list[bytes](), True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        raw = b"".join(parts)
        try:
            ask = read_ask(dialect, path, raw)
        except BadRequestError as error:
            await _whole(send, 400, {"error": str(error)})
            return
        authorized = any(
            name in (b"authorization", b"x-api-key", b"x-goog-api-key")
            for name, _ in scope["headers"]
        )
        seen = Seen(path, dialect, ask.stream, ask.stops, authorized, pieces=len(self.pieces))
        self.seen.append(seen)
        if ask.stream:
            await self._stream(ask, seen, receive, send)
        else:
            whole = DIALECTS[dialect].assemble(path, ask.body)
            for _, frame in frames(dialect, self.pieces, ask):
                for event in objects(frame):
                    whole.add(event)
            await _whole(send, 200, whole.body())
            seen.sent = seen.pieces
            if self._told:
                self._told(seen)

    def _other(self, path: str) -> tuple[int, Any]:
        if path == "/seen":
            return 200, [asdict(seen) for seen in self.seen]
        if path == "/v1/models":
            return 200, {
                "object": "list",
                "data": [{"id": "demo", "object": "model", "owned_by": "holdback"}],
            }
        return 404, {"error": {"message": "not found"}}

    async def _stream(self, ask: Ask, seen: Seen, receive: Any, send: Any) -> None:
        kind = (
            b"application/x-ndjson"
            if DIALECTS[ask.dialect].framing == "lines"
            else b"text/event-stream; charset=utf-8"
        )
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]}
        )
        left = asyncio.ensure_future(receive())
        try:
            for is_piece, frame in frames(ask.dialect, self.pieces, ask):
                if is_piece:
                    await asyncio.wait((left,), timeout=self.delay(seen.sent))
                if left.done():
                    seen.client_left = True
                    break
                await send({"type": "http.response.body", "body": frame, "more_body": True})
                seen.sent += is_piece
            else:
                await send({"type": "http.response.body", "body": b""})
        finally:
            left.cancel()
            if self._told:
                self._told(seen)


async def _whole(send: Any, status: int, value: Any) -> None:
    body = json.dumps(value).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def frames(dialect: Dialect, pieces: Sequence[str], ask: Ask) -> Iterator[tuple[bool, bytes]]:
    """The frames of an answer in `dialect`, each with whether it brings a piece of the text."""
    spec = DIALECTS[dialect]
    for is_piece, event in spec.events(pieces, ask):
        yield is_piece, spec.frame(event)
