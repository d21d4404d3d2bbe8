"""What the tests of ``holdback serve`` share: the gateway as a process, upstreams on loopback, a
plain HTTP client.

Nothing is timed. An upstream that must not send its next piece before the gateway has left waits
for that, with a deadline so generous that only a hang can miss it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

NEEDED = "needs the extra holdback[serve], which `make setup` installs"
for name in ("aiohttp", "uvicorn", "prometheus_client"):
    pytest.importorskip(name, reason=NEEDED)

from holdback.serve.demo import Demo, Seen  # noqa: E402 - after the check above
from holdback.serve.server import demo_upstream  # noqa: E402

DEADLINE = 60.0
STOPS = ["\n\nHuman:", "</answer>", "END", "###", "Observation:", "<|eot|>", "User:"]
PIECES = ("The", " capital", " is", " Paris", ".\nObs", "ervat", "ion: none", " END", " bye")
TEXT = "The capital is Paris.\n"
UP_TO_MATCH = 7  # pieces

PATHS = {
    "openai.chat": "/v1/chat/completions",
    "openai.completions": "/v1/completions",
    "openai.responses": "/v1/responses",
    "anthropic.messages": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
    "ollama.chat": "/api/chat",
    "ollama.generate": "/api/generate",
    "llama.cpp": "/completion",
    "tgi": "/generate",
    "cohere.chat": "/v2/chat",
}


def request(dialect: str, stops: list[str] | None, *, stream: bool) -> tuple[str, dict[str, Any]]:
    """Path and body of a request with these stops."""
    path, body = PATHS[dialect], dict[str, Any]()
    if dialect == "gemini":
        body = {"contents": [], "generationConfig": {"stopSequences": stops} if stops else {}}
        path = path.replace(":generate", ":streamGenerate") + "?alt=sse" if stream else path
    elif dialect == "tgi":
        body = {"inputs": "q", "parameters": {"stop": stops} if stops else {}}
        path = "/generate_stream" if stream else path
    else:
        body = {
            "model": "m",
            "stream": stream,
            "messages": [{"role": "user", "content": "q"}],
            "prompt": "q",
        }
        if dialect.startswith("ollama"):
            body["options"] = {"stop": stops} if stops else {}
        elif stops:
            name = "stop_sequences" if dialect.startswith(("anthropic", "cohere")) else "stop"
            body[name] = stops
    return path, body


def whole_text(dialect: str, body: Any) -> str:
    """The text of an answer in one piece."""
    text: Any = {
        "openai.chat": lambda: body["choices"][0]["message"]["content"],
        "openai.completions": lambda: body["choices"][0]["text"],
        "openai.responses": lambda: body["output"][0]["content"][0]["text"],
        "anthropic.messages": lambda: "".join(block["text"] for block in body["content"]),
        "gemini": lambda: body["candidates"][0]["content"]["parts"][0]["text"],
        "ollama.chat": lambda: body["message"]["content"],
        "ollama.generate": lambda: body["response"],
        "llama.cpp": lambda: body["content"],
        "tgi": lambda: body["generated_text"],
        "cohere.chat": lambda: body["message"]["content"][0]["text"],
    }[dialect]()
    assert isinstance(text, str)
    return text


@dataclass
class Reply:
    """An answer read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Gateway:
    """``holdback serve`` as a process of its own."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "holdback", "serve", "--listen", "127.0.0.1:0", *arguments]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, env={**os.environ, "PYTHONUTF8": "1"}
        )
        self.lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        address: str = self.wait_for("listening")["address"]
        self.url = address
        self.port = int(address.rpartition(":")[2])

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.said.append(line.decode())
            with contextlib.suppress(ValueError):
                self.lines.put(json.loads(line))
        self.lines.put(None)

    def wait_for(self, event: str, **fields: Any) -> dict[str, Any]:
        """The next log line of that kind."""
        while (line := self.lines.get(timeout=DEADLINE)) is not None:
            if line["event"] == event and all(
                line.get(key) == value for key, value in fields.items()
            ):
                return line
        raise AssertionError(f"it ended without saying {event!r}: {self.said}")

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)

    def ask(
        self,
        path: str,
        body: Any = None,
        *,
        method: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """One request, read to its end."""
        connection = self.connect()
        with contextlib.closing(connection):
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(
                method or ("GET" if body is None else "POST"), path, data, headers or {}
            )
            response = connection.getresponse()
            return Reply(
                response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
            )

    def metric(self, name: str) -> float:
        """The sum of all series of a metric."""
        text = self.ask("/metrics").body.decode()
        rows = [line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
        return sum(float(row.rpartition(" ")[2]) for row in rows)

    def close(self) -> int:
        """End it as an operator would; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self._reader.join(DEADLINE)
            assert self.process.stderr
            self.process.stderr.close()


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[Gateway]:
    gateway = Gateway(*arguments)
    try:
        yield gateway
    finally:
        gateway.close()


class Canned:
    """The demo's upstream, under our pace: pieces up to `quick` go out at once, the next one waits
    until the client has left.
    """

    def __init__(self, pieces: tuple[str, ...] = PIECES, quick: int | None = UP_TO_MATCH) -> None:
        self.ended: queue.Queue[Seen] = queue.Queue()
        self.quick = quick
        self.demo = Demo(pieces, delay=self._delay, told=self.ended.put)
        self._running = demo_upstream(self.demo)
        self.url = ""

    def _delay(self, sent: int) -> float:
        return DEADLINE if self.quick is not None and sent >= self.quick else 0.0

    def __enter__(self) -> Canned:
        self.url = self._running.__enter__().url
        return self

    def __exit__(self, *error: Any) -> None:
        self.quick = None
        self._running.__exit__(*error)

    def wait(self) -> Seen:
        """What it saw of the next request to be over."""
        return self.ended.get(timeout=DEADLINE)


class Raw:
    """An upstream that writes the very bytes a test wants: its `script` gets the connection and the
    request, one at a time.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.script: Callable[[socket.socket, bytes], None] = lambda *_: None
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests: queue.Queue[bytes] = queue.Queue()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection, contextlib.suppress(OSError):
                if self._stopping:
                    return
                connection.settimeout(DEADLINE)
                request = self.read_request(connection)
                self.requests.put(request)
                self.script(connection, request)

    @staticmethod
    def read_request(connection: socket.socket) -> bytes:
        """The next request on a connection, head and body."""
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(65536)
            if not piece:
                raise ConnectionError
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            (
                int(line[15:])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            ),
            0,
        )
        while len(body) < length:
            body += connection.recv(65536)
        return head + b"\r\n\r\n" + body

    def answers(self, data: bytes) -> None:
        """From now on, answer every request with these bytes."""
        self.script = lambda connection, _: connection.sendall(data)

    def __enter__(self) -> Raw:
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stopping = True
        socket.create_connection(self._listener.getsockname(), DEADLINE).close()  # wakes accept()
        self._thread.join(DEADLINE)
        self._listener.close()


def memory(process: subprocess.Popen[bytes]) -> int:
    """Resident bytes of a process (Linux)."""
    pages = Path(f"/proc/{process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
