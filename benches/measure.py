"""How things are timed here: what is compared takes turns, round by round, so that the machine's
moods hit all alike.

A *side* is one of the things compared. In each round every side in turn prepares itself (fresh
text, a fresh stream: not timed) and runs once (timed). Holdback's turn is the one that
pytest-benchmark times, so its own options and statistics apply; the others are timed around it,
with the same clock (conftest.py), and stand in `extra_info`, with the ratios: the median over the
rounds of holdback's time divided by the side's time *in the same round*."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from .peers import Peer
from .workloads import Cut

clock = time.perf_counter_ns  # for what involves other threads
# For what does not: time that this thread had the processor. On a machine with other work, a pass
# that is longer than a time slice is always interrupted and a short one seldom, which would make
# slow peers look slower than they are.
own_time = time.thread_time_ns
Go = Callable[[], object]
Side = Callable[[], Go]  # prepares, and gives what is to be timed

OURS = "holdback"
PATIENCE = 0.3e9  # ns that a side may take in all; a slow one then sits out the rest of the rounds
END, BEHIND = "<|the end of it|>", " and what is never sent"


@dataclass
class Timer:
    """What the fixture `timer` gives: pytest-benchmark's own, and how much to do in a smoke run and
    in a real one.
    """

    benchmark: Any

    @property
    def real(self) -> bool:
        """False where benchmarks are disabled: everything runs once, on little text."""
        return bool(self.benchmark.enabled)

    def size(self, real: int, smoke: int) -> int:
        return real if self.real else smoke

    def tell(self, **facts: object) -> None:
        """Puts facts beside the result."""
        self.benchmark.extra_info.update(facts)

    def compare(
        self,
        sides: Mapping[str, Side],
        *,
        per: int,
        unit: str,
        rounds: int,
        patience: float = PATIENCE,
    ) -> None:
        """Times the sides, of which `holdback` is one.

        A result is the time of a run divided by `per`, in ns; `unit` names it.
        """
        others = {name: side for name, side in sides.items() if name != OURS}
        taken: dict[str, list[int | None]] = {name: [] for name in others}
        spent = dict.fromkeys(others, 0)

        def round_() -> tuple[tuple[Go], dict[str, Any]]:
            order = list(others)
            turn = len(taken[order[0]]) % len(order) if order else 0
            for name in [*order[turn:], *order[:turn]]:
                if spent[name] > patience:
                    taken[name].append(None)
                    continue
                took = once(others[name]())
                taken[name].append(took)
                spent[name] += took
            return (sides[OURS](),), {}

        self.benchmark.pedantic(
            lambda go: go(), setup=round_, rounds=rounds if self.real else 1, iterations=1
        )
        self.tell(per=per, unit=unit)
        if self.real:
            ours = [seconds * 1e9 for seconds in self.benchmark.stats.stats.data]
            self.tell(sides=summary({OURS: ours, **taken}, per), ratios=ratios(ours, taken))


def once(go: Go) -> int:
    """ns of one run, without the collector of cycles."""
    enabled = gc.isenabled()
    gc.disable()
    begin = own_time()
    go()
    took = own_time() - begin
    if enabled:
        gc.enable()
    return max(took, 1)


def summary(taken: Mapping[str, Sequence[float | None]], per: int) -> dict[str, dict[str, float]]:
    """Minimum and median in ns, and in how many rounds a side took part."""
    found = {}
    for name, times in taken.items():
        known = [each for each in times if each is not None]
        found[name] = {
            "min": min(known) / per,
            "median": statistics.median(known) / per,
            "rounds": len(known),
        }
    return found


def ratios(ours: Sequence[float], taken: Mapping[str, Sequence[float | None]]) -> dict[str, float]:
    """Holdback's time divided by each side's, in the same round; the median of the rounds."""
    return {
        name: statistics.median(a / b for a, b in zip(ours, times, strict=True) if b is not None)
        for name, times in taken.items()
    }


# --- streams
# ---------------------------------------------------------------------------------------------------------


def drive(feed: Callable[[str], object], chunks: Sequence[str]) -> None:
    """The loop of a server: this, and nothing else, is timed."""
    for chunk in chunks:
        feed(chunk)


def fresh_chunks(text: str, cut: Cut) -> list[str]:
    """The text cut into chunks that no other pass has seen. One that is not cut is copied."""
    if len(chunks := cut(text)) == 1:
        return ["".join([text[:1], text[1:]])]
    return chunks


def stream_side(peer: type[Peer], shared: Any, text: str, cut: Cut) -> Side:
    """One answer through one stream."""

    def prepare() -> Go:
        chunks, stream = fresh_chunks(text, cut), peer(shared)
        return partial(drive, stream.feed, chunks)

    return prepare


def stream_sides(
    peers: Mapping[str, type[Peer]], stops: Sequence[str], text: str, cut: Cut
) -> dict[str, Side]:
    """Each peer that takes so many stops, with what it makes of them.

    Ours, and the floor, have to be right.
    """
    sides = {}
    for name, peer in peers.items():
        if len(stops) <= peer.most_stops:
            shared = peer.build(stops)
            sides[name] = stream_side(peer, shared, text, cut)
            if name in (OURS, "floor"):
                verify(peer, stops, text, cut)
    return sides


def answer(peer: type[Peer], stops: Sequence[str], chunks: Sequence[str]) -> tuple[str, str | None]:
    """All that comes out, and the stop."""
    stream, out = peer(peer.build(stops)), []
    for chunk in chunks:
        emit, found = stream.feed(chunk)
        out.append(emit)
        if found is not None:
            return "".join(out), getattr(found, "stop", found)
    return "".join([*out, stream.flush()]), None


def verify(peer: type[Peer], stops: Sequence[str], text: str, cut: Cut) -> None:
    """What is about to be timed gives the right answer: all of the text, and behind it a stop that
    ends there.
    """
    assert answer(peer, stops, fresh_chunks(text, cut)) == (text, None), (
        f"{peer.name} changed the text"
    )
    longer = [*stops, END]
    got = answer(peer, longer, fresh_chunks(text + END + BEHIND, cut))
    assert got == (text, END), f"{peer.name} missed the end of the text"
