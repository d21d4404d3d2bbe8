"""Answers that an ASGI application streams (Starlette, FastAPI, vLLM's server, any other), cut.

For an endpoint of one's own that passes a provider's stream on:

```python
from holdback.integrations.asgi import cut_sse

return StreamingResponse(cut_sse(upstream.aiter_bytes(), "openai.chat", stops), media_type="text/event-stream")
```

For a whole application, as it is:

```python
from holdback.integrations.asgi import StopMiddleware

app.add_middleware(StopMiddleware)          # Starlette, FastAPI
vllm serve ... --middleware holdback.integrations.asgi.StopMiddleware
```

The middleware reads requests to the paths of the known APIs and enforces their stops on what the
application answers, streamed or whole. At the match the client gets the end of its answer and the
application gets `http.disconnect`, as if the client had left: so the response that it streams is
cancelled, and with it whatever that reads from. It runs on asyncio.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, TypeAlias

from holdback import StopSet, providers
from holdback._relay import arelay, has_all, relay, rest_of
from holdback.dialects import dialect_of
from holdback.integrations._requests import Exchange, read_exchange, stay_here
from holdback.wire import Cutter, Dialect, WireError

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Iterable,
        Iterator,
        MutableMapping,
    )

Message: TypeAlias = "MutableMapping[str, Any]"
Scope: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[Message]]"
Send: TypeAlias = "Callable[[Message], Awaitable[None]]"

MAX_BODY_BYTES = 16 << 20
"""A longer request is passed on unread."""

PATIENCE = 1.0
"""Seconds that an application has to notice that its client is gone, before its next `send` fails.
"""


def cut_sse(
    body: Any, dialect: Dialect, stops: StopSet | str | Iterable[str], /, **options: Any
) -> AsyncIterator[bytes] | Iterator[bytes]:
    """A provider's stream up to the first stop, with that provider's own end.

    Args:
        body: an iterable of `bytes` or `str`, asynchronous or not; what comes back is of the same kind. It is closed (`aclose()`,
            else `close()`) at the match, and when the client leaves.
        dialect: whose stream it is, one of `holdback.wire.DIALECTS` (also those that are no event streams).
        stops: a compiled set, or the stops.
        options: those of `holdback.wire.Cutter`: `choices` (how many answers come interleaved), `include_stop`, `on_match`, ...

    Raises:
        ValueError: for bad stops or options, at once.
    """
    cutter = Cutter(dialect, stops, **options)
    if hasattr(body, "__aiter__"):
        aclose = getattr(body, "aclose", None) or getattr(body, "close", None)

        async def encoded() -> AsyncIterator[bytes]:
            async for chunk in body:
                yield chunk.encode() if isinstance(chunk, str) else chunk

        return arelay(encoded(), cutter, aclose or (lambda: None))
    close = getattr(body, "close", lambda: None)
    return relay(
        (chunk.encode() if isinstance(chunk, str) else chunk for chunk in body), cutter, close
    )


class StopMiddleware:
    """ASGI middleware that enforces the stops that requests ask for.

    Args:
        app: the application.
        stop: stops for requests that bring none.
        provider: whose limits on stops hold for the application, a name of `holdback.providers` (`"vllm"`); without it, those that the
            API suggests are kept to. The application is sent the stops that it can take, and all are enforced here.
        must_name: send the application no stops of which it would not say that they fired.
        options: those of `holdback.wire.Cutter`.

    Raises:
        ValueError: for bad stops, a provider that is not known, or options that do not fit together.
    """

    def __init__(
        self,
        app: Any,
        *,
        stop: Iterable[str] | None = None,
        provider: str | providers.Provider | None = None,
        must_name: bool = False,
        **options: Any,
    ) -> None:
        self.app = app
        self.stop: Any = StopSet(stop).stops
        self.provider = providers.get(provider) if isinstance(provider, str) else provider
        self.must_name = must_name
        self.options = options
        Cutter("openai.chat", self.stop, **options)  # bad options are told now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if (
            scope["type"] != "http"
            or scope["method"] != "POST"
            or dialect_of(scope["path"]) is None
        ):
            await self.app(scope, receive, send)
            return
        messages, body = await _read(receive)
        exchange = None
        if body is not None:
            exchange = read_exchange(
                scope["path"],
                scope.get("query_string", b"").decode("ascii", "replace"),
                body,
                provider=self.provider,
                stop=self.stop,
                must_name=self.must_name,
                local=stay_here(self.options),
            )
        if exchange is None:
            await self.app(scope, _replayed(messages, receive), send)
            return
        await _Answer(exchange, exchange.cutter(**self.options), receive, send).run(self.app, scope)


async def _read(receive: Receive) -> tuple[list[Message], bytes | None]:
    """The messages of a request's body, and the body; `None` if it is too long or the client left."""
    messages, parts, size = list[Message](), list[bytes](), 0
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request":
            return messages, None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY_BYTES:
            return messages, None
        if not message.get("more_body"):
            return messages, b"".join(parts)


