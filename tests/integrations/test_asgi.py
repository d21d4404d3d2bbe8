"""ASGI: the middleware and `cut_sse` in Starlette and FastAPI, under servers of older and newer
ASGI versions.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time

import fastapi
import httpx
import pytest
import starlette.applications
import starlette.routing
from starlette.responses import JSONResponse, StreamingResponse
from upstream import DONE, Upstream, chat, data, message_end, message_start, message_text

from holdback.integrations.asgi import StopMiddleware, cut_sse

STOPS = ["\n\nUser:", "###", "</answer>", "Observation:", "<|im_end|>", "STOP"]
SPLIT = ["Par", "is.\nObs", "ervat", "ion: x", " never", " read"]
INSIDE = ["Par", "is.### x", " never", " read"]


@pytest.fixture
def upstream():
    with Upstream() as server:
        yield server


def serve_uvicorn(app, port, stop):
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))

    async def run():
        task = asyncio.ensure_future(server.serve())
        await asyncio.to_thread(stop.wait)
        server.should_exit = True
        await task

    asyncio.run(run())


def serve_hypercorn(app, port, stop):
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.graceful_timeout = 1

    async def run():
        await serve(app, config, shutdown_trigger=lambda: asyncio.to_thread(stop.wait))

    asyncio.run(run())


def serve_granian(app, port, stop):
    from granian.constants import Interfaces
    from granian.server.embed import Server

    server = Server(app, address="127.0.0.1", port=port, interface=Interfaces.ASGI)

    async def run():
        task = asyncio.ensure_future(server.serve())
        await asyncio.to_thread(stop.wait)
        server.stop()
        await task

    asyncio.run(run())


def serve_newer(app, port, stop):
    """No server says 2.4 yet (uvicorn and granian 2.3, hypercorn 2.1), so this is uvicorn that says
    so.
    """

    async def newer(scope, receive, send):
        await app({**scope, "asgi": {**scope["asgi"], "spec_version": "2.4"}}, receive, send)

    serve_uvicorn(newer, port, stop)


SERVERS = {
    "uvicorn": serve_uvicorn,
    "uvicorn as 2.4": serve_newer,
    "hypercorn": serve_hypercorn,
    "granian": serve_granian,
}


@contextlib.contextmanager
def running(server, app):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    stop = threading.Event()
    thread = threading.Thread(target=SERVERS[server], args=(app, port, stop), daemon=True)
    thread.start()
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
        time.sleep(0.05)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        stop.set()
        thread.join(20)


class Gateway:
    """An application that passes a provider's stream on, as many do."""

    def __init__(self, url):
        self.url = url
        self.closed = threading.Event()  # the generator that reads from the upstream was ended
        self.bodies = []

    async def relay(self, request, cut=None):
        body = await request.body()
        self.bodies.append(json.loads(body))

        async def stream():
            try:
                async with (
                    httpx.AsyncClient() as client,
                    client.stream("POST", self.url + request.url.path, content=body) as answer,
                ):
                    async for piece in answer.aiter_raw():
                        yield piece
            finally:
                self.closed.set()

        return StreamingResponse(
            stream() if cut is None else cut(stream()), media_type="text/event-stream"
        )

    async def whole(self, request):
        content = {
            "choices": [
                {"index": 0, "message": {"content": "Paris.###more"}, "finish_reason": "stop"}
            ]
        }
        return JSONResponse(content, headers={"x-kept": "1"})


def starlette_app(gateway, **options):
    route = starlette.routing.Route
    app = starlette.applications.Starlette(
        routes=[
            route("/v1/chat/completions", gateway.relay, methods=["POST"]),
            route("/v1/messages", gateway.relay, methods=["POST"]),
            route("/v1/completions", gateway.whole, methods=["POST"]),
            route("/other/chat/completions", gateway.whole, methods=["POST"]),
        ]
    )
    app.add_middleware(StopMiddleware, **options)
    return app


def ask(base, path="/v1/chat/completions", field="stop", stops=STOPS, **more):
    body = {"model": "m", "stream": True, field: stops, **more}
    got = b""
    with (
        httpx.Client(timeout=60) as client,
        client.stream("POST", base + path, json=body) as answer,
    ):
        for piece in answer.iter_raw():
            got += piece
    return got


