"""``holdback serve`` as clients, upstreams and operators meet it: processes on loopback, real
sockets, nothing timed.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import (
    DEADLINE,
    PATHS,
    PIECES,
    STOPS,
    TEXT,
    UP_TO_MATCH,
    Canned,
    Gateway,
    Raw,
    memory,
    request,
    running,
    whole_text,
)

from holdback.cli import main
from holdback.dialects import DIALECTS as SPECS
from holdback.serve import create_app
from holdback.serve.config import Config, Upstream
from holdback.serve.sse import objects

pytestmark = pytest.mark.thread_unsafe
POSIX = pytest.mark.skipif(
    os.name == "nt", reason="SIGTERM is POSIX; Windows ends a process without asking it"
)
LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="resident memory is read from /proc"
)
DIALECTS = list(PATHS)
COMMENTED = [
    dialect for dialect in DIALECTS if not dialect.startswith("ollama") and dialect != "gemini"
]


@pytest.fixture(scope="module")
def upstream() -> Iterator[Canned]:
    with Canned() as canned:
        yield canned


@pytest.fixture(scope="module")
def gateway(upstream: Canned) -> Iterator[Gateway]:
    with running("--upstream", f"up={upstream.url}") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def raw_upstream() -> Iterator[Raw]:
    with Raw() as raw:
        yield raw


@pytest.fixture
def raw(raw_upstream: Raw) -> Raw:
    while not raw_upstream.requests.empty():
        raw_upstream.requests.get()
    return raw_upstream


@pytest.fixture(scope="module")
def raw_gateway(raw_upstream: Raw) -> Iterator[Gateway]:
    arguments = [
        "--upstream",
        f"up={raw_upstream.url}",
        "--upstream",
        f"openai={raw_upstream.url}/base",
    ]
    with running(*arguments) as gateway:
        yield gateway


def put_together(dialect: str, body: bytes) -> Any:
    """The whole answer out of a stream that a client got."""
    made = SPECS[dialect].assemble(PATHS[dialect], {})  # type: ignore[arg-type]
    for event in objects(body):
        made.add(event)
    return made.body()


# --- stops
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_is_cut_and_its_upstream_left_at_the_match(
    dialect: str, gateway: Gateway, upstream: Canned
) -> None:
    path, body = request(dialect, STOPS, stream=True)
    reply = gateway.ask(path, body, headers={"authorization": "Bearer secret"})
    seen = upstream.wait()
    assert reply.status == 200
    assert whole_text(dialect, put_together(dialect, reply.body)) == TEXT
    # Nothing was sent of the stops, and the next piece would have been sent only if the gateway had
    # stayed.
    assert (seen.sent, seen.client_left, seen.stops, seen.authorization) == (
        UP_TO_MATCH,
        True,
        (),
        True,
    )
    assert (reply.body.endswith(b': x-holdback-stop: "Observation:"\n')) == (dialect in COMMENTED)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_client_that_does_not_stream_gets_one_body_of_a_cut_stream(
    dialect: str, gateway: Gateway, upstream: Canned
) -> None:
    path, body = request(dialect, STOPS, stream=False)
    reply = gateway.ask(path, body)
    seen = upstream.wait()
    assert (seen.sent, seen.client_left, seen.stream) == (UP_TO_MATCH, True, True)
    assert reply.headers["x-holdback-stop"] == '"Observation:"'
    assert reply.headers["content-type"] == "application/json"
    assert whole_text(dialect, reply.json) == TEXT


@pytest.mark.parametrize("dialect", DIALECTS)
def test_buffered_pass_and_assembled_answers_are_the_same(
    dialect: str, passing: Gateway, draining: Gateway
) -> None:
    """The body that the upstream makes, cut, and the body made here of its cut and drained stream:
    the same text, end and stop.
    """
    path, body = request(dialect, STOPS, stream=False)
    cut, made = passing.ask(path, body), draining.ask(path, body)
    assert whole_text(dialect, cut.json) == whole_text(dialect, made.json) == TEXT
    assert cut.headers["x-holdback-stop"] == made.headers["x-holdback-stop"] == '"Observation:"'
    assert cut.json.keys() == made.json.keys()
    assert end_of(dialect, cut.json) == end_of(dialect, made.json)


def end_of(dialect: str, body: Any) -> Any:
    if dialect.startswith("openai.c"):
        choice = body["choices"][0]
        return choice["finish_reason"], choice["stop_reason"]
    if dialect == "gemini":
        return body["candidates"][0]["finishReason"]
    keys = (
        "status",
        "stop_reason",
        "stop_sequence",
        "done",
        "done_reason",
        "stop_type",
        "stopping_word",
    )
    return {key: body.get(key) for key in keys}


STREAMS = Path(__file__).parent / "wire" / "streams"
SAMPLES = {
    sample["name"]: sample
    for sample in json.loads(STREAMS.with_suffix(".json").read_text(encoding="utf-8"))
    if sample["dialect"] in DIALECTS
}


@pytest.mark.parametrize("name", SAMPLES)
def test_recorded_streams(name: str, raw: Raw, raw_gateway: Gateway) -> None:
    """What real services send: every byte passes if there is nothing to cut; else the text, for
    clients that stream or do not.
    """
    sample, recorded = SAMPLES[name], (STREAMS / f"{name}.txt").read_bytes()
    dialect, stops, found = sample["dialect"], sample["stops"], sample["cut"]
    kind = (
        b"application/x-ndjson"
        if dialect.startswith("ollama")
        else b"text/event-stream; charset=utf-8"
    )
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ntransfer-encoding: chunked\r\n\r\n" % kind
    pieces = [chunk(recorded[place : place + 99]) for place in range(0, len(recorded), 99)]
    raw.answers(head + b"".join(pieces) + b"0\r\n\r\n")
    streamed = raw_gateway.ask(*request(dialect, stops, stream=True))
    buffered = raw_gateway.ask(*request(dialect, stops, stream=False))
    if found is None:
        # A text that ends with what could begin a stop comes one frame later than it did.
        assert streamed.body == recorded or sample["case"] == "stop"
        cut, whole = put_together(dialect, streamed.body), put_together(dialect, recorded)
        if dialect.startswith("openai.c"):  # without figures of its own: an estimate, by chunks
            cut, whole = {**cut, "usage": None}, {**whole, "usage": None}
        assert cut == whole
        assert whole_text(dialect, buffered.json) == sample["text"]
        assert "x-holdback-stop" not in buffered.headers
    else:
        assert whole_text(dialect, put_together(dialect, streamed.body)) == found["text"]
        assert whole_text(dialect, buffered.json) == found["text"]
        assert json.loads(buffered.headers["x-holdback-stop"]) == found["stop"]


@pytest.fixture(scope="module")
def eager() -> Iterator[Canned]:
    """An upstream that sends everything at once."""
    with Canned(quick=None) as canned:
        yield canned


@pytest.fixture(scope="module")
def passing(eager: Canned) -> Iterator[Gateway]:
    with running("--upstream", f"up={eager.url}", "--buffered", "pass") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def draining(eager: Canned) -> Iterator[Gateway]:
    with running("--upstream", f"up={eager.url}", "--on-match", "drain") as gateway:
        yield gateway


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
def test_without_stops_every_byte_passes(
    dialect: str, stream: bool, draining: Gateway, eager: Canned
) -> None:
    path, body = request(dialect, None, stream=stream)
    raw = json.dumps(body, indent=3).encode()
    with contextlib.closing(
        http.client.HTTPConnection(eager.url.removeprefix("http://"), timeout=DEADLINE)
    ) as direct:
        direct.request("POST", path, raw)
        expected = direct.getresponse().read()
    assert draining.ask(path, raw).body == expected


def test_draining_brings_the_usage_figures(draining: Gateway, eager: Canned) -> None:
    while not eager.ended.empty():
        eager.ended.get()
    path, body = request("openai.chat", STOPS, stream=True)
    reply = draining.ask(path, body | {"stream_options": {"include_usage": True}})
    seen = eager.wait()
    assert (seen.sent, seen.client_left) == (len(PIECES), False)
    whole = put_together("openai.chat", reply.body)
    assert whole["usage"]["total_tokens"] == 34
    assert whole["choices"][0]["message"]["content"] == TEXT


def test_several_choices_end_one_by_one(gateway: Gateway, upstream: Canned) -> None:
    path, body = request("openai.chat", STOPS, stream=False)
    reply = gateway.ask(path, body | {"n": 3})
    assert upstream.wait().client_left
    assert [choice["message"]["content"] for choice in reply.json["choices"]] == [TEXT] * 3
    assert reply.headers["x-holdback-stop"] == ", ".join(
        f'"Observation:";choice={n}' for n in range(3)
    )


def test_gemini_without_sse_is_one_json_array(gateway: Gateway, upstream: Canned) -> None:
    path, body = request("gemini", STOPS, stream=True)
    reply = gateway.ask(path.partition("?")[0], body)
    assert upstream.wait().client_left
    assert reply.headers["content-type"] == "application/json; charset=UTF-8"
    events = reply.json
    assert (
        "".join(
            part["text"] for event in events for part in event["candidates"][0]["content"]["parts"]
        )
        == TEXT
    )
    assert events[-1]["candidates"][0]["finishReason"] == "STOP"


def test_the_responses_api_takes_stops_it_does_not_have(raw: Raw, raw_gateway: Gateway) -> None:
    """The upstream must not be sent a parameter that it would refuse."""
    answer = b'{"output":[{"type":"message","content":[{"type":"output_text","text":"a END b"}]}],"status":"completed"}'
    raw.answers(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        % len(answer)
        + answer
    )
    path, body = request("openai.responses", STOPS, stream=False)
    reply = raw_gateway.ask(f"/openai{path}", body)
    head, _, sent = raw.requests.get(timeout=DEADLINE).partition(b"\r\n\r\n")
    assert head.startswith(b"POST /base/v1/responses ")
    assert "stop" not in json.loads(sent)
    assert (
        json.loads(sent)["stream"] is True
    )  # asked for, though this upstream answers in one piece
    assert reply.json["output"][0]["content"][0]["text"] == "a "


def test_an_upstream_is_sent_what_it_takes_and_names(upstream: Canned) -> None:
    with running("--upstream", f"gpu:vllm={upstream.url}") as gateway:
        gateway.ask(*request("openai.chat", STOPS, stream=True))
        seen = upstream.wait()
    assert len(seen.stops) == 4  # its cap
    assert set(seen.stops) <= set(STOPS)


def test_an_operators_own_stops_and_regions(upstream: Canned, tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text(
        f'[upstreams.up]\nurl = "{upstream.url}"\nstops = ["ervation"]\nignore_inside = [["The", "is"]]\n'
    )
    with running("--config", str(config)) as gateway:
        reply = gateway.ask(*request("ollama.generate", ["capital", "Paris."], stream=False))
        upstream.wait()
    assert reply.headers["x-holdback-stop"] == '"Paris."'  # "capital" stands in the region


@pytest.mark.parametrize("start_inside", [False, True])
def test_an_upstream_whose_answers_begin_inside_a_region(
    upstream: Canned, tmp_path: Path, *, start_inside: bool
) -> None:
    config = tmp_path / "serve.toml"
    config.write_text(
        f'[upstreams.up]\nurl = "{upstream.url}"\nignore_inside = [["<think>", "is"]]\n'
        f"start_inside = {str(start_inside).lower()}\n"
    )
    with running("--config", str(config)) as gateway:
        reply = gateway.ask(*request("ollama.generate", ["capital", "Paris."], stream=False))
        upstream.wait()
    assert reply.headers["x-holdback-stop"] == ('"Paris."' if start_inside else '"capital"')


# --- what clients get when something is wrong
# ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stops", "said"),
    [
        (5, "a string or a list of strings"),
        ([1], "a string or a list of strings"),
        ([""], "empty"),
        (["x"] * 999, "at most 256"),
    ],
)
def test_stops_that_cannot_be_used_are_refused(stops: Any, said: str, gateway: Gateway) -> None:
    path, body = request("openai.chat", None, stream=True)
    reply = gateway.ask(path, body | {"stop": stops})
    assert reply.status == 400
    assert said in reply.json["error"]["message"]
    assert reply.json["error"]["param"] == "stop"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"\xff", b"[" * 100_000],
    ids=["none", "open", "list", "bytes", "deep"],
)
def test_a_body_that_is_no_request_is_refused_in_the_dialects_words(
    dialect: str, body: bytes, gateway: Gateway
) -> None:
    reply = gateway.ask(PATHS[dialect], body)
    assert reply.status == 400
    error = reply.json.get("error", reply.json)
    message = error if isinstance(error, str) else error["message"]
    assert "the body is not" in message


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/nowhere", "POST"),
        ("/v1/files", "DELETE"),
        ("/up/../up/v1/models", "GET"),
        ("/up/%2e%2E/x", "GET"),
    ],
)
def test_paths_that_lead_nowhere(path: str, method: str, gateway: Gateway) -> None:
    assert gateway.ask(path, method=method).status in (400, 404)


def test_a_request_beyond_the_limit(tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text("max_request_bytes = 1000\n[upstreams.up]\nurl = 'http://127.0.0.1:1'\n")
    with running("--config", str(config)) as gateway:
        assert gateway.ask("/v1/chat/completions", b" " * 1001).status == 413
        reply = gateway.ask("/v1/chat/completions", b"{}")
    assert reply.status == 502
    assert reply.json["error"]["code"] == "upstream_unreachable"
    assert "127.0.0.1:1" not in reply.body.decode()


@pytest.mark.parametrize("stream", [True, False])
def test_an_upstreams_own_error_passes(stream: bool, raw: Raw, raw_gateway: Gateway) -> None:
    head = b"HTTP/1.1 429 Too Many\r\ncontent-type: application/json\r\nretry-after: 7\r\ncontent-length: 14\r\n\r\n"
    raw.answers(head + b'{"error": "x"}')
    reply = raw_gateway.ask(*request("openai.chat", STOPS, stream=stream))
    assert (reply.status, reply.body, reply.headers["retry-after"]) == (429, b'{"error": "x"}', "7")


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def delta(text: str) -> bytes:
    return (
        b'data: {"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}\n\n'
        % json.dumps(text).encode()
    )


@pytest.mark.parametrize("end", [b"", b'data: {"choi'], ids=["between frames", "inside a frame"])
def test_an_upstream_that_breaks_off(end: bytes, raw: Raw, raw_gateway: Gateway) -> None:
    """The text that was held comes out, then an error that SDKs raise; a client that does not
    stream gets an error alone.
    """
    raw.answers(STREAM_HEAD + chunk(delta("Hello Obs") + end))
    before = raw_gateway.metric("holdback_errors_total")
    streamed = raw_gateway.ask(*request("openai.chat", STOPS, stream=True))
    buffered = raw_gateway.ask(*request("openai.chat", STOPS, stream=False))
    assert raw_gateway.metric("holdback_errors_total") == before + 2
    events = list(objects(streamed.body))
    said = "".join(
        event["choices"][0]["delta"]["content"] for event in events if "choices" in event
    )
    assert said == "Hello Obs"
    assert events[-1]["error"]["code"] == "upstream_broke_off"
    assert buffered.status == 502
    assert buffered.json["error"]["code"] == "upstream_broke_off"


def test_an_upstream_that_sends_nonsense(raw: Raw, raw_gateway: Gateway) -> None:
    def script(connection: socket.socket, _: bytes) -> None:
        connection.sendall(STREAM_HEAD + chunk(delta("a") + b"data: {nonsense}\n\n" + delta("b")))
        assert not connection.recv(1)  # waits until the gateway has left

    raw.script = script
    events = list(objects(raw_gateway.ask(*request("openai.chat", STOPS, stream=True)).body))
    assert events[0]["choices"][0]["delta"]["content"] == "a"
    assert events[-1]["error"]["code"] == "malformed"


def test_a_silent_upstream_is_given_up(raw: Raw, tmp_path: Path) -> None:
    def script(connection: socket.socket, _: bytes) -> None:
        connection.sendall(STREAM_HEAD + chunk(delta("a")))
        assert not connection.recv(1)

    raw.script = script
    config = tmp_path / "serve.toml"
    config.write_text(f"idle_timeout = 0.2\n[upstreams.up]\nurl = '{raw.url}'\n")
    with running("--config", str(config)) as gateway:
        events = list(objects(gateway.ask(*request("openai.chat", STOPS, stream=True)).body))
    assert events[-1]["error"]["code"] == "upstream_timeout"


def test_an_array_that_breaks_off_is_no_array(raw: Raw, raw_gateway: Gateway) -> None:
    event = b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0}]}\r\n\r\n'
    raw.answers(STREAM_HEAD + chunk(event))
    path, body = request("gemini", STOPS, stream=True)
    with pytest.raises(http.client.IncompleteRead) as broken:
        raw_gateway.ask(path.partition("?")[0], body)
    assert broken.value.partial == b"[" + event.removeprefix(b"data: ").rstrip()


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_beyond_the_limit(stream: bool, raw: Raw, tmp_path: Path) -> None:
    """Answers in one piece are kept whole, so there is a limit; streams need none."""

    def script(connection: socket.socket, _: bytes) -> None:
        connection.sendall(STREAM_HEAD)
        with contextlib.suppress(OSError):
            for _ in range(50):
                connection.sendall(chunk(delta("x" * 1000)))
        connection.sendall(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    raw.script = script
    config = tmp_path / "serve.toml"
    config.write_text(f"max_answer_bytes = 20000\n[upstreams.up]\nurl = '{raw.url}'\n")
    with running("--config", str(config)) as gateway:
        reply = gateway.ask(*request("openai.chat", STOPS, stream=stream))
    if stream:
        assert reply.body.count(b"x" * 1000) == 50
    else:
        assert (reply.status, reply.json["error"]["code"]) == (502, "answer_too_long")


def test_an_untouched_stream_breaks_off_as_its_upstream_did(raw: Raw, raw_gateway: Gateway) -> None:
    """Without stops not a byte is added: the client must see a broken transfer, not an answer that
    seems whole.
    """
    raw.answers(STREAM_HEAD + chunk(delta("a")))
    with pytest.raises(http.client.IncompleteRead) as broken:
        raw_gateway.ask(*request("openai.chat", None, stream=True))
    assert broken.value.partial == delta("a")
    assert raw_gateway.ask("/healthz").status == 200


def test_an_upstreams_redirect_is_not_followed(raw: Raw, raw_gateway: Gateway) -> None:
    raw.answers(
        b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/elsewhere\r\ncontent-length: 0\r\n\r\n"
    )
    assert raw_gateway.ask(*request("openai.chat", STOPS, stream=True)).status == 302


def test_a_compressed_answer_is_cut_all_the_same(raw: Raw, raw_gateway: Gateway) -> None:
    """It was asked for uncompressed, but some do not listen."""
    body = gzip.compress(
        b'{"choices":[{"index":0,"message":{"content":"a END b"},"finish_reason":"stop"}]}'
    )
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    raw.answers(head % len(body) + body)
    reply = raw_gateway.ask(*request("openai.chat", STOPS, stream=False))
    assert b"accept-encoding: identity" in raw.requests.get(timeout=DEADLINE).lower()
    assert (whole_text("openai.chat", reply.json), "content-encoding" in reply.headers) == (
        "a ",
        False,
    )


# --- connections
# ---------------------------------------------------------------------------------------------------------


def test_headers_of_the_connection_stay_and_all_others_pass(raw: Raw, raw_gateway: Gateway) -> None:
    raw.answers(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close, X-Mine\r\n"
        b"x-mine: 1\r\nkeep-alive: timeout=1\r\nproxy-authenticate: x\r\nset-cookie: a=b\r\nx-request-id: 7\r\n\r\n{}"
    )
    asked = {"Authorization": "Bearer secret", "X-Other": "2", "Cookie": "c=d"}
    asked |= {"Connection": "X-Own", "X-Own": "1", "TE": "trailers"}
    reply = raw_gateway.ask("/openai/v1/models?key=hush", headers=asked)
    raw_gateway.ask("/openai/v1/models")
    head = raw.requests.get(timeout=DEADLINE).decode().lower()
    second = raw.requests.get(timeout=DEADLINE).decode().lower()
    assert head.startswith("get /base/v1/models?key=hush http/1.1")
    assert "authorization: bearer secret" in head
    assert "x-other: 2" in head
    assert "cookie: c=d" in head
    assert not {"x-own", "te"} & {line.partition(":")[0] for line in head.splitlines()}
    assert "cookie" not in second  # what the upstream set belongs to the other client
    assert {"x-mine", "keep-alive", "proxy-authenticate"}.isdisjoint(reply.headers)
    assert (reply.headers["x-request-id"], reply.headers["set-cookie"]) == ("7", "a=b")
    raw_gateway.wait_for("request", path="/openai/v1/models")
    assert not [word for word in ("hush", "secret") if word in "".join(raw_gateway.said)]


def test_a_server_that_can_send_trailers_gets_the_stop_as_one(raw: Raw) -> None:
    """Told by the server in its scope; uvicorn does so over HTTP/2. The gateway runs in this
    process here.
    """
    raw.answers(STREAM_HEAD + chunk(delta("a END b")))
    path, body = request("openai.chat", STOPS, stream=True)
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": []}
    sent: list[Any] = []

    async def run() -> None:
        asked = [{"type": "http.request", "body": json.dumps(body).encode()}]

        async def receive() -> Any:
            return asked.pop() if asked else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)

        gateway = create_app(Config(upstreams=(Upstream("up", raw.url),)))
        await gateway({**scope, "extensions": {"http.response.trailers": {}}}, receive, send)
        asked.append({"type": "lifespan.shutdown"})
        await gateway({"type": "lifespan"}, receive, send)  # closes its connections

    asyncio.run(run())
    assert sent[0]["trailers"] is True
    assert (b"trailer", b"x-holdback-stop") in sent[0]["headers"]
    assert sent[-2] == {
        "type": "http.response.trailers",
        "headers": [(b"x-holdback-stop", b'"END"')],
        "more_trailers": False,
    }


@pytest.mark.parametrize(
    "target",
    ["@{evil}/meta", "x@{evil}/v1/models", ".evil/v1/models", "", "http://{evil}/v1/models"],
)
def test_no_request_target_leads_to_another_host(target: str, raw: Raw) -> None:
    """Some servers hand on whatever stands between method and version; behind the upstream's
    address `@host/` would be another host.
    """
    raw.answers(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}")

    async def ask(path: str) -> int:
        asked: list[Any] = [{"type": "http.request", "body": b""}]
        status: list[int] = []

        async def receive() -> Any:
            return asked.pop() if asked else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            status.extend([message["status"]] if "status" in message else [])

        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode()}
        app = create_app(Config(upstreams=(Upstream("up", raw.url),)))
        await app({**scope, "query_string": b"", "headers": []}, receive, send)
        asked.append({"type": "lifespan.shutdown"})
        await app({"type": "lifespan"}, receive, send)  # closes its connections
        return status[0]

    with Raw() as evil:
        status = asyncio.run(ask(target.replace("{evil}", evil.url.removeprefix("http://"))))
        assert evil.requests.empty()
    absolute = target.startswith("http://")
    assert status == (200 if absolute else 400)
    if absolute:  # a proxy's form: its path counts, its host does not
        assert raw.requests.get(timeout=DEADLINE).startswith(b"GET /v1/models HTTP/1.1")


@pytest.mark.parametrize(
    "kind", [b"", b"content-type: text/plain\r\n", b"content-type: application/octet-stream\r\n"]
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_stream_that_does_not_say_that_it_is_one(
    kind: bytes, stream: bool, raw: Raw, raw_gateway: Gateway
) -> None:
    end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    head = b"HTTP/1.1 200 OK\r\n%sconnection: close\r\n\r\n" % kind
    raw.answers(head + delta("a Observ") + delta("ation: b") + end)
    reply = raw_gateway.ask(*request("openai.chat", STOPS, stream=stream))
    if stream:
        said = [event["choices"][0]["delta"].get("content") or "" for event in objects(reply.body)]
        assert "".join(said) == "a "
    else:
        assert reply.json["choices"][0]["message"]["content"] == "a "


@pytest.mark.parametrize(
    "event",
    [
        b'{"choices":[null]}',
        b'{"choices":5}',
        b'{"choices":[{"delta":"x"}]}',
        b'{"choices":[],"id":1.2.3}',
        b"{" * 9 + b"}" * 9,
    ],
)
def test_events_that_no_answer_can_be_made_of(event: bytes, raw: Raw, raw_gateway: Gateway) -> None:
    """The client hears of the upstream's fault, not of one in the gateway."""
    raw.answers(STREAM_HEAD + chunk(b"data: " + event + b"\n\n") + b"0\r\n\r\n")
    reply = raw_gateway.ask(*request("openai.chat", STOPS, stream=False))
    assert (reply.status, reply.json["error"]["code"]) in (
        (502, "malformed"),
        (502, "unread"),
        (502, "upstream_broke_off"),
    )


