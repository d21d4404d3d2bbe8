"""`cut_sse`, `cut_response`, the transport and the middleware where answers go wrong: each says so in
the words of the protocol, and none lets text pass that it did not read.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from holdback.integrations.asgi import StopMiddleware, cut_response, cut_sse
from holdback.integrations.httpx import transport, wrap
from holdback.serve.sse import objects
from holdback.wire import WireError

httpx = pytest.importorskip("httpx", reason="needs the group examples, which `make setup` installs")

STOPS = ["END", "###"]
DONE = b"data: [DONE]\n\n"
URL = "https://api.openai.com/v1/chat/completions"


def delta(text: str, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, **more, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


STREAM = [delta("one E"), delta("ND two"), delta("never", "stop"), DONE]
BODY = json.dumps(
    {"choices": [{"index": 0, "message": {"content": "one END two"}, "finish_reason": "stop"}]}
).encode()


def text_of(body: bytes) -> str:
    found = (choice for event in objects(body) for choice in event.get("choices", ()))
    return "".join(choice["delta"].get("content") or "" for choice in found)


class Source:
    """Pieces, and whether they were closed."""

    def __init__(self, *pieces: Any) -> None:
        self.pieces, self.read, self.closed = pieces, 0, 0

    def __iter__(self) -> Iterator[Any]:
        for piece in self.pieces:
            self.read += 1
            yield piece

    async def __aiter__(self) -> AsyncIterator[Any]:
        for piece in self.pieces:
            self.read += 1
            yield piece

    def close(self) -> None:
        self.closed += 1

    async def aclose(self) -> None:
        self.closed += 1


def collected(stream: Any) -> bytes:
    async def run() -> bytes:
        return b"".join([piece async for piece in stream])

    return asyncio.run(run()) if hasattr(stream, "__aiter__") else b"".join(stream)


class Sync(Source):
    """Without the asynchronous half."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("__aiter__", "aclose"):
            raise AttributeError(name)
        return super().__getattribute__(name)


# --- cut_sse and cut_response
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Source, Sync])
def test_a_cut_stream_knows_what_fired(kind: type[Source]) -> None:
    source, seen = kind(*STREAM), list[str]()
    cut: Any = cut_sse(source, "openai.chat", STOPS, on_match=lambda match: seen.append(match.stop))
    assert (cut.matches, cut.ended) == ((), False)
    assert text_of(collected(cut)) == "one "
    assert (cut.ended, [match.stop for match in cut.matches], seen) == (True, ["END"], ["END"])
    assert cut.error is None
    assert (source.read, source.closed > 0) == (2, True)


@pytest.mark.parametrize("kind", [Source, Sync])
def test_one_that_is_never_read_closes_its_source(kind: type[Source]) -> None:
    source = kind(*STREAM)
    cut: Any = cut_sse(source, "openai.chat", STOPS)
    if hasattr(cut, "aclose"):
        asyncio.run(cut.aclose())
    else:
        cut.close()
    assert (source.read, source.closed) == (0, 1)


@pytest.mark.parametrize("kind", [Source, Sync])
@pytest.mark.parametrize(
    "pieces",
    [
        [b"<html>END</html>"],
        [gzip.compress(b"".join(STREAM))],
        [
            b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"END"}}\n\n'
        ],
        [b'data: "END"\n\n'],
        [b'data: {"choices":[{"delta":{"content":"END}\n\n'],
    ],
)
def test_what_cannot_be_cut_is_an_error_of_the_protocol(
    kind: type[Source], pieces: list[bytes]
) -> None:
    source = kind(*pieces, b"never")
    cut: Any = cut_sse(source, "openai.chat", STOPS)
    got = collected(cut)
    (event,) = objects(got)
    assert event["error"]["code"] in ("unread", "malformed")
    assert isinstance(cut.error, WireError)
    assert source.closed
    assert b"END" not in got or b"begins with" in got


def test_a_whole_answer_in_place_of_a_stream_is_cut() -> None:
    """What an endpoint that passes on gets when its client did not ask for a stream."""
    cut = cut_sse([BODY[:30], BODY[30:]], "openai.chat", STOPS)
    assert json.loads(b"".join(cut))["choices"][0]["message"]["content"] == "one "
    assert [match.stop for match in cut.matches] == ["END"]


def test_on_match_may_still_be_the_option() -> None:
    cut = cut_sse(STREAM, "openai.chat", STOPS, on_match="drain")
    assert text_of(b"".join(cut)) == "one "
    with pytest.raises(ValueError, match="explode"):
        cut_sse([], "openai.chat", STOPS, on_match="explode")  # type: ignore[call-overload]


def test_a_body_is_cut_as_bytes() -> None:
    made = cut_response(BODY, "openai.chat", STOPS)
    assert json.loads(made)["choices"][0]["message"]["content"] == "one "
    with pytest.raises(WireError, match="neither a stream nor a body"):
        cut_response("<html>", "openai.chat", STOPS)
    with pytest.raises(TypeError, match="not int"):
        cut_response(7, "openai.chat", STOPS)