def _replayed(messages: list[Message], receive: Receive) -> Receive:
    """The messages that were read, then the rest."""
    waiting = iter(messages)

    async def replay() -> Message:
        message = next(waiting, None)
        return await receive() if message is None else message

    return replay


class _GoneError(OSError):
    """What an application gets that goes on sending: the client is gone, as servers of ASGI 2.4 say
    it.
    """


class _Answer:
    """One answer on its way from the application to the client."""

    def __init__(self, exchange: Exchange, cutter: Cutter, receive: Receive, send: Send) -> None:
        self.exchange, self.cutter = exchange, cutter
        self._receive, self._send = receive, send
        self.body_given = False
        self.ended = asyncio.Event()  # the client has its whole answer
        self.from_client: asyncio.Future[Message] | None = None
        self.last: asyncio.Future[None] | None = (
            None  # the sending of what ends an answer that was cut
        )
        self.start: Message | None = None  # of an answer that is not streamed: waits for its body
        self.cuts = False
        self.whole: list[bytes] = []

    async def run(self, app: Any, scope: Scope) -> None:
        try:
            await app(self._inner_scope(scope), self.receive, self.send)
        except Exception as error:
            if self.ended.is_set() and (
                isinstance(error, _GoneError) or isinstance(error.__context__, _GoneError)
            ):
                return
            if self.cuts and self.exchange.streams and not self.ended.is_set():
                # The application broke off. What was held is the client's; then the server hears of
                # the error.
                await self._send(
                    {
                        "type": "http.response.body",
                        "body": rest_of(self.cutter),
                        "more_body": True,
                    }
                )
            raise
        finally:
            if self.from_client is not None:
                self.from_client.cancel()
            if self.last is not None:
                await self.last

    def _inner_scope(self, scope: Scope) -> Scope:
        """The scope with the request's new length, without compression, and of an ASGI version in
        which clients leave by message.

        From 2.4 on, applications (Starlette among them) do not listen for `http.disconnect` but
        wait for `send` to raise, which leaves their source open until it is collected.
        """
        length = str(len(self.exchange.body)).encode()
        headers = [
            (name, value)
            for name, value in scope["headers"]
            if name not in (b"content-length", b"accept-encoding")
        ]
        versions = {**scope.get("asgi", {})}
        if tuple(map(int, versions.get("spec_version", "2.0").split("."))) >= (2, 4):
            versions["spec_version"] = "2.3"
        return {**scope, "headers": [*headers, (b"content-length", length)], "asgi": versions}

    async def receive(self) -> Message:
        if not self.body_given:
            self.body_given = True
            return {"type": "http.request", "body": self.exchange.body, "more_body": False}
        if self.from_client is None:
            self.from_client = asyncio.ensure_future(self._receive())
        ended = asyncio.ensure_future(self.ended.wait())
        try:
            await asyncio.wait((self.from_client, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if self.ended.is_set():
            return {"type": "http.disconnect"}
        message, self.from_client = self.from_client.result(), None
        return message

    async def send(self, message: Message) -> None:
        if self.ended.is_set():
            await asyncio.sleep(PATIENCE)  # an application that listens is cancelled in here
            raise _GoneError("the client is gone")
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif message["type"] == "http.response.body" and self.cuts:
            await (self._stream if self.exchange.streams else self._gather)(message)
        else:
            await self._send(message)

    async def _begin(self, message: Message) -> None:
        headers = {bytes(name).lower(): bytes(value) for name, value in message.get("headers", ())}
        kind = headers.get(b"content-type", b"")
        self.cuts = (
            message["status"] == 200
            and b"content-encoding" not in headers
            and (b"json" in kind or b"event-stream" in kind)
        )
        if self.cuts:
            kept = [
                pair
                for pair in message.get("headers", ())
                if bytes(pair[0]).lower() != b"content-length"
            ]
            message = {**message, "headers": kept}
            if not self.exchange.streams:
                self.start = message
                return
        await self._send(message)

    async def _stream(self, message: Message) -> None:
        more = message.get("more_body", False)
        out = self.cutter.feed(message.get("body", b""))
        if has_all(self.cutter):
            # The application hears of it at once: a client that is slow to read does not keep it
            # going. It may then cancel the task that this runs in, so the end of the answer is sent
            # by another one.
            self.ended.set()
            self.last = asyncio.ensure_future(
                self._send({"type": "http.response.body", "body": out, "more_body": False})
            )
            await asyncio.shield(self.last)
            return
        if not more:
            out += self.cutter.finish()
        if out or not more:
            await self._send({"type": "http.response.body", "body": out, "more_body": more})

    async def _gather(self, message: Message) -> None:
        self.whole.append(bytes(message.get("body", b"")))
        if message.get("more_body", False):
            return
        body = b"".join(self.whole)
        with contextlib.suppress(WireError):  # not the format that the path suggests
            body = self.cutter.body(body)
        assert self.start is not None
        length = (b"content-length", str(len(body)).encode())
        await self._send({**self.start, "headers": [*self.start["headers"], length]})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})
