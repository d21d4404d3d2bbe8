"""The budget: what each figure has to reach, and where in a result it stands. docs/performance.md
shows the rows.

A ratio is the median over the rounds of holdback's time by the other side's in the same round.
Where a pass takes longer than `LONG`, the caches are never undisturbed on a busy machine, and the
ratio of the two minima counts instead. The other of the two stands beside it: where they differ
much, the figure is worth as little as that says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Suites = dict[str, dict[str, Any]]
LONG = 1e6  # ns


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    figure: str
    required: str
    measured: str
    verdict: str


@dataclass(frozen=True)
class Entry:
    """`read` gives the figure and how to show it; at most (or at least) `limit` is required."""

    figure: str
    required: str
    limit: float
    read: Callable[[Suites], tuple[float, str]]
    at_least: bool = False


def ratio(
    workload: str, other: str, *, inverse: bool = False
) -> Callable[[Suites], tuple[float, str]]:
    """Holdback's time by the other's; the other's by holdback's if inverse."""

    def read(suites: Suites) -> tuple[float, str]:
        told = suites[workload]
        median = told["ratios"][other]
        minima = told["sides"]["holdback"]["min"] / told["sides"][other]["min"]
        if inverse:
            median, minima = 1 / median, 1 / minima
        if told["sides"]["holdback"]["min"] * told["per"] > LONG:
            return minima, f"{minima:.2f} x (median: {median:.2f})"
        return median, f"{median:.2f} x (minima: {minima:.2f})"

    return read


def worst(prefix: str, other: str) -> Callable[[Suites], tuple[float, str]]:
    """The worst of several workloads."""

    def read(suites: Suites) -> tuple[float, str]:
        found = [
            (ratio(name, other)(suites), name.rpartition(" ")[2])
            for name in suites
            if name.startswith(prefix)
        ]
        (value, shown), name = max(found)
        return value, f"{shown}, {name}"

    return read


def time(
    workload: str, scale: float, unit: str, name: str = "holdback"
) -> Callable[[Suites], tuple[float, str]]:
    def read(suites: Suites) -> tuple[float, str]:
        at = suites[workload]["sides"][name]
        return at[
            "min"
        ] / scale, f"{at['min'] / scale:.3g} {unit} (median {at['median'] / scale:.3g})"

    return read


def set_memory(suites: Suites) -> tuple[float, str]:
    told = suites["memory of a set, 100,000 stops"]
    known, resident = told["nbytes"] / 2**20, told["memory"]["holdback"]["bytes"] / 2**20
    return max(known, resident), f"{known:.1f} MiB, resident {resident:.1f} MiB"


def stream_memory(suites: Suites) -> tuple[float, str]:
    """Resident memory less 3 %: the allocator's own, a head for each pool of objects."""
    at = suites["memory of a stream, 4 stops"]["memory"]["holdback"]
    return max(
        at["fed"] * 0.97, at["getsizeof"]
    ), f"{at['getsizeof']:.0f} B, resident {at['fed']:.0f} B"


def p99(suites: Suites) -> tuple[float, str]:
    at = suites["tokens beside a busy thread"]["percentiles"]
    return at["holdback"][
        "p99"
    ] / 1e3, f"{at['holdback']['p99'] / 1e3:.2f} us (floor {at['floor']['p99'] / 1e3:.2f})"


def gain(suites: Suites) -> tuple[float, str]:
    """The best turn of each size, and beside it what two hashing threads got of the machine."""
    found = {
        name.rpartition("of ")[2]: told
        for name, told in suites.items()
        if name.startswith("two threads")
    }
    shown = [
        f"{max(told['gains']):.2f} x at {at} (hashing: {max(told['control']):.2f})"
        for at, told in found.items()
    ]
    return min(max(told["gains"]) for told in found.values()), ", ".join(shown)


TOKEN = "chunks of 4 characters"
ENTRIES = [
    Entry(
        "one chunk of 4 ASCII characters, 4 stops, in the loop",
        "<= 1.15 x floor",
        1.15,
        ratio(f"{TOKEN}, 4 stops", "floor"),
    ),
    Entry(
        "the same with 256 stops",
        "<= 1.3 x 4 stops",
        1.3,
        ratio(f"{TOKEN}, 256 stops beside 4", "holdback, 4 stops"),
    ),
    Entry(
        "the same with 10,000 stops",
        "<= 1.3 x 4 stops",
        1.3,
        ratio(f"{TOKEN}, 10,000 stops beside 4", "holdback, 4 stops"),
    ),
    Entry(
        "one chunk of 4 CJK characters",
        "<= 1.5 x floor",
        1.5,
        ratio("CJK stream, 4 stops", "floor"),
    ),
    Entry(
        "one chunk of 4 characters of emoji",
        "<= 1.5 x floor",
        1.5,
        ratio("emoji stream, 4 stops", "floor"),
    ),
    Entry(
        "`feed_batch`, 256 streams, one chunk",
        "<= 0.6 x floor",
        0.6,
        ratio("batch step, 256 streams", "floor"),
    ),
    Entry("new set of 4 stops", "<= 2.5 us", 2.5, time("new set, 4 stops", 1e3, "us")),
    Entry(
        "`compile` of a known list",
        "<= 0.3 us",
        0.3,
        time("compile of a known list, 4 stops", 1e3, "us"),
    ),
    Entry(
        "new set of 100,000 stops, 2 MB",
        "<= 0.15 s",
        0.15,
        time("new set, 100,000 stops", 1e9, "s"),
    ),
    Entry("memory of that set", "<= 16 MiB", 16, set_memory),
    *(
        Entry(
            f"chunks of 1 MB, {count} {'stop' if count == 1 else 'stops'}",
            f">= {limit} x pyperscan",
            limit,
            ratio(f"long documents, {count} stops", "pyperscan", inverse=True),
            True,
        )
        for count, limit in ((1, 1.3), (4, 1.3), (16, 1.3), (256, 1.0))
    ),
    Entry(
        "worst adversary, a chunk of 4", "<= 2 x floor", 2, worst("adversary in tokens", "floor")
    ),
    Entry(
        "worst adversary, a byte of 1 MB",
        "<= 2 x floor",
        2,
        worst("adversary in one chunk", "floor"),
    ),
    Entry(
        "1 MB beside the same in 64 pieces, worst adversary",
        "linear: about 1",
        1.25,
        worst("adversary in one chunk", "holdback, 64 pieces"),
    ),
    Entry("memory of a stream", "<= 128 B", 128, stream_memory),
    Entry("99th percentile of a token beside a busy thread", "<= 2 us", 2, p99),
    Entry("two threads, chunks of 64 KiB and 1 MiB", ">= 1.8 x one thread", 1.8, gain, True),
    Entry(
        "a token behind 10 million characters",
        "flat: about 1 x",
        1.05,
        ratio("after 10,000,000 characters beside the first", "first tokens"),
    ),
]


def rows(suites: Suites) -> Iterator[Row]:
    """The table; a figure that a partial run did not measure says so."""
    for entry in ENTRIES:
        try:
            value, shown = entry.read(suites)
        except (KeyError, ValueError):
            yield Row(entry.figure, entry.required, "not measured", "")
            continue
        met = value >= entry.limit if entry.at_least else value <= entry.limit
        yield Row(entry.figure, entry.required, shown, "met" if met else "**missed**")
