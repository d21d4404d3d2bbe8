"""Request build: what a request pays before its first token. It brings one to eight stops, as new
objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import pytest

import holdback
from benches import workloads
from benches.measure import OURS, Go, Timer
from benches.peers import Peer

number = count()


def build_each(build: Callable[[Sequence[str]], Any], lists: Sequence[Sequence[str]]) -> None:
    for stops in lists:
        build(stops)


@pytest.mark.parametrize("size", [1, 4, 8])
def test_a_list_never_seen(timer: Timer, peers: dict[str, type[Peer]], size: int) -> None:
    lists = timer.size(20, 1)
    known = workloads.stops(size)

    def side(build: Callable[[Sequence[str]], Any]) -> Go:
        return partial(
            build_each, build, [workloads.never_seen(known, next(number)) for _ in range(lists)]
        )

    sides = {
        name: partial(side, peer.build)
        for name, peer in peers.items()
        if peer.build is not Peer.build
    }
    sides[OURS] = partial(side, holdback.StopSet)
    timer.tell(workload=f"new set, {size} stops", stops=size)
    timer.compare(sides, per=lists, unit="ns/set", rounds=200)


def test_a_list_that_is_known(timer: Timer) -> None:
    """`compile` with new str objects of a known list, as a request brings them; and with the same
    objects.
    """
    calls = timer.size(500, 5)
    kept = list(workloads.stops(4))

    def anew() -> list[str]:
        return ["".join([stop[:1], stop[1:]]) for stop in kept]

    def as_new() -> Go:
        return partial(build_each, holdback.compile, [anew() for _ in range(calls)])

    def as_known() -> Go:
        return partial(build_each, holdback.compile, [kept] * calls)

    def into_tuples() -> Go:
        return partial(build_each, tuple, [anew() for _ in range(calls)])

    assert holdback.compile(anew()) is holdback.compile(anew())
    timer.tell(workload="compile of a known list, 4 stops", stops=4)
    sides = {OURS: as_new, "the same objects": as_known, "tuple(list)": into_tuples}
    timer.compare(sides, per=calls, unit="ns/call", rounds=200)


def test_a_hundred_thousand_stops(timer: Timer, peers: dict[str, type[Peer]]) -> None:
    size = timer.size(100_000, 500)
    stops = list(workloads.stops(size))
    asked = {
        n: p
        for n, p in peers.items()
        if p.most_stops >= size and p.build is not Peer.build and " " not in n
    }
    sides = {name: partial(partial, peer.build, stops) for name, peer in asked.items()}
    sides[OURS] = partial(partial, holdback.StopSet, stops)
    found = holdback.StopSet(stops)
    assert found.truncate("x" + stops[-1])[0] == "x"
    timer.tell(
        workload=f"new set, {size:,} stops",
        stops=size,
        nbytes=found.nbytes,
        stop_bytes=sum(map(len, stops)),
    )
    timer.compare(sides, per=1, unit="ns/set", rounds=7)
