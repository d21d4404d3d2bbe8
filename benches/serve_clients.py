"""Which HTTP client reads many streams of small events with the least work: aiohttp, httpx2 or
httpx.

An upstream in a process of its own sends chat events 2 ms apart; each client reads N such streams
at once over one pool, as ``holdback serve`` does. Shown is the processor time of this process for
each event. The clients take turns.

    pip install aiohttp httpx httpx2 uvicorn
    python benches/serve_clients.py [--streams 20] [--events 300] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import socket
import statistics
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

EVENT = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}\n\n'
CLIENTS = ("aiohttp", "httpx2", "httpx")


def run_upstream(listener: socket.socket, events: int) -> None:
    """What the upstream's process does."""
    uvicorn: Any = import_module("uvicorn")

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream")],
            }
        )
        for _ in range(events):
            await send({"type": "http.response.body", "body": EVENT, "more_body": True})
            await asyncio.sleep(0.002)
        await send({"type": "http.response.body", "body": b""})

    uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off")).run(sockets=[listener])


async def measure(name: str, url: str, streams: int, events: int) -> float:
    """Microseconds of processor time an event."""
    library: Any = import_module(name)
    one: Callable[[], Awaitable[int]]
    if name == "aiohttp":
        client = library.ClientSession(
            connector=library.TCPConnector(limit=0), auto_decompress=False
        )

        async def one() -> int:
            async with client.post(url, data=b"{}") as answer:
                return sum([len(piece) async for piece in answer.content.iter_any()])
    else:
        client = library.AsyncClient(limits=library.Limits(max_connections=None), timeout=60)

        async def one() -> int:
            async with client.stream("POST", url, content=b"{}") as answer:
                return sum([len(piece) async for piece in answer.aiter_raw()])

    async with client:
        await asyncio.gather(*(one() for _ in range(streams)))  # opens the pool's connections
        start = time.process_time()
        sizes = await asyncio.gather(*(one() for _ in range(streams)))
        spent = time.process_time() - start
    if sizes != [len(EVENT) * events] * streams:
        raise RuntimeError(f"{name} did not bring every byte")
    return spent / (streams * events) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--streams", type=int, default=20, help="streams at once (default: %(default)s)"
    )
    parser.add_argument(
        "--events", type=int, default=300, help="events of each (default: %(default)s)"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="turns of each client (default: %(default)s)"
    )
    args = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    upstream = multiprocessing.get_context("spawn").Process(
        target=run_upstream, args=(listener, args.events), daemon=True
    )
    upstream.start()
    found: dict[str, list[float]] = {name: [] for name in CLIENTS}
    try:
        for _ in range(args.rounds):
            for name in CLIENTS:
                found[name].append(asyncio.run(measure(name, url, args.streams, args.events)))
    finally:
        upstream.kill()
        listener.close()
    for name, times in found.items():
        print(f"{name:10}{statistics.median(times):8.1f} us of CPU an event")


if __name__ == "__main__":
    main()