def texts(got):
    """Text, finish and stop of each choice."""
    found = {}
    for line in got.decode().split("\n\n"):
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:]).get("choices", ()):
            text, finish, stop = found.get(choice["index"], ("", None, None))
            found[choice["index"]] = (
                text + (choice["delta"].get("content") or ""),
                choice["finish_reason"] or finish,
                choice.get("stop_reason") or stop,
            )
    return found


@pytest.mark.parametrize("server", SERVERS)
def test_the_middleware_under_a_server(upstream, server):
    gateway = Gateway(upstream.url)
    with running(server, starlette_app(gateway)) as base:
        for pieces, last, stop in ((SPLIT, 3, "Observation:"), (INSIDE, 1, "###")):
            upstream.reply(*map(chat, pieces), chat(None, finish="length"), DONE, leaves_after=last)
            got = ask(base)
            assert texts(got) == {0: ("Paris.\n" if last == 3 else "Paris.", "stop", stop)}
            assert got.endswith(DONE)
            seen = upstream.seen[-1]
            assert (seen.after(), seen.left) == (last + 1, True)
        assert gateway.closed.wait(20)
        assert len(gateway.bodies[0]["stop"]) == 4, "what the API takes reaches the application"


def test_two_choices(upstream):
    frames = [
        chat("a", 0),
        chat("x##", 1),
        chat("#y", 1),
        chat("lost", 1),
        chat(" bST", 0),
        chat("OP", 0),
        chat("no", 0),
        DONE,
    ]
    upstream.reply(*frames, leaves_after=5)
    with running("uvicorn", starlette_app(Gateway(upstream.url))) as base:
        assert texts(ask(base, n=2)) == {0: ("a b", "stop", "STOP"), 1: ("x", "stop", "###")}
        assert (upstream.seen[0].after(), upstream.seen[0].left) == (6, True)


def test_messages(upstream):
    upstream.reply(*message_start(), *map(message_text, SPLIT), *message_end(), leaves_after=5)
    with running("uvicorn", starlette_app(Gateway(upstream.url))) as base:
        got = ask(base, "/v1/messages", "stop_sequences", max_tokens=9)
    assert b'"stop_reason":"stop_sequence","stop_sequence":"Observation:"' in got
    assert got.endswith(b"event: message_stop\ndata: " + got.rpartition(b"data: ")[2])
    assert (upstream.seen[0].after(), upstream.seen[0].left) == (6, True)


def test_nothing_to_cut_is_the_bytes_that_came(upstream):
    frames = [chat("role"), b": ping\n\n", chat("héllo"), chat(None, finish="stop"), DONE]
    upstream.reply(*frames)
    upstream.reply(*frames)
    gateway = Gateway(upstream.url)
    with running("uvicorn", starlette_app(gateway)) as base:
        assert ask(base) == b"".join(frames)
        assert ask(base, stops=[]) == b"".join(frames)
    assert gateway.bodies[1]["stop"] == []


def test_whole_answers_and_other_requests(upstream):
    gateway = Gateway(upstream.url)
    with running("uvicorn", starlette_app(gateway)) as base, httpx.Client(timeout=60) as client:
        body = {"model": "m", "stop": STOPS, "prompt": "x"}
        answer = client.post(f"{base}/other/chat/completions", json=body)
        assert answer.json()["choices"][0] == {
            "index": 0, "message": {"content": "Paris."}, "finish_reason": "stop", "stop_reason": "###",
        }  # fmt: skip
        assert (answer.headers["x-kept"], answer.headers["content-length"]) == (
            "1",
            str(len(answer.content)),
        )
        for bad in (b"{", b'{"stop":["a",""]}'):
            answer = client.post(f"{base}/other/chat/completions", content=bad)
            assert answer.status_code == 400
            assert answer.json()["error"]["type"] == "invalid_request_error"
        assert client.get(f"{base}/v1/chat/completions").status_code == 405


