"""Adversary: stop lists and texts made to cost more than they should.

Time stays linear, and near that of a plain walk.
"""

from __future__ import annotations

from functools import partial

import pytest

from benches import workloads
from benches.measure import OURS, Go, Timer, stream_sides
from benches.peers import Peer
from benches.peers.ours import Holdback

NAMES = list(workloads.adversaries(100))


def without_engines(peers: dict[str, type[Peer]]) -> dict[str, type[Peer]]:
    """They take seconds here, which says nothing that the textbook buffer does not say."""
    return {name: peer for name, peer in peers.items() if not name.endswith("rule")}


@pytest.mark.parametrize("name", NAMES)
def test_tokens(timer: Timer, peers: dict[str, type[Peer]], name: str) -> None:
    stops, text = workloads.adversaries(timer.size(16_000, 1500))[name]
    cut = workloads.every(4)
    timer.tell(workload=f"adversary in tokens: {name}", stops=len(stops))
    sides = stream_sides(without_engines(peers), stops, text, cut)
    timer.compare(sides, per=len(cut(text)), unit="ns/chunk", rounds=40)


@pytest.mark.parametrize("name", NAMES)
def test_one_chunk(timer: Timer, peers: dict[str, type[Peer]], name: str) -> None:
    """1 MB at once; the same text in 64 chunks of as many streams shows whether time is linear."""
    size = timer.size(1 << 20, 1536)
    stops, text = workloads.adversaries(size)[name]
    timer.tell(workload=f"adversary in one chunk: {name}", stops=len(stops))
    sides = stream_sides(without_engines(peers), stops, text, workloads.every(size))
    shared = Holdback.build(stops)

    def in_pieces() -> Go:
        pieces = workloads.every(size // 64)(text)
        feeds = [Holdback(shared).feed for _ in pieces]

        def go() -> None:
            for feed, piece in zip(feeds, pieces, strict=True):
                feed(piece)

        return go

    sides[f"{OURS}, 64 pieces"] = partial(in_pieces)
    timer.compare(sides, per=size, unit="ns/byte", rounds=15)
