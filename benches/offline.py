"""Offline work: a column of finished answers, cut by what people use for it. Run it by hand:
`python -m benches.offline`.

All sides take turns in one process and are timed by the processor time of all its threads, so that
other work on the machine, and the number of its processors, do not matter; a result is the median
over the rounds, a ratio is the median of the ratios within a round. Every side's texts are compared
with ours first. What the others cannot do, and we time all the same, is to say which stop it was.

* `str.find`: the loop that everybody writes: the first occurrence of each stop, the smallest of
  them.
* `str.split`: what the lm-evaluation-harness does, one stop after the other.
* `re`: one compiled alternation.
* `polars`, `pyarrow`: their regular expressions, `replace` of the first stop and all behind it.
  Neither can cut a column at positions that differ from row to row by finding them first
  (`find_substring`, `str.find` take one stop).

They cut where the leftmost stop begins, holdback where the first one ends; with the stops of this
bench that is the same."""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benches import workloads
from holdback import StopSet

STOPPED = 0.5  # of the answers; the rest ends by itself


def answers(count: int, length: int, stops: list[str], chance: random.Random) -> list[str]:
    """Answers of prose; half of them have a stop at two thirds to all of their length, and go on
    behind it.
    """
    text = workloads.library_text(1 << 20)
    made = []
    for _ in range(count):
        size = int(length * chance.uniform(0.5, 1.5))
        at = chance.randrange(len(text) - size)
        answer = text[at : at + size]
        if chance.random() < STOPPED:
            cut = int(size * chance.uniform(0.66, 1.0))
            answer = answer[:cut] + chance.choice(stops) + answer[cut:]
        made.append(answer)
    return made


def by_find(texts: list[str], stops: list[str]) -> list[str]:
    kept = []
    for text in texts:
        end = len(text)
        for stop in stops:
            at = text.find(stop, 0, end + len(stop) - 1)
            if at >= 0:
                end = min(end, at)
        kept.append(text[:end])
    return kept


def by_split(texts: list[str], stops: list[str]) -> list[str]:
    kept = []
    for text in texts:
        for stop in stops:
            text = text.split(stop)[0]
        kept.append(text)
    return kept


def sides(texts: list[str], stops: list[str]) -> dict[str, Callable[[], Any]]:
    """What is compared, each with the column in its own form; the conversion from lists is not
    timed.
    """
    compiled = StopSet(stops)
    alternation = re.compile("|".join(map(re.escape, stops)))

    def by_re() -> list[str]:
        return [
            text[: found.start()] if (found := alternation.search(text)) else text for text in texts
        ]

    made: dict[str, Callable[[], Any]] = {
        "holdback": lambda: compiled.truncate_many(texts)[0],
        "str.find": lambda: by_find(texts, stops),
        "str.split": lambda: by_split(texts, stops),
        "re": by_re,
    }
    behind = f"(?s)(?:{'|'.join(map(re.escape, stops))}).*"
    try:
        import pyarrow as pa
        import pyarrow.compute as pc

        from holdback.integrations.pyarrow import truncate_column

        column = pa.array(texts)
        made["holdback, Arrow column"] = lambda: truncate_column(column, compiled)[0]
        made["pyarrow"] = lambda: pc.replace_substring_regex(column, behind, "", max_replacements=1)
    except ImportError:
        print("pyarrow is not installed: left out", file=sys.stderr)
    try:
        import polars as pl

        series = pl.Series(texts)
        made["polars"] = lambda: series.str.replace(behind, "")
    except ImportError:
        print("polars is not installed: left out", file=sys.stderr)
    return made


def as_list(column: Any) -> list[str]:
    for name in ("to_pylist", "to_list"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def measure(texts: list[str], stops: list[str], rounds: int) -> dict[str, dict[str, float]]:
    """For each side: MB of text a second of processor time, and how often its time ours fits into
    it.
    """
    compared = sides(texts, stops)
    expected = compared["holdback"]()
    for name, side in compared.items():
        assert as_list(side()) == expected, f"{name} gives other texts"
    size = sum(len(text.encode()) for text in texts)
    taken: dict[str, list[float]] = {name: [] for name in compared}
    for at in range(rounds):
        names = list(compared)
        for name in names[at % len(names) :] + names[: at % len(names)]:
            began = time.process_time()
            compared[name]()
            taken[name].append(time.process_time() - began)
    return {
        name: {
            "MB/s": size / statistics.median(times) / 1e6,
            "times ours": statistics.median(
                other / ours for other, ours in zip(times, taken["holdback"], strict=True)
            ),
        }
        for name, times in taken.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument(
        "--length", type=int, default=1_500, help="characters of an answer, on average"
    )
    parser.add_argument("--stops", type=int, nargs="*", default=[1, 6, 32, 256])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    results = {}
    for count in args.stops:
        stops = list(map(str, workloads.stops(count)))
        texts = answers(args.rows, args.length, stops, random.Random(count))
        results[count] = measure(texts, stops, args.rounds)
        if not args.json:
            print(f"\n{count} stops, {args.rows:,} answers of about {args.length:,} characters")
            for name, result in results[count].items():
                print(f"  {name:24}{result['MB/s']:10,.0f} MB/s{result['times ours']:10.2f}x")
    if args.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