@pytest.mark.parametrize("server", SERVERS)
def test_a_client_that_leaves_takes_the_upstream_along(upstream, server):
    upstream.reply(*[chat(f"{at} ") for at in range(50)], leaves_after=2)
    gateway = Gateway(upstream.url)
    with running(server, starlette_app(gateway)) as base:
        body = {"model": "m", "stream": True, "stop": STOPS}
        with (
            httpx.Client(timeout=60) as client,
            client.stream("POST", f"{base}/v1/chat/completions", json=body) as answer,
        ):
            got = b""
            for piece in answer.iter_raw():
                got += piece
                if b"2 " in got:
                    break
        assert (upstream.seen[0].after(), upstream.seen[0].left) == (3, True)
        assert gateway.closed.wait(20)


def test_an_application_that_breaks_off_gives_its_text_first(upstream):
    upstream.reply(chat("Paris.\nObs"), chat("erv"), breaks_after=1)
    got = b""
    with (
        running("uvicorn", starlette_app(Gateway(upstream.url))) as base,
        httpx.Client(timeout=60) as client,
        client.stream(
            "POST",
            f"{base}/v1/chat/completions",
            json={"model": "m", "stream": True, "stop": STOPS},
        ) as answer,
        contextlib.suppress(httpx.RemoteProtocolError),
    ):
        for piece in answer.iter_raw():
            got += piece
    assert texts(got)[0][0] == "Paris.\nObserv"


def test_an_error_event_passes(upstream):
    error = data({"error": {"message": "overloaded"}})
    upstream.reply(chat("Paris.\nObs"), error, DONE)
    with running("uvicorn", starlette_app(Gateway(upstream.url))) as base:
        got = ask(base)
    assert texts(got)[0][0] == "Paris.\nObs"
    assert error in got


@pytest.mark.parametrize("server", SERVERS)
def test_cut_sse_in_an_endpoint(upstream, server):
    """Without the middleware: the endpoint's own line. The generator closes its source itself,
    whatever the server's version.
    """
    gateway = Gateway(upstream.url)
    app = fastapi.FastAPI()

    @app.post("/v1/chat/completions")
    async def endpoint(request: fastapi.Request):
        return await gateway.relay(request, lambda stream: cut_sse(stream, "openai.chat", STOPS))

    upstream.reply(*map(chat, SPLIT), chat(None, finish="length"), DONE, leaves_after=3)
    with running(server, app) as base:
        assert texts(ask(base)) == {0: ("Paris.\n", "stop", "Observation:")}
        assert (upstream.seen[0].after(), upstream.seen[0].left) == (4, True)
        assert gateway.closed.wait(20)


def test_cut_sse_of_plain_iterators():
    closed = []

    def pieces():
        try:
            yield chat("a##").decode()
            yield chat("#b")
            yield chat("never")
        finally:
            closed.append("sync")

    async def apieces():
        try:
            for piece in (chat("a##"), chat("#b"), chat("never")):
                yield piece
        finally:
            closed.append("async")

    async def collect():
        return b"".join([piece async for piece in cut_sse(apieces(), "openai.chat", STOPS)])

    assert b"".join(cut_sse(pieces(), "openai.chat", STOPS)) == asyncio.run(collect())
    assert closed == ["sync", "async"]
    with pytest.raises(ValueError):
        cut_sse([], "openai.chat", [""])


def test_an_application_that_does_not_listen_is_ended_by_its_send():
    """The last resort: no task waits for the disconnect, so the send behind the match raises, as in
    ASGI 2.4.
    """
    sent, ended = [], []

    async def app(scope, receive, send):
        await receive()
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream")],
            }
        )
        try:
            for piece in (chat("a###"), chat("never"), chat("ever")):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except OSError as error:
            ended.append(type(error).__name__)
            raise

    async def receive():
        return {
            "type": "http.request",
            "body": json.dumps({"stream": True, "stop": STOPS}).encode(),
        }

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": [],
        "asgi": {"spec_version": "2.4"},
    }
    asyncio.run(StopMiddleware(app)(scope, receive, send))
    assert ended == ["_GoneError"]
    assert texts(b"".join(message.get("body", b"") for message in sent)) == {
        0: ("a", "stop", "###")
    }
    assert not sent[-1]["more_body"]


def test_bad_options_are_told_when_the_application_starts():
    for options in ({"stop": [""]}, {"provider": "nobody"}, {"on_match": "explode"}):
        with pytest.raises(ValueError):
            StopMiddleware(None, **options)
