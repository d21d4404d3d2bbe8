"""The gateway, made visible: clients that send six stops to a model that takes none.

``holdback serve --demo`` runs as a process of its own, with its canned upstream. Three clients ask
it, each in the words of another provider; every line shows a frame that a client got and when. In
the end each is told which stop fired, and the upstream says how much of its answer it had sent when
it was hung up on.

Run it with ``make demo``, or ``python examples/demo_serve.py`` where holdback[serve] is installed.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from typing import Any

STOPS = ["END", "</answer>", "\n\nUser:", "\n\nHuman:", "Thought:", "Observation:"]
WIDTH = 118
ASKS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "OpenAI chat, streamed",
        "/v1/chat/completions",
        {"model": "demo", "stream": True, "stop": STOPS},
    ),
    ("Anthropic, in one piece", "/v1/messages", {"model": "demo", "stop_sequences": STOPS}),
    ("Ollama, streamed", "/api/generate", {"model": "demo", "options": {"stop": STOPS}}),
]


def main() -> int:
    """Start the gateway, ask, show, stop it."""
    command = [sys.executable, "-m", "holdback", "serve", "--demo", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as gateway:
        assert gateway.stderr
        first = gateway.stderr.readline()
        if not first.startswith("{"):  # it says why it cannot run
            print(first, end="", file=sys.stderr)
            return gateway.wait()
        address = json.loads(first)["address"].removeprefix("http://")
        print(
            bold(
                "\n  holdback serve: six stops for a model that takes none, and never stops by itself\n"
            )
        )
        for title, path, asked in ASKS:
            print(f"  {bold(title)}   POST {path}   stops: {', '.join(map(repr, STOPS))}\n")
            ask(address, path, asked)
            print(paint(f"\n    the upstream: {seen_by_upstream(gateway.stderr)}\n", 32))
        gateway.terminate()
    return 0


def ask(address: str, path: str, asked: dict[str, Any]) -> None:
    """One request; each line of the answer with the moment it came."""
    connection = http.client.HTTPConnection(address, timeout=60)
    start = time.perf_counter()
    connection.request("POST", path, json.dumps(asked))
    answer = connection.getresponse()
    for line in answer:
        if line.strip():
            show(time.perf_counter() - start, line.decode().rstrip())
    stop = answer.getheader("x-holdback-stop")
    if stop:
        show(time.perf_counter() - start, f"x-holdback-stop: {stop}   (a header)")
    connection.close()


def show(seconds: float, line: str) -> None:
    """The end of a long line is what differs, so the beginning goes."""
    for noise in (
        '"object":"chat.completion.chunk","created":1790000000,',
        '"logprobs":null,',
        '"model":"demo",',
    ):
        line = line.replace(noise, "")
    shown = line if len(line) <= WIDTH else f"{line[:24]} ... {line[24 - WIDTH :]}"
    told = any(word in line for word in ('"stop"', "stop_sequence", "x-holdback-stop"))
    print(f"    {seconds * 1000:5.0f} ms  {paint(shown, 31) if told else shown}")


def seen_by_upstream(log: Any) -> str:
    """What the canned upstream logged of the last request."""
    while True:
        line = json.loads(log.readline())
        if line["event"] == "demo upstream":
            return str(line["seen"])


def bold(text: str) -> str:
    return paint(text, 1)


def paint(text: str, code: int) -> str:
    return f"\033[{code}m{text}\033[0m" if sys.stdout.isatty() else text


if __name__ == "__main__":
    sys.exit(main())
