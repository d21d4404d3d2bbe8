"""Busy neighbour: tokens beside a thread of Python code that never rests, and two threads with
streams of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial

import pytest

from benches import gil, workloads
from benches.measure import Timer, clock
from benches.peers import Peer
from benches.peers.ours import Holdback

pytestmark = pytest.mark.thread_unsafe


def token_latencies(feed: gil.Feed, text: str, seconds: float) -> list[int]:
    """ns of each token's call, sorted; each is a new str."""
    found: list[int] = []
    end = clock() + int(seconds * 1e9)
    while clock() < end:
        chunks = workloads.every(4)(text)
        begin = clock()
        for chunk in chunks:
            feed(chunk)
            now = clock()
            found.append(now - begin)
            begin = now
    return sorted(found)


def test_tokens_beside_a_busy_thread(timer: Timer, c_floor: type[Peer]) -> None:
    """Three turns for each way, each turn beside the thread; the floor that releases the GIL shows
    what is avoided.
    """
    text, seconds = workloads.mixed_text(8000), 0.5 if timer.real else 0.005
    known, tables = Holdback.build(workloads.stops(4)), c_floor.build(workloads.stops(4))
    ways: dict[str, gil.Make] = {
        "holdback": lambda: known.stream().feed,
        "floor": lambda: c_floor(tables).feed,
        "floor, GIL released": partial(gil.method_of_new, c_floor, tables, "walk_detached"),
    }

    def turns() -> dict[str, list[list[int]]]:
        found: dict[str, list[list[int]]] = {way: [] for way in ways}
        for _ in range(timer.size(3, 1)):
            for way, make in ways.items():
                with gil.Busy():
                    found[way].append(token_latencies(make(), text, seconds))
        return found

    found = timer.benchmark.pedantic(turns, rounds=1, iterations=1)
    timer.tell(workload="tokens beside a busy thread", unit="ns/chunk")
    timer.tell(
        percentiles={
            way: {f"p{p}": min(turn[len(turn) * p // 100] for turn in turns) for p in (50, 99)}
            for way, turns in found.items()
        }
    )


@pytest.mark.parametrize("size", [64 << 10, 1 << 20])
def test_two_threads(timer: Timer, size: int) -> None:
    """Text read by two threads for each that one reads, in turns; the best turn, since other
    programs run here too.

    Two threads that hash as much beside it show how much of a second core the machine had to give.
    """
    size, seconds = (size, 0.15) if timer.real else (32 << 10, 0.003)
    chunk = workloads.library_text(size)[:-1] + "."
    raw, known = chunk.encode(), Holdback.build(workloads.stops(4))
    pace = partial(gil.read, lambda: known.stream().feed, chunk)
    hashing = partial(gil.read, lambda: lambda _: hashlib.sha256(raw), chunk)

    def turns() -> list[tuple[float, float]]:
        return [(gain(pace, seconds), gain(hashing, seconds)) for _ in range(timer.size(12, 1))]

    gains, control = zip(*timer.benchmark.pedantic(turns, rounds=1, iterations=1), strict=True)
    timer.tell(
        workload=f"two threads, chunks of {size >> 10} KiB",
        gains=sorted(gains),
        control=sorted(control),
    )


def gain(pace: Callable[[int, float], float], seconds: float) -> float:
    return pace(2, seconds) / max(pace(1, seconds), 1e-12)
