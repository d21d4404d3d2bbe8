"""The gateway under load: the same stack with and without cutting, in one run, and the ratio of the
two.

Three processes on this machine: an upstream that streams chat events, ``holdback serve``, and this
one, with N clients at once. Requests come in two kinds that differ in nothing but their stops: with
twelve stops that never fire, every event is read and matched; without any, the gateway passes every
byte. The kinds take turns, and each figure is the median over the rounds.

* flat out: the upstream sends as fast as it is read. Events per second, and processor time of the
  gateway per event.
* paced: every stream sends an event each 25 ms, as a model would. Each event carries the moment it
  was sent; what is shown is the time until the client has it: straight from the upstream, passed by
  the gateway, cut by it. Every event is a chunk of its own here, where flat out one read brings
  several, so the gateway's cost per event is higher. Processes must share a clock (Linux).

    python benches/serve_load.py [--streams 100] [--events 200] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STOPS = [
    *("\n\nHuman:", "</answer>", "###END", "Observation:", "<|eot|>", "\nUser:"),
    *("<|im_end|>", "[/INST]", "---8<---", "\x04", "STOP!", "</s>"),
]
PACE = 0.025  # seconds between the events of a stream
PACED_EVENTS = 100
HEAD = b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"m","sent":'
TAIL = b',"choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null}\n\n'
END = b'data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"


async def upstream(_scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application: ``max_tokens`` events, ``temperature`` seconds apart."""
    asked = json.loads((await receive())["body"])
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/event-stream")],
        }
    )
    for _ in range(asked["max_tokens"]):
        await asyncio.sleep(asked["temperature"])
        frame = HEAD + b"%.6f" % time.perf_counter() + TAIL
        await send({"type": "http.response.body", "body": frame, "more_body": True})
    await send({"type": "http.response.body", "body": END})


def run_upstream(listener: socket.socket) -> None:
    """What the upstream's process does."""
    import uvicorn

    uvicorn.Server(uvicorn.Config(upstream, log_level="error", lifespan="off")).run(
        sockets=[listener]
    )


async def one_stream(port: int, body: bytes, delays: list[float]) -> None:
    """One request on a connection of its own; adds the delay of each event."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(REQUEST % (len(body), body))
    rest = b""
    while not rest.startswith(b"data: [DONE]"):
        piece = await reader.read(65536)
        if not piece:
            raise ConnectionError("a stream broke off")
        now = time.perf_counter()
        *lines, rest = (rest + piece).split(b"\n\n")
        for line in lines:
            _, found, sent = line.partition(b'"sent":')
            if found:
                delays.append(now - float(sent[: sent.index(b",")]))
            if b"data: [DONE]" in line:
                rest = b"data: [DONE]"
    writer.close()


def load(
    port: int, streams: int, events: int, pace: float, stops: list[str] | None
) -> tuple[float, list[float]]:
    """Seconds for `streams` requests at once, and the delay of every event."""
    asked: dict[str, Any] = {
        "model": "m",
        "messages": [],
        "stream": True,
        "max_tokens": events,
        "temperature": pace,
    }
    body = json.dumps(asked | ({"stop": stops} if stops else {})).encode()
    delays: list[float] = []

    async def all_at_once() -> None:
        await asyncio.gather(*(one_stream(port, body, delays) for _ in range(streams)))

    start = time.perf_counter()
    asyncio.run(all_at_once())
    seconds = time.perf_counter() - start
    if len(delays) != streams * events:
        raise RuntimeError(f"{len(delays)} events came, of {streams * events}")
    return seconds, delays


@contextlib.contextmanager
def stack() -> Iterator[tuple[int, int, int]]:
    """Upstream and gateway: the upstream's port, the gateway's, and the gateway's process."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    port = listener.getsockname()[1]
    behind = multiprocessing.get_context("spawn").Process(
        target=run_upstream, args=(listener,), daemon=True
    )
    behind.start()
    listen = ["--listen", "127.0.0.1:0", "--upstream", f"up=http://127.0.0.1:{port}"]
    gateway = subprocess.Popen(
        [sys.executable, "-m", "holdback", "serve", *listen], stderr=subprocess.PIPE, text=True
    )
    try:
        assert gateway.stderr
        address = json.loads(gateway.stderr.readline())["address"]
        with subprocess.Popen(
            ["cat"], stdin=gateway.stderr, stdout=subprocess.DEVNULL
        ):  # a full pipe would stop it
            yield port, int(address.rpartition(":")[2]), gateway.pid
            gateway.terminate()
    finally:
        gateway.terminate()
        gateway.wait(60)
        behind.kill()
        listener.close()


