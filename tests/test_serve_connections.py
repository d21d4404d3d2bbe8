"""Clients that do not send, and clients that do not read, against the gateway's own server."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from serving import DEADLINE, STOPS, Gateway, Raw, request, running

pytestmark = pytest.mark.thread_unsafe
POSIX = pytest.mark.skipif(
    os.name == "nt", reason="SIGTERM is POSIX; Windows ends a process without asking it"
)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(text: str) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    data = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /v1/chat/completions HTTP/1.1\r\nhos",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /heal",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{",
        b"POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{",
    ],
    ids=["nothing", "half a head", "half a second head", "a blank line", "half a body", "unasked"],
)
def test_half_a_request_ends(sent: bytes, tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text("request_timeout = 1.0\n[upstreams.up]\nurl = 'http://127.0.0.1:1'\n")
    with (
        running("--config", str(config)) as gateway,
        socket.create_connection(("127.0.0.1", gateway.port), DEADLINE) as client,
    ):
        got = b""
        if sent.startswith(b"GET"):  # an answer first: what follows it is the second request
            first, _, sent = sent.partition(b"\r\n\r\n")
            client.sendall(first + b"\r\n\r\n")
            while b"in_flight" not in got:
                got += client.recv(65536)
        client.sendall(sent)
        while piece := client.recv(65536):  # until the gateway hangs up
            got += piece
            if b"nowhere" in sent:
                client.sendall(b"{")
    assert (b" 408 " in got) == (b"chat" in sent and b"\r\n\r\n" in sent)


def test_a_client_that_does_not_read_is_left(tmp_path: Path) -> None:
    left = threading.Event()

    def script(connection: socket.socket, _: bytes) -> None:
        try:
            connection.sendall(HEAD)
            while True:
                connection.sendall(chunk("x" * 60_000))
        finally:
            left.set()

    with Raw() as raw:
        raw.script = script
        config = tmp_path / "serve.toml"
        config.write_text(f"send_timeout = 0.3\n[upstreams.up]\nurl = '{raw.url}'\n")
        with running("--config", str(config)) as gateway:
            connection = gateway.connect()
            path, body = request("openai.chat", STOPS, stream=True)
            connection.request("POST", path, json.dumps(body))
            assert left.wait(DEADLINE)
            gateway.wait_for("request", end="client_gone")
            connection.close()


@POSIX
@pytest.mark.parametrize("stops", [STOPS, None], ids=["cut", "passed"])
def test_a_stream_that_outlives_the_drain_ends_in_its_own_words(
    stops: list[str] | None, tmp_path: Path
) -> None:
    def script(connection: socket.socket, _: bytes) -> None:
        connection.sendall(HEAD + chunk("Hello E"))
        connection.recv(1)

    with Raw() as raw:
        raw.script = script
        gateway = Gateway("--upstream", f"up={raw.url}", "--drain-timeout", "1")
        try:
            connection = gateway.connect()
            path, body = request("openai.chat", stops, stream=True)
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            start = response.read1(1)
            gateway.process.send_signal(signal.SIGTERM)
            rest = b""
            if stops:
                rest = response.read()
            assert gateway.process.wait(DEADLINE) == 0
            connection.close()
            gateway.wait_for("stopped")
        finally:
            gateway.close()
    assert "Traceback" not in "".join(gateway.said)
    if stops:
        assert b'"code":"shutdown"' in (start + rest).replace(b'": "', b'":"')
