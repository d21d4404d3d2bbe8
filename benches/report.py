"""`make bench-report`: the newest results as tables and a chart in docs/performance.md.

    python -m benches.report [a file of benches/results]

What stands between `<!-- results: NAME -->` and `<!-- end -->` is replaced, the text around it is
left alone. The chart is docs/assets/performance.svg."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benches import budget, chart
from benches.run import RESULTS, ROOT

PAGE = ROOT / "docs" / "performance.md"
CHART = ROOT / "docs" / "assets" / "performance.svg"
SECTION = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
Result = dict[str, Any]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def ns(value: float | None) -> str:
    """Three digits, with the unit that suits."""
    if value is None:
        return "-"
    for unit, scale in (("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9)):
        if value < 1000 * scale or unit == "s":
            return f"{value / scale:.3g} {unit}"
    raise AssertionError


def many(count: int) -> str:
    return f"{count:,} {'stop' if count == 1 else 'stops'}"


def side(workload: dict[str, Any] | None, name: str) -> str:
    """Minimum, and median in brackets."""
    found = (workload or {}).get("sides", {}).get(name)
    return f"{ns(found['min'])} ({ns(found['median'])})" if found else "-"


def names(workloads: Iterable[dict[str, Any]]) -> list[str]:
    """All sides of several workloads, in the order in which they first occur; holdback and the
    floor first.
    """
    seen = dict.fromkeys(name for workload in workloads for name in workload.get("sides", {}))
    return [
        *(name for name in ("holdback", "floor") if name in seen),
        *(name for name in seen if name not in ("holdback", "floor")),
    ]


def compared(result: Result, columns: dict[str, str]) -> str:
    """One row for each side, one column for each workload: {heading: workload}."""
    found = {
        head: result["suites"][name] for head, name in columns.items() if name in result["suites"]
    }
    rows = [
        [name, *(side(workload, name) for workload in found.values())]
        for name in names(found.values())
    ]
    return table(["", *found], rows)


WAYS = {
    "holdback": "holdback",
    "walk": "walk, kept",
    "walk_detached": "walk, released",
    "scan": "scan, kept",
    "scan_detached": "scan, released",
}

# --- sections
# --------------------------------------------------------------------------------------------------------


def about(result: Result) -> str:
    versions = ", ".join(
        f"{name} {version}" for name, version in result["versions"].items() if version
    )
    commit, _, dirty = result["commit"].partition("-")
    return (
        f"Measured {result['date'][:10]} on {result['cpu']}, {result['cores']} cores, {result['system']}, at commit "
        f"`{commit[:12]}`{' with changes' if dirty else ''}. Load of the machine before and after: {result['load'][0]} and "
        f"{result['load_after'][0]}.\n"
        f"Versions: {versions}.\n"
    )


def budget_table(result: Result) -> str:
    rows = [
        [row.figure, row.required, row.measured, row.verdict]
        for row in budget.rows(result["suites"])
    ]
    return table(["figure", "required", "measured", ""], rows).replace("| ---: |\n", "| --- |\n", 1)


def steps(result: Result) -> str:
    names_of_steps = {
        "loop": "the loop, without a call",
        "nothing": "a method that does nothing",
        "same": "and gives the same `str` back",
        "pair": "in a new tuple, with `None`",
        "walk": "after a walk, one load for each character",
        "feed": "**the floor**: the whole job in C",
        "holdback": "**holdback**",
        "walk_detached": "the walk with the GIL released and taken back",
    }
    found = [result["suites"].get(f"steps of a call, {size} characters") for size in (4, 16)]
    rows = [[text, *(side(each, name) for each in found)] for name, text in names_of_steps.items()]
    return table(["what is done", "4 characters", "16 characters"], rows)


def tokens(result: Result) -> str:
    return compared(
        result, {many(count): f"token stream, {count} stops" for count in (1, 4, 16, 256)}
    )


def other_streams(result: Result) -> str:
    columns = {
        "CJK": "CJK stream, 4 stops",
        "CJK, wide stops": "CJK stream, 4 stops, wide ones among them",
        "emoji": "emoji stream, 4 stops",
        "code, 4 stops": "code stream, 4 stops",
        "code, 256 stops": "code stream, 256 stops",
    }
    return compared(result, columns)


def documents(result: Result) -> str:
    """In MB/s, the best and the median round."""
    columns = {
        count: result["suites"].get(f"long documents, {count:,} stops", {})
        for count in (1, 4, 16, 256, 10_000)
    }

    def speed(workload: dict[str, Any], name: str) -> str:
        found = workload.get("sides", {}).get(name)
        return f"{1e3 / found['min']:,.0f} ({1e3 / found['median']:,.0f})" if found else "-"

    rows = [
        [name, *(speed(workload, name) for workload in columns.values())]
        for name in names(columns.values())
    ]
    return table(["MB/s", *map(many, columns)], rows)


def builds(result: Result) -> str:
    columns = {
        f"new set, {many(count)}": f"new set, {count:,} stops" for count in (1, 4, 8, 100_000)
    }
    return compared(result, columns)


def adversaries(result: Result) -> str:
    workloads = {
        name: told for name, told in result["suites"].items() if name.startswith("adversary")
    }
    return table(
        ["text and stops", "holdback", "floor", "pyperscan", "pyahocorasick", "textbook buffer"],
        [
            [
                name.removeprefix("adversary "),
                *(
                    side(told, each)
                    for each in (
                        "holdback",
                        "floor",
                        "pyperscan",
                        "pyahocorasick",
                        "textbook buffer",
                    )
                ),
            ]
            for name, told in workloads.items()
        ],
    )


def memory(result: Result) -> str:
    streams = result["suites"].get("memory of a stream, 4 stops", {}).get("memory", {})
    sets = result["suites"].get("memory of a set, 100,000 stops", {}).get("memory", {})
    rows = []
    for name in {**streams, **sets}:
        stream, held = streams.get(name), sets.get(name)
        rows.append(
            [
                name,
                f"{stream['fed']:,.0f} B" if stream else "-",
                f"{held['bytes'] / 2**20:,.1f} MiB" if held else "-",
            ]
        )
    return table(["", "one stream", "100,000 stops"], rows)


def gil(result: Result) -> str:
    """By size; the floor's two walks, each keeping and releasing, and holdback."""
    figures = result["suites"].get("GIL kept or released, by size", {}).get("figures", [])
    found: dict[int, dict[str, dict[str, float]]] = {}
    for at in figures:
        found.setdefault(at["size"], {})[at["way"]] = at
    shown: list[tuple[str, Callable[[float], str]]] = [("alone", ns), ("mean", ns), ("p99", ns)]
    shown += [("neighbour", "{:.0%}".format), ("two_threads", "{:.2f}".format)]
    rows = []
    for size, ways in found.items():
        for key, show in shown:
            head = f"**{size:,}** {key}" if key == "alone" else key.replace("_", " ")
            rows.append([head, *(show(ways[way][key]) if way in ways else "-" for way in WAYS)])
    return table(["characters", *WAYS.values()], rows)


