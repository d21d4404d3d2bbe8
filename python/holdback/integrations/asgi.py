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
cancelled, and with it whatever that reads from. An answer that cannot be cut is an error in the
words of its API. It runs on asyncio.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, TypeAlias

from holdback import StopSet, providers
from holdback._answers import AnswerCutter
from holdback._failures import NO_RETRY, STATUS, error_body
from holdback._relay import has_all, rest_of
from holdback.dialects import DIALECTS, dialect_of
from holdback.integrations._cutting import (
    AsyncCutStream,
    CutStream,
    cut_response,
    cut_sse,
    in_own_words,
    make_cutter,
)
from holdback.integrations._requests import Exchange, RefusedError, read_exchange, stay_here
from holdback.wire import Cutter, WireError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, MutableMapping

    from typing_extensions import Unpack

    from holdback.integrations._options import CutterOptions

__all__ = ["AsyncCutStream", "CutStream", "StopMiddleware", "cut_response", "cut_sse"]

Message: TypeAlias = "MutableMapping[str, Any]"
Scope: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = "Callable[[], Awaitable[Message]]"
Send: TypeAlias = "Callable[[Message], Awaitable[None]]"

MAX_BODY_BYTES = 64 << 20
"""A longer request is refused: its stops could not be read."""

PATIENCE = 1.0
"""Seconds that an application has to notice that its client is gone, before its next `send` fails.
"""

_AROUND_SEND = ("http.response.pathsend", "http.response.zerocopysend", "http.response.trailers")
"""Ways to answer that would go around the cutter, or that end an answer after its end."""


