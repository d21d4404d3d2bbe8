"""Token stream: an answer in English with code and markup, in chunks of about four characters. The
figure that servers pay.
"""

from __future__ import annotations

from functools import partial

import pytest

from benches import workloads
from benches.measure import OURS, Side, Timer, drive, stream_side, stream_sides
from benches.peers import Peer
from benches.peers.ours import Holdback


@pytest.mark.parametrize("count", [1, 4, 16, 256])
def test_the_tokens_of_an_answer(timer: Timer, peers: dict[str, type[Peer]], count: int) -> None:
    text = workloads.mixed_text(timer.size(8000, 400))
    sides = stream_sides(peers, workloads.stops(count), text, workloads.like_tokens)
    chunks = len(workloads.like_tokens(text))
    timer.tell(workload=f"token stream, {count} stops", stops=count)
    timer.compare(sides, per=chunks, unit="ns/chunk", rounds=150)


def test_chunks_of_four(timer: Timer, c_floor: type[Peer]) -> None:
    """The row of the budget: nothing but four ASCII characters at a time, beside the floor only."""
    text = workloads.mixed_text(timer.size(8000, 400))
    cut = workloads.every(4)
    sides = stream_sides({OURS: Holdback, c_floor.name: c_floor}, workloads.stops(4), text, cut)
    timer.tell(workload="chunks of 4 characters, 4 stops", stops=4)
    timer.compare(sides, per=len(cut(text)), unit="ns/chunk", rounds=400)


@pytest.mark.parametrize("count", [256, 10_000])
def test_the_number_of_stops(timer: Timer, peers: dict[str, type[Peer]], count: int) -> None:
    """More stops beside four of them: a step costs the same. More text is held for a long list,
    though, also by the floor.
    """
    text = workloads.mixed_text(timer.size(8000, 400))
    cut = workloads.every(4)
    sides = {}
    for name in (OURS, "floor"):
        for size in (4, timer.size(count, 64)):
            if name in peers and size <= peers[name].most_stops:
                label = OURS if (name, size > 4) == (OURS, True) else f"{name}, {size} stops"
                sides[label] = stream_side(
                    peers[name], peers[name].build(workloads.stops(size)), text, cut
                )
    timer.tell(workload=f"chunks of 4 characters, {count:,} stops beside 4", stops=count)
    timer.compare(sides, per=len(cut(text)), unit="ns/chunk", rounds=400)


def test_the_length_of_an_answer(timer: Timer) -> None:
    """Tokens behind ten million characters beside the first tokens."""
    text = workloads.mixed_text(timer.size(8000, 400))
    cut = workloads.every(4)
    known = Holdback.build(workloads.stops(4))
    long = known.stream()
    for _ in range(timer.size(10_000_000, 4000) // len(text)):
        drive(long.feed, cut(text))
    long.feed("no stop begins here")

    def late() -> partial[None]:
        return partial(drive, long.copy().feed, cut(text))

    sides: dict[str, Side] = {OURS: late, "first tokens": stream_side(Holdback, known, text, cut)}
    timer.tell(workload="after 10,000,000 characters beside the first", stops=4)
    timer.compare(sides, per=len(cut(text)), unit="ns/chunk", rounds=200)