def group_and_number(entry: tuple[str, Any]) -> tuple[str, int]:
    group, _, number = entry[0].rpartition("/")
    return group, int(number)


def core(result: Result) -> str:
    rows = []
    for name, at in sorted(result["core"].items(), key=group_and_number):
        speed = f"{at['bytes'] / at['ns'] * 1e3:,.0f} MB/s" if "bytes" in at else ""
        rows.append([name, ns(at["ns"]), speed])
    return table(["the core without Python", "a pass", ""], rows)


def answers(result: Result) -> str:
    told = result["suites"].get("answers on plain cases", {})
    rows = [[name, f"{right} of {told['cases']}"] for name, right in told.get("right", {}).items()]
    return table(["", "right"], rows)


SECTIONS: dict[str, Callable[[Result], str]] = {
    "about": about,
    "budget": budget_table,
    "steps": steps,
    "tokens": tokens,
    "streams": other_streams,
    "documents": documents,
    "builds": builds,
    "adversaries": adversaries,
    "memory": memory,
    "gil": gil,
    "core": core,
    "answers": answers,
}


def filled(page: str, result: Result) -> str:
    """The page with every section made anew."""
    return SECTION.sub(
        lambda found: found[1] + "\n" + SECTIONS[found[2]](result) + "\n" + found[3], page
    )


def newest() -> Iterator[Path]:
    yield from sorted(RESULTS.glob("*.json"), reverse=True)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else next(newest(), None)
    if path is None:
        raise SystemExit("no results yet: run `make bench`")
    result = json.loads(path.read_text("utf-8"))
    PAGE.write_text(filled(PAGE.read_text("utf-8"), result), "utf-8")
    CHART.write_text(chart.draw(result["suites"]), "utf-8")
    print(f"{PAGE.relative_to(ROOT)} and {CHART.relative_to(ROOT)} from {path.name}")


if __name__ == "__main__":
    main()