class StopMiddleware:
    """ASGI middleware that enforces the stops that requests ask for.

    Args:
        app: the application.
        stop: stops for requests that bring none.
        provider: whose limits on stops hold for the application, a name of `holdback.providers`
            (`"vllm"`); without it, those that the API suggests are kept to. The application is sent
            the stops that it can take, and all are enforced here.
        must_name: send the application no stops of which it would not say that they fired.
        options: those of `holdback.wire.Cutter`. What cannot be read, or in which no text was read,
            is an error unless `on_malformed` or `on_unread` is `"pass"`.

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
        **options: Unpack[CutterOptions],
    ) -> None:
        self.app = app
        self.stop: Any = StopSet(stop).stops
        self.provider = providers.get(provider) if isinstance(provider, str) else provider
        self.must_name = must_name
        self.options: dict[str, Any] = {**options}
        Cutter("openai.chat", self.stop, **self.options)  # bad options are errors now

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if (
            scope["type"] != "http"
            or scope["method"] != "POST"
            or (dialect := dialect_of(scope["path"])) is None
        ):
            await self.app(scope, receive, send)
            return
        messages, body = await _read(receive)
        if body is None:
            if messages[-1]["type"] == "http.request":
                message = f"the request is longer than {MAX_BODY_BYTES} bytes"
                error = DIALECTS[dialect].error(413, message, "request_too_large", None)
                await _send_error(send, 413, error)
                return
            await self.app(scope, _replayed(messages, receive), send)
            return
        try:
            exchange = read_exchange(
                scope["path"],
                scope.get("query_string", b"").decode("ascii", "replace"),
                body,
                coding=_coding_of(scope),
                provider=self.provider,
                stop=self.stop,
                must_name=self.must_name,
                local=stay_here(self.options),
            )
        except RefusedError as error:
            await _send_error(send, error.status, error.body)
            return
        if exchange is None:
            await self.app(scope, _replayed(messages, receive), send)
            return
        await _Answer(exchange, self.options, receive, send).run(self.app, scope)


def _coding_of(scope: Scope) -> str:
    found = (
        value for name, value in scope["headers"] if bytes(name).lower() == b"content-encoding"
    )
    return ", ".join(bytes(value).decode("latin-1") for value in found)


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


async def _send_error(send: Send, status: int, error: bytes | dict[str, Any]) -> None:
    body = error if isinstance(error, bytes) else json.dumps(error).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (NO_RETRY[0].encode(), NO_RETRY[1].encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


class _GoneError(OSError):
    """What an application gets that goes on sending: the client is gone, as servers of ASGI 2.4 say
    it.
    """


class _Answer:
    """The application's side of one answer: what it is given to read, and that it is left."""

    def __init__(
        self, exchange: Exchange, options: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        self._exchange, self._receive = exchange, receive
        self._body_given = False
        self._ended = asyncio.Event()  # the client has its whole answer
        self._from_client: asyncio.Future[Message] | None = None
        self._last: asyncio.Future[None] | None = None  # what ends an answer that was cut
        self._client = _Client(exchange, options, send)

    async def run(self, app: Any, scope: Scope) -> None:
        try:
            await app(self._inner_scope(scope), self._receive_next, self._send_next)
        except Exception as error:
            if self._ended.is_set() and (
                isinstance(error, _GoneError) or isinstance(error.__context__, _GoneError)
            ):
                return
            if not self._ended.is_set():
                # The application broke off. What was held is the client's; then the server hears of
                # the error.
                await self._client.break_off()
            raise
        finally:
            if self._from_client is not None:
                self._from_client.cancel()
            if self._last is not None:
                await self._last

    def _inner_scope(self, scope: Scope) -> Scope:
        """The scope with the request's new length, without compression, and of an ASGI version in
        which clients leave by message.

        From 2.4 on, applications (Starlette among them) do not listen for `http.disconnect` but
        wait for `send` to raise, which leaves their source open until it is collected.
        """
        length = str(len(self._exchange.body)).encode()
        headers = [
            (name, value)
            for name, value in scope["headers"]
            if name not in (b"content-length", b"content-encoding", b"accept-encoding")
        ]
        versions = {**scope.get("asgi", {})}
        if tuple(map(int, versions.get("spec_version", "2.0").split("."))) >= (2, 4):
            versions["spec_version"] = "2.3"
        made = {**scope, "headers": [*headers, (b"content-length", length)], "asgi": versions}
        if scope.get("extensions"):
            offered = scope["extensions"].items()
            made["extensions"] = {name: more for name, more in offered if name not in _AROUND_SEND}
        return made

    async def _receive_next(self) -> Message:
        if not self._body_given:
            self._body_given = True
            return {"type": "http.request", "body": self._exchange.body, "more_body": False}
        if self._from_client is None:
            self._from_client = asyncio.ensure_future(self._receive())
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((self._from_client, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if self._ended.is_set():
            return {"type": "http.disconnect"}
        message, self._from_client = self._from_client.result(), None
        return message

    async def _send_next(self, message: Message) -> None:
        if self._ended.is_set():
            await asyncio.sleep(PATIENCE)  # an application that listens is cancelled in here
            raise _GoneError("the client is gone")
        end = await self._client.take(message)
        if end is not None:
            # The application hears of it at once: a client that is slow to read does not keep it
            # going. It may then cancel the task that this runs in, so the end of the answer is sent
            # by another one.
            self._ended.set()
            self._last = asyncio.ensure_future(end)
            await asyncio.shield(self._last)


class _Client:
    """The client's side of one answer: its head once it is known what it is, and its body, cut."""

    def __init__(self, exchange: Exchange, options: dict[str, Any], send: Send) -> None:
        self._exchange, self._options, self._send = exchange, options, send
        self._cutting: AnswerCutter | None = None
        self._start: Message | None = None  # waits until it is known what follows
        self._begun = False

    async def take(self, message: Message) -> Coroutine[Any, Any, None] | None:
        """Send what the application sent, cut. If that ends the answer before the application did,
        the sending of its end is given back.
        """
        kind = message["type"]
        if kind == "http.response.start":
            return await self._take_start(message)
        if kind == "http.response.body" and self._cutting is not None:
            return await self._take_body(self._cutting, message)
        await self._send(message)
        return None

    async def _take_start(self, message: Message) -> Coroutine[Any, Any, None] | None:
        status = message["status"]
        if not 200 <= status < 300 or status == 204:
            await self._send(message)
            return None
        headers = _joined_headers(message)
        label = headers.get(b"content-type", b"").decode("latin-1")
        try:
            self._cutting = AnswerCutter(
                make_cutter(self._exchange.cutter, **self._options),
                streams=self._exchange.streams,
                label=label,
                coding=headers.get(b"content-encoding", b"").decode("latin-1"),
                on_unread=self._options.get("on_unread") or "fail",
            )
        except WireError as error:
            return self._end_with_error(error, None)
        kept = [
            pair
            for pair in message.get("headers", ())
            if bytes(pair[0]).lower() not in (b"content-length", b"content-encoding")
        ]
        self._start = {**message, "headers": kept}
        if self._exchange.streams and label.lower().startswith("text/event-stream"):
            await self._begin()
        return None

    async def _take_body(
        self, cutting: AnswerCutter, message: Message
    ) -> Coroutine[Any, Any, None] | None:
        more = message.get("more_body", False)
        try:
            out = cutting.feed(bytes(message.get("body", b"")))
            if has_all(cutting):
                return self._end(out)
            if not more:
                out += cutting.finish()
        except WireError as error:
            return self._end_with_error(error, cutting)
        if not more:
            await self._end(out)
        elif out:
            await self._begin()
            await self._send({"type": "http.response.body", "body": out, "more_body": True})
        return None

    async def break_off(self) -> None:
        """The application did not end its answer: send what is held."""
        if self._begun and self._cutting is not None and (rest := rest_of(self._cutting)):
            await self._send({"type": "http.response.body", "body": rest, "more_body": True})

    async def _begin(self, length: int | None = None) -> None:
        self._begun = True
        if self._start is not None:
            start, self._start = self._start, None
            if length is not None:
                pair = (b"content-length", str(length).encode())
                start = {**start, "headers": [*start["headers"], pair]}
            await self._send(start)

    async def _end(self, out: bytes) -> None:
        await self._begin(len(out))
        await self._send({"type": "http.response.body", "body": out, "more_body": False})

    async def _end_with_error(self, error: WireError, cutting: AnswerCutter | None) -> None:
        if cutting is None or not (self._begun or error.output):
            await _send_error(
                self._send, STATUS, error_body(self._exchange.dialect, error, cutting)
            )
            return
        await self._end(error.output + in_own_words(cutting, error, begun=True))


def _joined_headers(message: Message) -> dict[bytes, bytes]:
    """Headers by name, several of one name as one list."""
    made = dict[bytes, bytes]()
    for name, value in message.get("headers", ()):
        key = bytes(name).lower()
        made[key] = made[key] + b"," + bytes(value) if key in made else bytes(value)
    return made
