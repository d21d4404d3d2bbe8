"""Answers as upstreams really send them, through the gateway in this process: wrong labels, other
codings, connections that stay open, streams that are refused. No byte after a stop reaches the
client, and nothing is passed unread in silence.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from serving import NEEDED, STOPS, request

from holdback._sse import payloads
from holdback.serve import create_app
from holdback.serve.config import Config, Upstream
from holdback.serve.sse import objects

brotli = pytest.importorskip("brotli", reason=NEEDED)

pytestmark = pytest.mark.thread_unsafe


class Wire:
    """An upstream that writes what a test wants, and what it was sent."""

    def __init__(self, script: Callable[[Wire, bytes], Any]) -> None:
        self.script = script
        self.asked: list[Any] = []
        self.writer: Any = None
        self.left = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = head.lower().split(b"\r\n")
                length = next(
                    (int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0
                )
                body = await reader.readexactly(length)
                self.asked.append((head, json.loads(body) if body else None))
                if await self.script(self, body) is not True:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
        finally:
            writer.close()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes, *headers: str, status: str = "200 OK") -> None:
        """An answer whose end is the connection's."""
        lines = "".join(f"{header}\r\n" for header in headers)
        await self.send(f"HTTP/1.1 {status}\r\n{lines}connection: close\r\n\r\n".encode() + body)


@asynccontextmanager
async def serving(wire: Wire, **settings: Any) -> AsyncIterator[Any]:
    """The gateway in front of it."""
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    app = create_app(Config(upstreams=(Upstream("up", f"http://127.0.0.1:{port}"),), **settings))
    try:
        yield app
    finally:
        asked = [{"type": "lifespan.shutdown"}]

        async def receive() -> Any:
            return asked.pop()

        async def send(_: Any) -> None:
            pass

        await app({"type": "lifespan"}, receive, send)
        server.close()