@pytest.mark.parametrize("content", [b"".join(STREAM), BODY], ids=["stream", "body"])
@pytest.mark.parametrize("coding", [None, "gzip"])
def test_a_response_is_cut_for_what_it_is(content: bytes, coding: str | None) -> None:
    raw = gzip.compress(content) if coding else content
    headers = {
        "content-type": "text/plain",
        "x-kept": "1",
        **({"content-encoding": coding} if coding else {}),
    }
    cut = cut_response(httpx.Response(203, headers=headers, content=raw), "openai.chat", STOPS)
    got = b"".join(cut)
    assert b"two" not in got
    assert b"one " in got
    assert cut.status_code == 203
    assert (cut.headers["x-kept"], "content-encoding" in cut.headers) == ("1", False)
    assert [match.stop for match in cut.matches] == ["END"]


def test_an_asynchronous_response_is_cut_and_closed() -> None:
    source = Source(*STREAM)

    class Stream(httpx.AsyncByteStream):  # type: ignore[misc]
        def __aiter__(self) -> Any:
            return source.__aiter__()

        async def aclose(self) -> None:
            await source.aclose()

    async def run() -> bytes:
        response = httpx.Response(200, stream=Stream())
        return b"".join([piece async for piece in cut_response(response, "openai.chat", STOPS)])

    assert text_of(asyncio.run(run())) == "one "
    assert (source.read, source.closed > 0) == (2, True)


def test_an_error_of_the_provider_passes() -> None:
    response = httpx.Response(429, content=b'{"error":{"message":"END"}}')
    assert b"".join(cut_response(response, "openai.chat", STOPS)) == b'{"error":{"message":"END"}}'


# --- the transport and the middleware
# -------------------------------------------------------------------------------


def through_transport(body: bytes, *, stream: bool, label: str | None, **options: Any) -> Any:
    headers = {} if label is None else {"content-type": label}

    def handle(_: Any) -> Any:
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(body))

    with httpx.Client(transport=transport(httpx.MockTransport(handle), **options)) as client:
        return client.post(URL, json={"model": "gpt-5", "stream": stream, "stop": STOPS})


def through_middleware(body: bytes, *, stream: bool, label: str | None, **options: Any) -> Any:
    headers = [] if label is None else [(b"content-type", label.encode())]
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    asked = [{"stream": stream, "stop": STOPS}]

    async def receive() -> Any:
        return (
            {"type": "http.request", "body": json.dumps(asked.pop()).encode()}
            if asked
            else await asyncio.Event().wait()
        )

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    asyncio.run(StopMiddleware(app, **options)(scope, receive, send))
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return httpx.Response(sent[0]["status"], headers=sent[0]["headers"], content=content)


BOTH = pytest.mark.parametrize("way", [through_transport, through_middleware])


@BOTH
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("body", [b"<html>END</html>", b"", b"\x1f\x8bEND"])
@pytest.mark.parametrize("label", ["text/html", None])
def test_what_is_no_answer_is_answered_for(
    way: Any, stream: bool, body: bytes, label: str | None
) -> None:
    reply = way(body, stream=stream, label=label)
    if not body:
        assert (reply.status_code, reply.content) == (200, b"")
        return
    assert reply.status_code == 502
    assert reply.json()["error"]["code"] == "unread"
    assert reply.headers["x-should-retry"] == "false", "SDKs would try again, and pay again"
    passed = way(body, stream=stream, label=label, on_unread="pass")
    assert (passed.status_code, passed.content) == (200, body)


@BOTH
def test_what_cannot_be_read_in_mid_stream_ends_in_an_error(way: Any) -> None:
    broken = b'data: {"choices":[{"index":0,"delta":{"content":"END" oops}}]}\n\n'
    reply = way(delta("one E") + broken + delta("x"), stream=True, label="text/event-stream")
    assert text_of(reply.content) == "one E", "what was held is text that came"
    assert list(objects(reply.content))[-1]["error"]["code"] == "malformed"
    assert b"oops" not in reply.content.partition(b"error")[0]
    passed = way(
        delta("one E") + broken,
        stream=True,
        label="text/event-stream",
        on_malformed="pass",
        on_unread="pass",
    )
    assert broken in passed.content


@BOTH
def test_a_body_that_cannot_be_read_is_an_error(way: Any) -> None:
    reply = way(BODY[:-3], stream=False, label="application/json")
    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "malformed")


@BOTH
def test_a_message_beside_the_delta_is_cut_or_told(way: Any) -> None:
    """Perplexity and Foundry Local send the text so far beside its next piece."""
    sent = delta("one E", message={"content": "one E"}) + delta(
        "ND two", message={"content": "one END two"}
    )
    reply = way(sent + DONE, stream=True, label="text/event-stream")
    assert b"two" not in reply.content


def test_a_client_that_leaves_before_it_reads_closes_the_response() -> None:
    source = Source(*STREAM)

    class Stream(httpx.SyncByteStream):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return iter(source)

        def close(self) -> None:
            source.close()

    headers = {"content-type": "text/event-stream"}
    inner = httpx.MockTransport(lambda _: httpx.Response(200, headers=headers, stream=Stream()))
    asked = {"model": "gpt-5", "stream": True, "stop": STOPS}
    with wrap(httpx.Client(transport=inner)) as client, client.stream("POST", URL, json=asked):
        pass
    assert (source.read, source.closed > 0) == (0, True)


def test_the_middleware_refuses_what_it_cannot_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdback.integrations.asgi.MAX_BODY_BYTES", 20)
    reply = through_middleware(BODY, stream=False, label=None)
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "request_too_large")
