"""Memory: of one stream, and of a long list.

Time is that of making a stream; memory stands beside it.
"""

from __future__ import annotations

import pytest

from benches import memory, workloads
from benches.measure import Timer
from benches.peers import Peer
from benches.peers.ours import Holdback

pytestmark = [
    pytest.mark.thread_unsafe,
    pytest.mark.skipif(not memory.STATM.exists(), reason="resident memory is read from /proc"),
]
LIBRARIES = ["pyahocorasick", "ahocorasick_rs", "daachorse"]


def test_one_stream(timer: Timer, peers: dict[str, type[Peer]]) -> None:
    known = Holdback.build(workloads.stops(4))
    timer.benchmark.pedantic(
        lambda: [known.stream() for _ in range(100)], rounds=timer.size(100, 1), iterations=1
    )
    asked = [name for name in peers if not name.endswith("rule")] if timer.real else ["holdback"]
    timer.tell(workload="memory of a stream, 4 stops", unit="ns/100 streams")
    timer.tell(memory={name: memory.apart("stream", name) for name in asked})


def test_a_long_list(timer: Timer, peers: dict[str, type[Peer]]) -> None:
    count = timer.size(100_000, 100)
    stops = workloads.stops(count)
    found = timer.benchmark.pedantic(Holdback.build, args=(stops,), rounds=1, iterations=1)
    asked = (
        ["holdback", *(name for name in LIBRARIES if name in peers)] if timer.real else ["holdback"]
    )
    timer.tell(workload=f"memory of a set, {count:,} stops", nbytes=found.nbytes)
    timer.tell(memory={name: memory.apart("set", name, str(count)) for name in asked})
