"""The law as a table: every dialect, sent as a stream or as a body where either was asked for, under
every label, in every coding, through every adapter. In each cell the stop is enforced or the client
is told; nothing after the stop ever arrives.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from serving import NEEDED, request, whole_text

from holdback._body_kind import LINES
from holdback.dialects import DIALECTS
from holdback.integrations.asgi import StopMiddleware
from holdback.integrations.httpx import transport
from holdback.serve import create_app
from holdback.serve.config import Config, Upstream
from holdback.serve.sse import objects

httpx = pytest.importorskip("httpx", reason="needs the group examples, which `make setup` installs")
brotli = pytest.importorskip("brotli", reason=NEEDED)
zstd: Any = pytest.importorskip(
    "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd", reason=NEEDED
)

pytestmark = pytest.mark.thread_unsafe

STOPS = ["never", "###", "also never"]
PIECES = ("The capital", " is Paris", ".#", "##", " and then secret", " things")
TEXT = "The capital is Paris."
SECRET = b"secret"

LABELS = [
    "text/event-stream",
    "application/json",
    "application/x-ndjson",
    "text/plain; charset=utf-8",
    "application/octet-stream",
    None,
]
CODINGS: dict[str | None, Callable[[bytes], bytes]] = {
    None: bytes,
    "gzip": gzip.compress,
    "X-Gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
    "gzip, br": lambda data: brotli.compress(gzip.compress(data)),
    "lzma": lambda data: b"\xfd7z" + data[::-1],
}
UNKNOWN = ("lzma",)


@dataclass
class Asked:
    """What a canned answer depends on."""

    body: dict[str, Any]
    model: str | None = "m"
    stream: bool = True
    choices: int = 1


@dataclass
class Answer:
    """What the upstream of a cell sends."""

    body: bytes
    label: str | None
    coding: str | None

    @property
    def headers(self) -> list[tuple[str, str]]:
        given = (("content-type", self.label), ("content-encoding", self.coding))
        return [(name, value) for name, value in given if value is not None]


def canned(dialect: Any, *, stream: bool) -> bytes:
    """The whole answer, as a stream or a body."""
    spec = DIALECTS[dialect]
    path, body = request(dialect, STOPS, stream=stream)
    events = [event for _, event in spec.events(PIECES, Asked(body, stream=stream))]
    raw = b"".join(map(spec.frame, events))
    if stream:
        return raw
    whole = spec.assemble(path, body)
    for event in objects(raw):
        whole.add(event)
    return json.dumps(whole.body()).encode()


# --- the adapters: a request and an answer in, status and bytes out

Ask = Callable[[str, Any, Answer], Awaitable[tuple[int, bytes]]]


class ThroughGateway:
    """An upstream on loopback and the gateway in front of it."""

    async def __aenter__(self) -> Ask:
        self.answer = Answer(b"", None, None)
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.app = create_app(Config(upstreams=(Upstream("up", f"http://127.0.0.1:{port}"),)))
        return self.ask

    async def __aexit__(self, *error: object) -> None:
        await call(self.app, {"type": "lifespan"}, [{"type": "lifespan.shutdown"}])
        self.server.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                lines = "".join(f"{name}: {value}\r\n" for name, value in self.answer.headers)
                size = len(self.answer.body)
                writer.write(
                    f"HTTP/1.1 200 OK\r\n{lines}content-length: {size}\r\n\r\n".encode()
                    + self.answer.body
                )
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    async def ask(self, target: str, body: Any, answer: Answer) -> tuple[int, bytes]:
        self.answer = answer
        return await ask_asgi(self.app, target, body)


class ThroughMiddleware:
    """An application, and the middleware around it."""

    async def __aenter__(self) -> Ask:
        return self.ask

    async def __aexit__(self, *error: object) -> None:
        pass

    async def ask(self, target: str, body: Any, answer: Answer) -> tuple[int, bytes]:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            headers = [(name.encode(), value.encode()) for name, value in answer.headers]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            half = len(answer.body) // 2
            left = asyncio.ensure_future(receive())
            for piece, more in ((answer.body[:half], True), (answer.body[half:], False)):
                await send({"type": "http.response.body", "body": piece, "more_body": more})
                await asyncio.sleep(0)
                if left.done():
                    return
            left.cancel()

        return await ask_asgi(StopMiddleware(app), target, body)


class ThroughClient:
    """The transport in a client of httpx."""

    async def __aenter__(self) -> Ask:
        return self.ask

    async def __aexit__(self, *error: object) -> None:
        pass

    async def ask(self, target: str, body: Any, answer: Answer) -> tuple[int, bytes]:
        def handle(_: Any) -> Any:
            return httpx.Response(200, headers=answer.headers, stream=Halves(answer.body))

        with httpx.Client(transport=transport(httpx.MockTransport(handle))) as client:
            reply = client.post(f"http://up{target}", json=body)
            return reply.status_code, reply.content


class ThroughAsyncClient(ThroughClient):
    """The same, asynchronous."""

    async def ask(self, target: str, body: Any, answer: Answer) -> tuple[int, bytes]:
        async def handle(_: Any) -> Any:
            return httpx.Response(200, headers=answer.headers, stream=Halves(answer.body))

        inner = httpx.MockTransport(handle)
        async with httpx.AsyncClient(transport=transport(inner)) as client:
            reply = await client.post(f"http://up{target}", json=body)
            return reply.status_code, reply.content


class Halves(httpx.SyncByteStream, httpx.AsyncByteStream):  # type: ignore[misc]
    """A body in two pieces."""

    def __init__(self, body: bytes) -> None:
        self.pieces = body[: len(body) // 2], body[len(body) // 2 :]

    def __iter__(self) -> Any:
        return iter(self.pieces)

    async def __aiter__(self) -> Any:
        for piece in self.pieces:
            yield piece


async def call(app: Any, scope: dict[str, Any], asked: list[Any]) -> list[Any]:
    """What an application sends."""
    sent: list[Any] = []

    async def receive() -> Any:
        return asked.pop(0) if asked else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


async def ask_asgi(app: Any, target: str, body: Any) -> tuple[int, bytes]:
    path, _, query = target.partition("?")
    scope = {"type": "http", "method": "POST", "path": path, "query_string": query.encode()}
    raw = json.dumps(body).encode()
    headers = [(b"content-type", b"application/json")]
    sent = await call(app, {**scope, "headers": headers}, [{"type": "http.request", "body": raw}])
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


ADAPTERS = {
    "gateway": ThroughGateway,
    "middleware": ThroughMiddleware,
    "httpx": ThroughClient,
    "httpx async": ThroughAsyncClient,
}


# --- the verdict


def text_of(dialect: Any, body: bytes) -> str:
    """The text that a lenient reader shows, whatever the answer came as."""
    spec = DIALECTS[dialect]
    if body.lstrip().startswith((b"{", b"[")) and dialect not in LINES:
        return whole_text(dialect, json.loads(body))
    whole = spec.assemble(request(dialect, STOPS, stream=False)[0], {})
    for event in objects(body):
        whole.add(event)
    return whole_text(dialect, whole.body())


def was_told(status: int, body: bytes) -> bool:
    return status >= 400 and (b"error" in body or body.startswith(b'{"message"'))  # Cohere's way


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream asked", "body asked"])
@pytest.mark.parametrize("sent", [True, False], ids=["stream sent", "body sent"])
def test_every_cell_is_enforced_or_told(
    dialect: Any, stream: bool, sent: bool, adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "holdback.integrations.asgi.PATIENCE", 0.0
    )  # this application does not listen
    plain = canned(dialect, stream=sent)
    assert SECRET in plain
    target, body = request(dialect, STOPS, stream=stream)

    async def run() -> None:
        async with ADAPTERS[adapter]() as ask:
            for coding, encode in CODINGS.items():
                for label in LABELS:
                    answer = Answer(encode(plain), label, coding)
                    status, got = await asyncio.wait_for(ask(target, body, answer), 30)
                    cell = (label, coding, status, got)
                    assert SECRET not in got, cell
                    if coding in UNKNOWN:
                        assert was_told(status, got), cell
                    else:
                        assert (status, text_of(dialect, got)) == (200, TEXT), cell

    asyncio.run(run())


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("sent", ["array", "pretty array", "events"])
def test_geminis_array_of_events_is_cut(
    sent: str, adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it streams to clients that do not ask for `alt=sse`."""
    monkeypatch.setattr("holdback.integrations.asgi.PATIENCE", 0.0)
    events = list(objects(canned("gemini", stream=True)))
    plain = {
        "array": b"[" + b",\r\n".join(json.dumps(event).encode() for event in events) + b"\n]",
        "pretty array": json.dumps(events, indent=2).encode(),
        "events": canned("gemini", stream=True),
    }[sent]
    target, body = request("gemini", STOPS, stream=True)

    async def run() -> None:
        async with ADAPTERS[adapter]() as ask:
            for coding in (None, "gzip"):
                for label in LABELS:
                    answer = Answer(CODINGS[coding](plain), label, coding)
                    path = target.partition("?")[0]
                    status, got = await asyncio.wait_for(ask(path, body, answer), 30)
                    cell = (label, coding, status, got)
                    assert SECRET not in got, cell
                    assert status == 200, cell
                    array = got.startswith(b"[")
                    assert array or sent == "events", cell
                    found = json.loads(got) if array else list(objects(got))
                    parts = [part for e in found for part in e["candidates"][0]["content"]["parts"]]
                    assert "".join(part["text"] for part in parts) == TEXT, cell
                    assert found[-1]["candidates"][0]["finishReason"] == "STOP", cell

    asyncio.run(run())