def test_events_of_several_lines_come_together(raw: Raw, raw_gateway: Gateway) -> None:
    first = b'\xef\xbb\xbfdata: {"choices":[{"index":0,\ndata: "delta":{"content":"two lines"},"finish_reason":"stop"}]}\n\n'
    raw.answers(STREAM_HEAD + chunk(first + b"data: [DONE]\n\n") + b"0\r\n\r\n")
    reply = raw_gateway.ask(*request("openai.chat", STOPS, stream=False))
    assert reply.json["choices"][0]["message"]["content"] == "two lines"


def test_an_answer_without_content_passes(raw: Raw, raw_gateway: Gateway) -> None:
    raw.answers(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
    assert raw_gateway.ask(*request("openai.chat", STOPS, stream=False)).status == 204


def test_a_stop_too_long_for_a_header_is_not_told_in_one(raw: Raw, raw_gateway: Gateway) -> None:
    stop = "\u00e9" * 1000  # six characters each in a header
    answer = json.dumps(
        {"choices": [{"message": {"content": f"a {stop} b"}, "finish_reason": "length"}]}
    ).encode()
    raw.answers(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
        % (len(answer), answer)
    )
    reply = raw_gateway.ask(*request("openai.chat", [stop], stream=False))
    assert reply.json["choices"][0]["stop_reason"] == stop
    assert "x-holdback-stop" not in reply.headers


def test_a_request_that_meets_a_closing_connection_is_sent_again(
    raw: Raw, raw_gateway: Gateway
) -> None:
    """A server may close a kept connection just as the next request is on its way: seen in real
    life as one failure in thousands.
    """
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"

    def closing(connection: socket.socket, _request: bytes) -> None:
        connection.sendall(answer)
        raw.requests.put(raw.read_request(connection))  # the next one, which is not answered

    raw.script = closing
    assert raw_gateway.ask("/v1/chat/completions", {"messages": [1]}).status == 200
    assert raw_gateway.ask("/v1/chat/completions", {"messages": [2]}).status == 200
    asked = [
        json.loads(raw.requests.get(timeout=DEADLINE).partition(b"\r\n\r\n")[2]) for _ in range(3)
    ]
    assert asked == [{"messages": [1]}, {"messages": [2]}, {"messages": [2]}]
    raw.answers(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
    raw_gateway.ask("/v1/chat/completions", {})  # takes the connection that is kept
    while not raw.requests.empty():
        raw.requests.get()
    raw.script = lambda *_: None
    assert raw_gateway.ask("/v1/chat/completions", {}).status == 502
    raw.requests.get(timeout=DEADLINE)
    assert raw.requests.empty(), "a connection of its own that was closed is no reason to ask twice"


def test_connections_to_the_upstream_are_kept(raw: Raw, raw_gateway: Gateway) -> None:
    opened: list[socket.socket] = []

    def script(connection: socket.socket, _: bytes) -> None:
        opened.append(connection)
        for reply in range(5):
            connection.sendall(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
            )
            if reply < 4:
                raw.read_request(connection)

    raw.script = script
    assert [raw_gateway.ask("/v1/models").body for _ in range(5)] == [b"{}"] * 5
    assert len(opened) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_hangs_up_takes_the_upstream_along(
    stream: bool, upstream: Canned, gateway: Gateway
) -> None:
    upstream.quick = 2
    before = len(upstream.demo.seen)
    try:
        connection = gateway.connect()
        path, body = request("openai.chat", STOPS, stream=stream)
        connection.request("POST", path, json.dumps(body))
        if stream:
            response = connection.getresponse()
            assert response.read1(10)
            response.close()
        else:
            while len(upstream.demo.seen) == before or upstream.demo.seen[-1].sent < 2:
                threading.Event().wait(0.005)
        connection.close()
        seen = upstream.wait()
        assert (seen.sent, seen.client_left) == (2, True)
        assert gateway.wait_for("request", end="client_gone")["status"] == (200 if stream else 499)
    finally:
        upstream.quick = UP_TO_MATCH


def test_a_slow_client_slows_its_upstream(raw: Raw, raw_gateway: Gateway) -> None:
    """An upstream that could send without end is stopped by a client that does not read, long
    before memory is.
    """
    blocked = threading.Event()
    total = 0

    def script(connection: socket.socket, _: bytes) -> None:
        nonlocal total
        connection.sendall(STREAM_HEAD)
        frame = chunk(delta("x" * 60_000))
        connection.setblocking(False)
        left, stuck = memoryview(frame), 0
        while stuck < 40 and total < 400_000_000:
            try:
                count = connection.send(left)
                total += count
                left, stuck = left[count:] or memoryview(frame), 0
            except BlockingIOError:
                stuck += 1
                threading.Event().wait(0.025)
        blocked.set()

    raw.script = script
    connection = raw_gateway.connect()
    path, body = request("openai.chat", STOPS, stream=True)
    connection.request("POST", path, json.dumps(body))
    assert blocked.wait(DEADLINE)
    connection.close()
    assert total < 100_000_000  # what the sockets of both sides hold, no more


@LINUX
def test_hundreds_of_streams_end_and_leave_nothing_behind(tmp_path: Path) -> None:
    """Open at once, cut, hung up on or broken off: afterwards none is in flight, and memory does
    not grow from round to round.
    """
    with Canned(quick=None) as eager, running("--upstream", f"up={eager.url}") as gateway:
        path, body = request("openai.chat", STOPS, stream=True)
        raw = json.dumps(body).encode()
        head = b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (
            path.encode(),
            len(raw),
        )

        def round_of(count: int) -> None:
            clients = [
                socket.create_connection(("127.0.0.1", gateway.port), DEADLINE)
                for _ in range(count)
            ]
            for client in clients:
                client.sendall(head + raw)
            for place, client in enumerate(clients):
                with client:
                    if place % 3:  # every third hangs up without reading
                        data = b""
                        while b"x-holdback-stop" not in data:
                            piece = client.recv(65536)
                            assert piece
                            data += piece

        round_of(150)
        before = memory(gateway.process)
        for _ in range(3):
            round_of(150)
        while gateway.ask("/healthz").json["in_flight"]:
            threading.Event().wait(0.01)
        assert gateway.metric("holdback_streams_open") == 0
        assert memory(gateway.process) < before + 15_000_000
        assert gateway.metric("holdback_requests_total") == 600


def test_more_requests_than_allowed(upstream: Canned) -> None:
    upstream.quick = 1
    try:
        with running("--upstream", f"up={upstream.url}", "--max-streams", "1") as gateway:
            connection = gateway.connect()
            path, body = request("openai.chat", STOPS, stream=True)
            connection.request("POST", path, json.dumps(body))
            connection.getresponse().read1(1)
            reply = gateway.ask(path, body)
            assert (reply.status, reply.headers["retry-after"]) == (503, "1")
            assert gateway.ask("/healthz").json["in_flight"] == 1
            connection.close()
            assert upstream.wait().client_left
    finally:
        upstream.quick = UP_TO_MATCH


# --- operators
# -----------------------------------------------------------------------------------------------------------


@POSIX
def test_sigterm_lets_open_streams_end(upstream: Canned) -> None:
    upstream.quick = 1
    gateway = Gateway("--upstream", f"up={upstream.url}")
    try:
        connection = gateway.connect()
        path, body = request("openai.chat", STOPS, stream=True)
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        start = response.read1(1)
        gateway.process.send_signal(signal.SIGTERM)
        gateway.wait_for("draining")
        with contextlib.suppress(OSError):  # refused, once the listening socket is closed
            while True:
                socket.create_connection(("127.0.0.1", gateway.port), DEADLINE).close()
        upstream.quick = UP_TO_MATCH  # the piece that is waiting still waits: only the deadline or a hang-up ends that
        connection.close()
        assert start
        assert upstream.wait().client_left
        assert gateway.process.wait(DEADLINE) == 0
        gateway.wait_for("stopped")
    finally:
        upstream.quick = UP_TO_MATCH
        gateway.close()


@POSIX
def test_after_the_drain_time_streams_are_ended(upstream: Canned) -> None:
    upstream.quick = 1
    gateway = Gateway("--upstream", f"up={upstream.url}", "--drain-timeout", "1")
    try:
        connection = gateway.connect()
        path, body = request("openai.chat", STOPS, stream=True)
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        assert response.read1(1)
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(DEADLINE) == 0
        assert upstream.wait().client_left
        connection.close()
    finally:
        upstream.quick = UP_TO_MATCH
        gateway.close()


def test_what_an_operator_can_watch(upstream: Canned) -> None:
    with running("--upstream", f"up={upstream.url}") as gateway:
        path, body = request("anthropic.messages", STOPS, stream=True)
        gateway.ask(
            path + "?key=hush", body | {"system": "private words"}, headers={"x-api-key": "secret"}
        )
        upstream.wait()
        line = gateway.wait_for("request")
        metrics = {
            name: gateway.metric(f"holdback_{name}")
            for name in (
                "stops_fired_total",
                "upstream_cancels_total",
                "errors_total",
                "streams_open",
                "held_seconds_count",
            )
        }
        chunks = gateway.metric("holdback_chunks_total")
        health = gateway.ask("/healthz")
    assert metrics == {
        "stops_fired_total": 1,
        "upstream_cancels_total": 1,
        "errors_total": 0,
        "streams_open": 0,
        "held_seconds_count": 0,  # what was held here was the stop: it did not come out later
    }
    assert chunks == line["chunks"] > 0
    assert (health.status, health.json["status"]) == (200, "ok")
    told = {
        key: line[key]
        for key in (
            "upstream",
            "dialect",
            "mode",
            "status",
            "end",
            "fired",
            "stops_sent",
            "stops_enforced",
        )
    }
    assert told == {
        "upstream": "up",
        "dialect": "anthropic.messages",
        "mode": "stream",
        "status": 200,
        "end": "stop",
        "fired": [STOPS.index("Observation:")],
        "stops_sent": 0,
        "stops_enforced": len(STOPS),
    }
    said = "".join(gateway.said)
    assert not [
        word for word in ("hush", "secret", "private", "Observation", "Paris") if word in said
    ]


def test_upstreams_by_name_and_by_dialect(upstream: Canned) -> None:
    """The first that speaks the dialect, or the one that the path names."""
    arguments = ["--upstream", "anthropic=http://127.0.0.1:1", "--upstream", f"vllm={upstream.url}"]
    with running(*arguments) as gateway:
        assert gateway.ask(*request("anthropic.messages", STOPS, stream=True)).status == 502
        assert gateway.ask(*request("openai.chat", STOPS, stream=True)).status == 200
        upstream.wait()
        path, body = request("anthropic.messages", STOPS, stream=True)
        assert gateway.ask(f"/vllm{path}", body).status == 200
        upstream.wait()
        assert (
            gateway.ask(*request("gemini", STOPS, stream=True)).status == 404
        )  # neither speaks it


def test_the_demo_needs_nothing_else() -> None:
    with running("--demo") as gateway:
        path, body = request(
            "openai.chat", ["one", "two", "three", "four", "five", "</answer>"], stream=False
        )
        reply = gateway.ask(path, body)
        assert reply.headers["x-holdback-stop"] == '"</answer>"'
        assert whole_text("openai.chat", reply.json).endswith("that will do.\n")
        gateway.wait_for("demo upstream", seen="client left after 7 of 20 pieces")
        (seen,) = gateway.ask("/demo/seen").json
    assert (seen["sent"], seen["client_left"]) == (7, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no upstream given"),
        (["--upstream", "x"], "NAME=URL"),
        (["--upstream", "x=ftp://y"], "http://... or https://..."),
        (["--upstream", "x=http://user:pass@y"], "no user"),
        (["--upstream", "metrics=http://y"], "this name is taken"),
        (["--upstream", "x:vlm=http://y"], "did you mean 'vllm'"),
        (["--upstream", "x=http://y", "--upstream", "x=http://z"], "two upstreams are called 'x'"),
        (["--demo", "--listen", "nowhere"], "HOST:PORT"),
        (["--demo", "--max-streams", "0"], "at least 1"),
        (["--config", "/does/not/exist.toml"], "cannot read"),
    ],
)
def test_wrong_usage_is_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert len(err.splitlines()) == 1
    assert said in err


def test_an_address_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [sys.executable, "-m", "holdback", "serve", "--demo", "--listen", address]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=DEADLINE, check=False
        )
    assert done.returncode == 1
    assert f"cannot listen on {address}" in done.stderr
