"""The experiment that sets DETACH_UNITS (src/python/stream.rs): from which length of a chunk on the
GIL is released.

    python -m benches.gil [seconds for each figure, default 0.3]

Keeping the GIL makes other threads wait for the end of the walk. Releasing it costs 30 to 40 ns,
and beside a thread that never rests whoever releases it waits for the switch interval, 5 ms, until
it is his again. So a short chunk keeps it and a long one does not; where the line is depends on how
long the walk takes. The floor knows both ways for two walks between which holdback's lies: one load
for each character (`walk`), and memchr (`scan`). Holdback itself follows its constant.

For each size: ns of a call alone; mean and 99th percentile of a call beside a busy thread; how much
of its time that thread gets; and how many times the text of one thread two threads read, each with
its own stream."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial

from benches import floor, workloads
from benches.measure import clock
from benches.peers.ours import Holdback

SIZES = [8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20]
Feed = Callable[[str], object]
Make = Callable[[], Feed]


@dataclass(frozen=True)
class Figures:
    """One way, one size."""

    way: str
    size: int  # characters
    alone: float  # ns a call
    mean: float  # ns a call, beside a busy thread
    p99: float
    neighbour: float  # share of its undisturbed work that the busy thread does
    two_threads: float  # text read by two threads / by one


class Busy:
    """A thread of Python code that never rests; counts its rounds."""

    def __init__(self) -> None:
        self.rounds, self.over = 0, False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        while not self.over:
            total = 0
            for number in range(50):
                total += number
            self.rounds += 1

    def __enter__(self) -> Busy:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True
        self.thread.join()

    def pace(self, seconds: float) -> float:
        """Rounds a second, from now on."""
        begin, before = clock(), self.rounds
        time.sleep(seconds)
        return (self.rounds - before) / (clock() - begin)


def latencies(feed: Feed, chunk: str, seconds: float) -> list[int]:
    """ns of each call, sorted, the clock's own 40 ns included.

    The chunk has no stop and leaves nothing held.
    """
    found: list[int] = []
    note = found.append
    begin = clock()
    end = begin + int(seconds * 1e9)
    while begin < end:
        for _ in range(16):
            feed(chunk)
            now = clock()
            note(now - begin)
            begin = now
    return sorted(found)


def read(make: Make, chunk: str, threads: int, seconds: float) -> float:
    """Chunks a second that so many threads read together."""
    counts = [0] * threads
    ready = threading.Barrier(threads + 1)
    over = False

    def work(at: int) -> None:
        feed, calls = make(), 0
        ready.wait()
        while not over:
            for _ in range(8):
                feed(chunk)
            calls += 8
        counts[at] = calls

    workers = [threading.Thread(target=work, args=(at,)) for at in range(threads)]
    for worker in workers:
        worker.start()
    ready.wait()
    begin = clock()
    time.sleep(seconds)
    over = True
    for worker in workers:
        worker.join()
    return sum(counts) / (clock() - begin)


def ways() -> dict[str, Make]:
    """What feeds: the floor, keeping and releasing, and holdback. Without a compiler, holdback
    only.
    """
    stops = workloads.stops(4)
    known = Holdback.build(stops)
    found: dict[str, Make] = {"holdback": lambda: known.stream().feed}
    try:
        module = floor.load()
    except floor.NoFloor:
        return found
    tables = module.Tables(stops)
    for name in ("walk", "walk_detached", "scan", "scan_detached"):
        found[name] = partial(method_of_new, module.Floor, tables, name)
    return found


def method_of_new(make: Callable[[object], object], tables: object, name: str) -> Feed:
    method: Feed = getattr(make(tables), name)
    return method


def experiment(sizes: list[int], seconds: float) -> Iterator[Figures]:
    """Size by size; the ways take turns within a size."""
    text = workloads.library_text(max(sizes))
    with Busy() as busy:
        undisturbed = busy.pace(max(seconds, 0.01))
    for size in sizes:
        chunk = text[: size - 1] + "."  # no stop begins with it, so nothing stays held
        for way, make in ways().items():
            alone = latencies(make(), chunk, seconds / 3)
            with Busy() as busy:
                begin, before = clock(), busy.rounds
                beside = latencies(make(), chunk, seconds)
                pace = (busy.rounds - before) / (clock() - begin)
            one, two = (read(make, chunk, threads, seconds / 2) for threads in (1, 2))
            yield Figures(
                way,
                size,
                alone=alone[len(alone) // 2],
                mean=sum(beside) / len(beside),
                p99=beside[len(beside) * 99 // 100],
                neighbour=pace / undisturbed if undisturbed else 0.0,
                two_threads=two / one if one else 0.0,
            )


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.3
    print(
        f"{'characters':>10} {'way':14} {'alone ns':>11} {'mean ns':>11} {'p99 ns':>11} {'neighbour':>9} {'2 threads':>9}"
    )
    for figures in experiment(SIZES, seconds):
        at = asdict(figures)
        print(
            f"{figures.size:>10,} {figures.way:14} {at['alone']:>11,.0f} {at['mean']:>11,.0f} {at['p99']:>11,.0f} "
            f"{at['neighbour']:>9.0%} {at['two_threads']:>9.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