def processor_seconds(process: int) -> float:
    """Time of its main thread so far (Linux): to the nanosecond, where the usual figures count
    hundredths of a second.
    """
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def percentiles(values: list[float]) -> tuple[float, float]:
    """The 50th and the 99th, in milliseconds."""
    ordered = sorted(values)
    return ordered[len(ordered) // 2] * 1e3, ordered[len(ordered) * 99 // 100] * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--streams", type=int, default=100, help="streams at once (default: %(default)s)"
    )
    parser.add_argument(
        "--events", type=int, default=200, help="events of each (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="turns of each kind (default: %(default)s)"
    )
    args = parser.parse_args()
    kinds: dict[str, list[str] | None] = {"passed": None, "cut": STOPS}
    rate: dict[str, list[float]] = {kind: [] for kind in kinds}
    cost: dict[str, list[float]] = {kind: [] for kind in kinds}
    late: dict[str, list[float]] = {kind: [] for kind in ("direct", *kinds)}
    total = args.streams * args.events
    with stack() as (direct, port, process):
        for stops in kinds.values():
            load(port, args.streams, 20, 0, stops)  # imports, caches, connections
        for turn in range(args.rounds):
            for kind in sorted(kinds, reverse=bool(turn % 2)):
                before = processor_seconds(process)
                seconds, _ = load(port, args.streams, args.events, 0, kinds[kind])
                rate[kind].append(total / seconds)
                cost[kind].append((processor_seconds(process) - before) / total * 1e6)
        alone: dict[str, float] = dict.fromkeys(kinds, 0.0)
        for turn in range(args.rounds):
            late["direct"] += load(direct, args.streams, PACED_EVENTS, PACE, None)[1]
            for kind in sorted(kinds, reverse=bool(turn % 2)):
                before = processor_seconds(process)
                late[kind] += load(port, args.streams, PACED_EVENTS, PACE, kinds[kind])[1]
                alone[kind] += processor_seconds(process) - before
    print(
        f"{args.streams} streams at once, {args.events} events each, {len(STOPS)} stops; median of {args.rounds} rounds\n"
    )
    print(f"{'flat out':14}{'events/s':>12}{'us of CPU an event':>22}")
    for kind in kinds:
        print(
            f"{kind:14}{statistics.median(rate[kind]):12,.0f}{statistics.median(cost[kind]):22.1f}"
        )
    speed = statistics.median(c / p for c, p in zip(rate["cut"], rate["passed"], strict=True))
    price = statistics.median(c / p for c, p in zip(cost["cut"], cost["passed"], strict=True))
    print(f"{'cut / passed':14}{speed:12.1%}{price:22.1%}\n")
    print(f"{'paced':14}{'p50 ms':>12}{'p99 ms':>12}{'us of CPU an event':>22}")
    for kind, delays in late.items():
        micros = f"{alone[kind] / len(delays) * 1e6:22.1f}" if kind in alone else ""
        print(f"{kind:14}" + "".join(f"{value:12.2f}" for value in percentiles(delays)) + micros)
    added = [
        c - p for c, p in zip(percentiles(late["cut"]), percentiles(late["passed"]), strict=True)
    ]
    print(
        f"{'cutting adds':14}"
        + "".join(f"{value:12.2f}" for value in added)
        + f"{alone['cut'] / alone['passed'] - 1:22.1%}"
    )


if __name__ == "__main__":
    main()
