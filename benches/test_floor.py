"""The floor by itself: what each step of the work adds, and that it does the job it is the bound
of.
"""

from __future__ import annotations

from functools import partial

import pytest

from benches import workloads
from benches.floor import STEPS
from benches.measure import OURS, Side, Timer, drive
from benches.peers import Peer
from benches.peers.ours import Holdback


@pytest.mark.parametrize("size", [4, 16])
def test_the_steps_of_a_call(timer: Timer, c_floor: type[Peer], size: int) -> None:
    """A loop without a call, then each step, then holdback.

    The steps hold nothing back, so `feed` gets to in this text either.
    """
    text = "".join(
        character
        for character in workloads.mixed_text(timer.size(16000, 400))
        if character.isalpha()
    )
    cut = workloads.every(size)
    tables, known = c_floor.build(workloads.stops(4)), Holdback.build(workloads.stops(4))

    def loop() -> partial[None]:
        return partial(empty, cut(text))

    def step(name: str) -> partial[None]:
        return partial(drive, getattr(c_floor(tables), name), cut(text))

    sides: dict[str, Side] = {"loop": loop, **{name: partial(step, name) for name in STEPS}}
    sides[OURS] = lambda: partial(drive, known.stream().feed, cut(text))
    timer.tell(workload=f"steps of a call, {size} characters", stops=4)
    timer.compare(sides, per=len(cut(text)), unit="ns/chunk", rounds=200)


def empty(chunks: list[str]) -> None:
    for _ in chunks:
        pass
