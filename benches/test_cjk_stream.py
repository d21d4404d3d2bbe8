"""CJK and emoji streams: text that CPython stores with two and with four bytes for each character."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benches import workloads
from benches.measure import Timer, stream_sides
from benches.peers import Peer

TEXTS = {"CJK": workloads.cjk_text, "emoji": workloads.emoji_text}
LISTS = {"4 stops": workloads.stops(4), "4 stops, wide ones among them": workloads.WIDE}


@pytest.mark.parametrize("stops", LISTS)
@pytest.mark.parametrize("kind", TEXTS)
def test_chunks_of_four(timer: Timer, peers: dict[str, type[Peer]], kind: str, stops: str) -> None:
    """The floor takes ASCII stops only, so it is there for one of the lists."""
    make: Callable[[int], str] = TEXTS[kind]
    text, cut = make(timer.size(8000, 400)), workloads.every(4)
    taking = (
        peers
        if all(map(str.isascii, LISTS[stops]))
        else {n: p for n, p in peers.items() if n != "floor"}
    )
    timer.tell(workload=f"{kind} stream, {stops}", stops=4)
    sides = stream_sides(taking, LISTS[stops], text, cut)
    timer.compare(sides, per=len(cut(text)), unit="ns/chunk", rounds=300)