class Reply:
    """What the client got."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.complete = False

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(app: Any, target: str, body: Any) -> Reply:
    """One request to the gateway, as a server would hand it on."""
    path, _, query = target.partition("?")
    asked = [{"type": "http.request", "body": json.dumps(body).encode()}]
    reply = Reply()
    done = asyncio.Event()

    async def receive() -> Any:
        if asked:
            return asked.pop()
        await done.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {k.decode(): v.decode() for k, v in message["headers"]}
        else:
            reply.body += message.get("body", b"")
            reply.complete = not message.get("more_body", False)

    scope = {"type": "http", "method": "POST", "path": path, "headers": []}
    await app({**scope, "query_string": query.encode()}, receive, send)
    done.set()
    return reply


def through(
    script: Callable[[Wire, bytes], Any], *target: Any, **settings: Any
) -> tuple[Reply, Wire]:
    """One exchange, and what its upstream saw."""
    wire = Wire(script)

    async def run() -> Reply:
        async with serving(wire, **settings) as app:
            return await asyncio.wait_for(ask(app, *target), 60)

    return asyncio.run(run()), wire


def delta(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
STREAM = delta("one E") + delta("ND two") + delta("", "stop") + DONE
BODY = json.dumps(
    {"choices": [{"index": 0, "message": {"content": "one END two"}, "finish_reason": "stop"}]}
).encode()
SSE = "content-type: text/event-stream"
LABELS = [
    "text/event-stream",
    "text/event-stream; charset=utf-8",
    "application/json",
    "text/plain",
    "application/octet-stream",
    "text/html",
    None,
]


def text_of(body: bytes) -> str:
    """Of chat, as a lenient reader takes it: a body or a stream."""
    if body.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"{"):
        answer = json.loads(body)
        return "".join(choice["message"]["content"] for choice in answer["choices"])
    return "".join(
        choice["delta"].get("content") or ""
        for event in objects(body)
        for choice in event.get("choices", ())
    )


def label_line(label: str | None) -> list[str]:
    return [] if label is None else [f"content-type: {label}"]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("sent", [STREAM, BODY], ids=["events", "body"])
def test_what_an_answer_is_does_not_follow_from_its_label(
    label: str | None, stream: bool, sent: bytes
) -> None:
    async def script(wire: Wire, _: bytes) -> None:
        await wire.answer(sent, *label_line(label))

    reply, wire = through(script, *request("openai.chat", STOPS, stream=stream))
    assert (reply.status, text_of(reply.body)) == (200, "one ")
    assert "stop" not in wire.asked[0][1]


@pytest.mark.parametrize(
    "start",
    [
        b"\xef\xbb\xbf",
        b": hello\n\n",
        b"event: message\n",
        b"id: 1\n",
        b"retry: 5\n\n",
        b"\r\n\r\n",
        b" \n\t\n",
        b"\xef\xbb\xbf\n: ping\n\nid\n",
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_what_stands_before_the_first_event(start: bytes, size: int) -> None:
    async def script(wire: Wire, _: bytes) -> None:
        await wire.answer(b"", "content-type: application/json")
        sent = start + STREAM
        for place in range(0, len(sent), size):
            await wire.send(sent[place : place + size])
            await asyncio.sleep(0)

    reply, _ = through(script, *request("openai.chat", STOPS, stream=True))
    assert (reply.status, text_of(reply.body)) == (200, "one ")
    assert reply.body.startswith(start)


def zstandard(data: bytes) -> bytes:
    import sys

    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    made: bytes = pytest.importorskip(name, reason=NEEDED).compress(data)
    return made


CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard,
    "gzip, gzip": lambda data: gzip.compress(gzip.compress(data)),
    "identity": bytes,
}


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("sent", [STREAM, BODY], ids=["events", "body"])
def test_a_compressed_answer_is_cut(coding: str, stream: bool, sent: bytes) -> None:
    async def script(wire: Wire, _: bytes) -> None:
        coded = CODINGS[coding](sent)
        await wire.answer(coded[:9], SSE, f"content-encoding: {coding}")
        await wire.send(coded[9:])

    reply, _ = through(script, *request("openai.chat", STOPS, stream=stream))
    assert (reply.status, text_of(reply.body)) == (200, "one ")
    assert "content-encoding" not in reply.headers


@pytest.mark.parametrize("stream", [True, False])
def test_a_coding_that_is_not_known_is_named(stream: bool) -> None:
    async def script(wire: Wire, _: bytes) -> None:
        await wire.answer(b"\x01\x02", SSE, "content-encoding: lzma")

    reply, _ = through(script, *request("openai.chat", STOPS, stream=stream))
    assert (reply.status, reply.json["error"]["code"]) == (502, "unread")
    assert reply.headers["x-should-retry"] == "false", "SDKs would try again, and pay again"
    assert "lzma" in reply.json["error"]["message"]


@pytest.mark.parametrize("sent", [b"<html>oops</html>", gzip.compress(STREAM), b"one END two"])
@pytest.mark.parametrize("stream", [True, False])
def test_what_is_no_answer_is_an_error(sent: bytes, stream: bool) -> None:
    async def script(wire: Wire, _: bytes) -> None:
        await wire.answer(sent, "content-type: text/plain")

    reply, _ = through(script, *request("openai.chat", STOPS, stream=stream))
    assert (reply.status, reply.json["error"]["code"]) == (502, "unread")
    reply, _ = through(script, *request("openai.chat", STOPS, stream=stream), on_unread="pass")
    assert (reply.status, reply.body) == (200, sent)


# --- the protocol's end
# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [b"", b": ping\n\n"], ids=["silence", "pings"])
@pytest.mark.parametrize("end", [delta("", "stop") + DONE, delta("", "stop")], ids=["done", "none"])
def test_a_whole_answer_is_over_at_the_protocols_end(after: bytes, end: bytes) -> None:
    """The connection stays open, and something may even come on it."""

    async def script(wire: Wire, _: bytes) -> None:
        await wire.answer(delta("all of it") + end, SSE)
        while not wire.writer.is_closing():
            await asyncio.sleep(0.02)
            await wire.send(after)

    reply, _ = through(script, *request("openai.chat", STOPS, stream=False), idle_timeout=30.0)
    assert (reply.status, text_of(reply.body)) == (200, "all of it")


def test_a_pause_before_the_end_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdback.serve.whole.GRACE", 0.01)

    async def script(wire: Wire, _: bytes) -> None:
        await wire.answer(delta("half"), SSE)
        await asyncio.sleep(0.2)
        await wire.send(delta(" and half", "stop"))

    reply, _ = through(script, *request("openai.chat", STOPS, stream=False))
    assert text_of(reply.body) == "half and half"


# --- what the gateway makes of a request
# -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["400 Bad", "403 No", "422 Extra"])
def test_an_upstream_that_refuses_to_stream_is_asked_as_the_client_asked(status: str) -> None:
    wire = Wire(lambda *_: None)

    async def script(wire: Wire, raw: bytes) -> bool:
        asked = json.loads(raw)
        refused = "stream_options" in asked or asked.get("stream")
        body = b'{"error":{"message":"stream_options: extra field"}}' if refused else BODY
        head = f"HTTP/1.1 {status if refused else '200 OK'}\r\ncontent-type: application/json\r\n"
        await wire.send(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        return True

    wire.script = script

    async def run() -> list[Reply]:
        async with serving(wire) as app:
            target = request("openai.chat", STOPS, stream=False)
            return [await ask(app, *target), await ask(app, *target)]

    replies = asyncio.run(run())
    assert [(reply.status, text_of(reply.body)) for reply in replies] == [(200, "one ")] * 2
    assert replies[0].headers["x-holdback-stop"] == '"END"'
    streamed = [bool(asked.get("stream")) for _, asked in wire.asked]
    assert streamed == [True, False, False], "the refusal is remembered"
    assert not any("stop" in asked for _, asked in wire.asked)


def test_a_request_that_is_refused_anyway_is_refused_in_the_upstreams_words() -> None:
    async def script(wire: Wire, _: bytes) -> None:
        await wire.answer(b'{"error":"no"}', status="422 No")

    wire = Wire(script)

    async def run() -> list[Reply]:
        async with serving(wire) as app:
            target = request("openai.chat", STOPS, stream=False)
            return [await ask(app, *target), await ask(app, *target)]

    assert [(reply.status, reply.body) for reply in asyncio.run(run())] == [
        (422, b'{"error":"no"}')
    ] * 2
    assert [bool(asked.get("stream")) for _, asked in wire.asked] == [True, False] * 2


@pytest.mark.parametrize("status", ["101 Switching", "199 Odd", "999 Odd", "600 Odd"])
@pytest.mark.parametrize("stops", [STOPS, None])
def test_a_status_that_is_none_is_the_upstreams_fault(status: str, stops: Any) -> None:
    async def script(wire: Wire, _: bytes) -> None:
        await wire.answer(b"{}", status=status)

    reply, _ = through(script, *request("openai.chat", stops, stream=False), idle_timeout=5.0)
    assert reply.status == 502


# --- the comment that names the stop
# -------------------------------------------------------------------------------


def eager_reader(data: bytes) -> list[bytes]:
    """Events as some readers dispatch them: at every blank line once an `id` was seen, also where
    there was no data.
    """
    events, lines, seen_id = [], list[bytes](), False
    for line in data.split(b"\n")[:-1]:
        if line:
            seen_id |= line.startswith(b"id:")
            lines += [line[5:].strip()] if line.startswith(b"data:") else []
        elif lines or seen_id:
            events.append(b"\n".join(lines))
            lines = []
    return events


def test_the_comment_dispatches_no_event_of_its_own() -> None:
    def event(number: int, kind: str, **fields: Any) -> bytes:
        value = json.dumps({"type": kind, "sequence_number": number, **fields})
        return f"id: {number}\nevent: {kind}\ndata: {value}\n\n".encode()

    where = {"item_id": "m", "output_index": 0, "content_index": 0}
    item = {"id": "m", "type": "message", "role": "assistant", "content": []}
    sent = [
        event(0, "response.created", response={"id": "r", "output": []}),
        event(1, "response.output_item.added", output_index=0, item=item),
        event(2, "response.content_part.added", **where, part={"type": "output_text", "text": ""}),
        event(3, "response.output_text.delta", **where, delta="one END two"),
    ]

    async def script(wire: Wire, _: bytes) -> None:
        await wire.answer(b"".join(sent), SSE)

    reply, _ = through(script, *request("openai.responses", STOPS, stream=True))
    assert reply.body.endswith(b'\n\n: x-holdback-stop: "END"\n')
    got = eager_reader(reply.body)
    assert got == list(payloads(reply.body))
    assert all(json.loads(payload) for payload in got)
    assert json.loads(got[-1])["type"] == "response.completed"


# --- errors inside a stream
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "error", "status"),
    [
        ("openai.chat", {"error": {"type": "BadRequestError", "message": "no", "code": 400}}, 400),
        ("openai.chat", {"error": {"message": "no"}}, 502),
        (
            "anthropic.messages",
            {"type": "error", "error": {"type": "rate_limit_error", "message": "no"}},
            429,
        ),
        (
            "anthropic.messages",
            {"type": "error", "error": {"type": "overloaded_error", "message": "no"}},
            529,
        ),
        ("gemini", {"error": {"code": 503, "status": "UNAVAILABLE", "message": "no"}}, 503),
    ],
)
def test_an_error_inside_a_stream_has_the_status_that_it_tells(
    dialect: str, error: dict[str, Any], status: int
) -> None:
    """The client did not ask for a stream, so it is owed the status that it would have got."""

    async def script(wire: Wire, _: bytes) -> None:
        await wire.answer(b"data: " + json.dumps(error).encode() + b"\n\n", SSE)

    reply, _ = through(script, *request(dialect, STOPS, stream=False))
    assert reply.status == status
    assert "no" in json.dumps(reply.json)


def response_event(number: int, kind: str, **fields: Any) -> bytes:
    value = json.dumps({"type": kind, "sequence_number": number, **fields})
    return f"event: {kind}\ndata: {value}\n\n".encode()


@pytest.mark.parametrize("begun", [True, False])
def test_a_response_that_dies_has_failed(begun: bool) -> None:
    """Clients of the Responses API wait for `response.failed` and know no other end of that kind."""
    where = {"item_id": "m", "output_index": 0, "content_index": 0}
    created = {"id": "resp_7", "object": "response", "status": "in_progress", "output": []}
    sent = [
        *([response_event(0, "response.created", response=created)] if begun else []),
        response_event(4, "response.output_text.delta", **where, delta="text E"),
    ]

    async def script(wire: Wire, _: bytes) -> None:
        await wire.send(f"HTTP/1.1 200 OK\r\n{SSE}\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        for piece in sent:
            await wire.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            await asyncio.sleep(0.05)

    reply, _ = through(script, *request("openai.responses", STOPS, stream=True))
    events = list(objects(reply.body))
    text = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
    assert text == "text E", "what was held leaves first"
    if not begun:
        assert events[-1]["type"] == "error"
        return
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["sequence_number"] == events[-2]["sequence_number"] + 1
    assert (events[-1]["response"]["id"], events[-1]["response"]["status"]) == ("resp_7", "failed")
    assert events[-1]["response"]["error"]["message"]


def test_an_answer_of_another_dialect_is_an_error() -> None:
    async def script(wire: Wire, _: bytes) -> None:
        delta = {"type": "text_delta", "text": "one END two"}
        event = {"type": "content_block_delta", "index": 0, "delta": delta}
        await wire.answer(b"data: " + json.dumps(event).encode() + b"\n\n", SSE)

    reply, _ = through(script, *request("openai.chat", STOPS, stream=True))
    assert b"END" not in reply.body
    assert [event["error"]["code"] for event in objects(reply.body)] == ["unread"]


def test_a_header_that_cannot_be_sent_is_named() -> None:
    wire = Wire(lambda *_: None)

    async def run() -> list[Any]:
        sent: list[Any] = []
        async with serving(wire) as app:
            asked = [{"type": "http.request", "body": b"{}"}]

            async def receive() -> Any:
                return asked.pop() if asked else await asyncio.Event().wait()

            async def send(message: Any) -> None:
                sent.append(message)

            scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions"}
            await app(
                {**scope, "query_string": b"", "headers": [(b"x-bin", b"\xff\xfe")]}, receive, send
            )
        return sent

    start, body = asyncio.run(run())
    assert start["status"] == 400
    assert "x-bin" in json.loads(body["body"])["error"]["message"]


@pytest.mark.parametrize(
    ("usage_at", "stops", "expected"),
    [
        (None, ["END"], (0, 2)),  # an estimate: a token for each chunk
        (None, ["never"], (0, 2)),
        (0, ["END"], (7, 2)),  # a preview's figures are not the answer's
        (2, ["never"], (7, 1)),  # those at the end are
        (2, ["END"], (0, 2)),  # they never came
    ],
)
@pytest.mark.parametrize("dialect", ["openai.chat", "openai.completions"])
def test_a_whole_answer_has_usage(
    dialect: str, usage_at: int | None, stops: list[str], expected: tuple[int, int]
) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}

    def chunk(place: int, text: str, finish: str | None) -> bytes:
        content = {"text": text} if "completions" in dialect else {"delta": {"content": text}}
        choice = {"index": 0, **content, "finish_reason": finish}
        more = {"usage": usage} if place == usage_at else {}
        return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"

    async def script(wire: Wire, _: bytes) -> None:
        sent = [chunk(0, "one E", None), chunk(1, "ND two", None), chunk(2, "", "stop")]
        await wire.answer(b"".join(sent) + DONE, SSE)

    reply, _ = through(script, *request(dialect, stops, stream=False))
    made = reply.json["usage"]
    assert (made["prompt_tokens"], made["completion_tokens"]) == expected
    assert made["total_tokens"] == sum(expected)


@pytest.mark.parametrize("policy", ["fail", "pass"])
def test_what_was_not_read_is_counted_and_logged(
    policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "holdback.serve")
    monkey = b'data: {"type":"content_block_delta","delta":{"text":"hush"}}\n\n'
    app: Any = None

    async def script(wire: Wire, _: bytes) -> None:
        await wire.answer(delta("read") + monkey + delta("", "stop") + DONE, SSE)

    async def run() -> str:
        nonlocal app
        async with serving(Wire(script), on_unread=policy) as app:
            await ask(app, *request("openai.chat", STOPS, stream=True))
            return str(app.metrics.text()[0], "utf-8")

    assert 'holdback_errors_total{kind="unread",upstream="up"} 1.0' in asyncio.run(run())
    (record,) = [r for r in caplog.records if r.getMessage() == "request"]
    assert record.fields["unread"] == 1  # type: ignore[attr-defined]
    assert "hush" not in str(record.fields)  # type: ignore[attr-defined]


@pytest.mark.parametrize("number", [b"NaN", b"-Infinity", b"-1e999"])
def test_a_number_that_json_has_not_got_is_kept(number: bytes) -> None:
    async def script(wire: Wire, _: bytes) -> None:
        event = delta("one", "stop").replace(b'"index": 0', b'"index": 0, "score": ' + number)
        await wire.answer(event + DONE, SSE)

    reply, _ = through(script, *request("openai.chat", STOPS, stream=False))
    assert reply.status == 200
    assert reply.json["choices"][0]["message"]["content"] == "one"
