"""Any stops on any model, for SDKs as they are: OpenAI, Anthropic, google-genai, Ollama,
huggingface_hub, all on httpx or httpx2.

```python
from openai import DefaultHttpxClient, OpenAI
from holdback.integrations.httpx import wrap

client = OpenAI(http_client=wrap(DefaultHttpxClient()))
client.chat.completions.create(model="gpt-5", stop=[...])   # a dozen stops, on a model that takes none
```

The transport takes out of a request what its provider would refuse (`holdback.providers.plan`),
cuts the answer, streamed or whole, puts the stop that fired where the provider's own format has a
place for it, and closes the connection at the match. Requests that bring no stops, or that the
provider can serve by itself, and everything that is not a request to a model, pass untouched.

Both packages are served without importing either: what is made here is of the package that the
request came from.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

from holdback import StopSet, providers
from holdback._answers import AnswerCutter
from holdback._failures import NO_RETRY, STATUS, error_body
from holdback._relay import arelay, relay
from holdback.integrations._cutting import in_own_words, make_cutter
from holdback.integrations._requests import Exchange, RefusedError, read_exchange, stay_here
from holdback.wire import Cutter, WireError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterable, Iterator

    from typing_extensions import Unpack

    from holdback.integrations._options import CutterOptions
    from holdback.providers import Provider

Client = TypeVar("Client")
Transport = TypeVar("Transport")


def wrap(client: Client, **options: Any) -> Client:
    """Put the transport around all transports (also those of proxies) of a client that exists;
    gives the client.

    Args:
        client: an `httpx.Client`, `httpx.AsyncClient`, `httpx2.Client` or `httpx2.AsyncClient`.
        options: as for :func:`transport`.

    Raises:
        TypeError: if it is not such a client.
    """
    inner, mounts = getattr(client, "_transport", None), getattr(client, "_mounts", None)
    if not hasattr(inner, "handle_request") and not hasattr(inner, "handle_async_request"):
        raise TypeError(f"a client of httpx or httpx2, not {type(client).__name__}")
    client._transport = transport(inner, **options)  # type: ignore[attr-defined]  # httpx has no public way
    if isinstance(mounts, dict):
        for pattern, mounted in mounts.items():
            mounts[pattern] = mounted and transport(mounted, **options)
    return client


def transport(
    inner: Transport,
    /,
    *,
    stop: Iterable[str] | None = None,
    provider: str | Provider | None = None,
    must_name: bool = False,
    **options: Unpack[CutterOptions],
) -> Transport:
    """A transport of httpx or httpx2, synchronous or not, that enforces stops on what passes
    through `inner`.

    Args:
        inner: the transport that does the work, `httpx.HTTPTransport()` for example.
        stop: stops for requests that bring none; the only way for APIs that have no field for them (OpenAI's Responses).
        provider: whose limits on stops hold, a name of `holdback.providers` (`"vllm"`), where the host does not tell.
        must_name: enforce all stops here if the provider would not say which one fired. An answer that is not streamed is then
            generated to its end and paid for.
        options: those of `holdback.wire.Cutter`: `include_stop`, `ignore_inside`, `cut_reasoning`, `on_match`, ...

    Raises:
        TypeError: if `inner` is not a transport.
        ValueError: for bad stops, a provider that is not known, or options that do not fit together.
    """
    rules = _Rules(stop, provider, must_name, {**options})
    if not hasattr(inner, "handle_request") and not hasattr(inner, "handle_async_request"):
        raise TypeError(f"a transport of httpx or httpx2, not {type(inner).__name__}")
    return _Transport(inner, rules)  # type: ignore[return-value]  # it is one by its methods


class _Rules:
    """What holds for all requests of a transport."""

    def __init__(self, stop: Any, provider: Any, must_name: bool, options: dict[str, Any]) -> None:
        self.stop = list(StopSet(stop).stops)
        self.provider = providers.get(provider) if isinstance(provider, str) else provider
        self.must_name = must_name
        self.options = options
        Cutter(
            "openai.chat", self.stop, **options
        )  # bad options are errors now, not with the first request

    def cutting(self, exchange: Exchange, response: Any) -> AnswerCutter:
        """What cuts the answer to `exchange`. Raises `WireError` for an unknown coding."""
        return AnswerCutter(
            make_cutter(exchange.cutter, **self.options),
            streams=exchange.streams,
            label=response.headers.get("content-type", ""),
            coding=response.headers.get("content-encoding", ""),
            on_unread=self.options.get("on_unread") or "fail",
        )

    def read(self, request: Any, body: bytes) -> Exchange | None:
        return read_exchange(
            request.url.path,
            request.url.query.decode("ascii", "replace"),
            body,
            coding=request.headers.get("content-encoding", ""),
            host=request.url.host,
            provider=self.provider,
            stop=self.stop,  # type: ignore[arg-type]  # bytes are refused with the first request
            must_name=self.must_name,
            local=stay_here(self.options),
        )


def _is_json_post(request: Any) -> bool:
    return request.method == "POST" and "json" in request.headers.get("content-type", "")


def _rewritten(request: Any, exchange: Exchange) -> Any:
    """The request as it is to be sent: with its body, and with an answer that is not compressed
    (each chunk is to be read at once).
    """
    headers = request.headers.copy()
    headers["accept-encoding"] = "identity"
    headers["content-length"] = str(len(exchange.body))
    for name in ("transfer-encoding", "content-encoding"):
        if name in headers:
            del headers[name]
    return type(request)(
        request.method,
        request.url,
        headers=headers,
        content=exchange.body,
        extensions=request.extensions,
    )


def _refused(request: Any, error: RefusedError) -> Any:
    """The answer to a request whose stops cannot be enforced."""
    headers = {"content-type": "application/json"}
    response = _package(request).Response
    return response(error.status, headers=headers, content=error.body, request=request)


def _may_be_cut(response: Any) -> bool:
    """Whether a response is an answer: errors pass as they are."""
    return 200 <= int(response.status_code) < 300 and response.status_code != 204


def _response(response: Any, **content: Any) -> Any:
    """A response with other content and the same head."""
    headers = response.headers.copy()
    for name in ("content-length", "content-encoding", "transfer-encoding"):
        if name in headers:
            del headers[name]
    return type(response)(
        response.status_code, headers=headers, extensions=response.extensions, **content
    )


def _error(response: Any, exchange: Exchange, error: WireError, cutting: Any = None) -> Any:
    """The response that says, in the provider's words, that its answer cannot be cut."""
    body = error_body(exchange.dialect, error, cutting)
    headers = {"content-type": "application/json", **dict((NO_RETRY,))}
    return type(response)(STATUS, headers=headers, content=body)


def _package(request: Any) -> Any:
    return sys.modules[type(request).__module__.partition(".")[0]]


class _Transport:
    """See :func:`transport`.

    Both kinds in one: some transports (`httpx.MockTransport`) are both.
    """

    def __init__(self, inner: Any, rules: _Rules) -> None:
        self.inner, self.rules = inner, rules

    def handle_request(self, request: Any) -> Any:
        try:
            exchange = self.rules.read(request, request.read()) if _is_json_post(request) else None
        except RefusedError as error:
            return _refused(request, error)
        if exchange is None:
            return self.inner.handle_request(request)
        response = self.inner.handle_request(_rewritten(request, exchange))
        if not _may_be_cut(response):
            return response
        try:
            cutting = self.rules.cutting(exchange, response)
        except WireError as error:
            response.close()
            return _error(response, exchange, error)
        pieces = relay(response.stream, cutting, response.close)
        if exchange.streams and _says_stream(response):
            first = b""  # its head goes out at once
        else:
            try:
                first = next(pieces, b"") if exchange.streams else b"".join(pieces)
            except WireError as error:
                return _error(response, exchange, error, cutting)
        if not exchange.streams:
            return _response(response, content=first)
        base = _package(request).SyncByteStream
        return _response(
            response,
            stream=type("CutStream", (_SyncCut, base), {})(response, first, pieces, cutting),
        )

    def close(self) -> None:
        self.inner.close()

    def __enter__(self) -> _Transport:
        self.inner.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.inner.__exit__(*exc)

    async def handle_async_request(self, request: Any) -> Any:
        try:
            exchange = (
                self.rules.read(request, await request.aread()) if _is_json_post(request) else None
            )
        except RefusedError as error:
            return _refused(request, error)
        if exchange is None:
            return await self.inner.handle_async_request(request)
        response = await self.inner.handle_async_request(_rewritten(request, exchange))
        if not _may_be_cut(response):
            return response
        try:
            cutting = self.rules.cutting(exchange, response)
        except WireError as error:
            await response.aclose()
            return _error(response, exchange, error)
        pieces = arelay(response.stream, cutting, response.aclose)
        if exchange.streams and _says_stream(response):
            first = b""
        else:
            try:
                if exchange.streams:
                    first = await anext(pieces, b"")
                else:
                    first = b"".join([piece async for piece in pieces])
            except WireError as error:
                return _error(response, exchange, error, cutting)
        if not exchange.streams:
            return _response(response, content=first)
        base = _package(request).AsyncByteStream
        return _response(
            response,
            stream=type("CutStream", (_AsyncCut, base), {})(response, first, pieces, cutting),
        )

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def __aenter__(self) -> _Transport:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.inner.__aexit__(*exc)


def _says_stream(response: Any) -> bool:
    label: str = response.headers.get("content-type", "")
    return label.lower().startswith("text/event-stream")


class _SyncCut:
    """The bytes of a response, cut. What cannot be cut ends in an error of the provider's kind."""

    def __init__(
        self, response: Any, first: bytes, pieces: Generator[bytes], cutting: AnswerCutter
    ) -> None:
        self.response, self.first, self.pieces, self.cutting = response, first, pieces, cutting

    def __iter__(self) -> Iterator[bytes]:
        try:
            if self.first:
                yield self.first
            yield from self.pieces
        except WireError as error:
            yield in_own_words(self.cutting, error, begun=True)

    def close(self) -> None:
        self.pieces.close()  # which closes nothing before it was begun
        self.response.close()


class _AsyncCut:
    """The asynchronous twin of :class:`_SyncCut`."""

    def __init__(
        self, response: Any, first: bytes, pieces: AsyncGenerator[bytes], cutting: AnswerCutter
    ) -> None:
        self.response, self.first, self.pieces, self.cutting = response, first, pieces, cutting

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            if self.first:
                yield self.first
            async for piece in self.pieces:
                yield piece
        except WireError as error:
            yield in_own_words(self.cutting, error, begun=True)

    async def aclose(self) -> None:
        await self.pieces.aclose()
        await self.response.aclose()
