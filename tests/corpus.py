"""Reads `tests/cases/*.jsonl` (their format: `tests/cases/README.md`) and runs a case against
either implementation.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

CASES = Path(__file__).parent / "cases"
LITERALS = ["bytes", "peers", "probes", "reports", "scopes"]  # files, in the order they are read
PATTERNS = ["patterns"]
MATCH = ("stop", "index", "start", "end", "start_chunk", "end_chunk", "rest")


@dataclasses.dataclass(frozen=True)
class Call:
    """A step of a case that is not a chunk: `arm` or `disarm`."""

    name: str


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    stops: list[Any]
    chunks: list[str | bytes | Call]
    options: dict[str, Any]
    expect: dict[str, Any]

    @property
    def raw(self) -> bool:
        return bool(self.options.get("byte_stream"))


def load(files: list[str]) -> list[Case]:
    """The cases of these files: `LITERALS`, `PATTERNS`."""
    cases = []
    for name in files:
        path = CASES / f"{name}.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            stops, chunks, options, expect = (
                decode(entry[key]) for key in ("stops", "chunks", "options", "expect")
            )
            cases.append(Case(entry["name"], stops, chunks, options, expect))
    return cases


def decode(value: Any) -> Any:
    """Turn what JSON cannot say back into Python values."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"hex"}:
        return bytes.fromhex(value["hex"])
    if value.keys() == {"utf16"}:
        return "".join(
            map(chr, value["utf16"])
        )  # unit by unit: two halves of a pair stay two characters
    if value.keys() == {"call"}:
        return Call(value["call"])
    return {key: decode(item) for key, item in value.items()}


def made(impl: ModuleType, stop: Any) -> Any:
    """A stop of a case: a literal as it is, an object as a `Pattern`."""
    return impl.Pattern(**stop) if isinstance(stop, dict) else stop


def stop_set(impl: ModuleType, case: Case) -> Any:
    return impl.StopSet(
        [made(impl, stop) for stop in case.stops], tie=case.options.get("tie", "longest")
    )


def open_stream(impl: ModuleType, case: Case) -> Any:
    options = dict(case.options)
    raw = options.pop("byte_stream", False)
    options.pop("tie", None)
    stops = stop_set(impl, case)
    if isinstance(options.get("include_stop"), list):
        options["include_stop"] = [made(impl, stop) for stop in options["include_stop"]]
    if "ignore_inside" in options:
        options["ignore_inside"] = [tuple(pair) for pair in options["ignore_inside"]]
    return stops.byte_stream(**options) if raw else stops.stream(**options)


def run(impl: ModuleType, case: Case, steps: list[str | bytes | Call]) -> tuple[Any, Any]:
    """Run other steps than those of the case through its stream: everything emitted, and the match."""
    stream = open_stream(impl, case)
    emitted = b"" if case.raw else ""
    for step in steps:
        if isinstance(step, Call):
            getattr(stream, step.name)()
        else:
            emitted += stream.feed(step)[0]
    return emitted + stream.flush(), stream.match


def runs(steps: list[Any]) -> Iterator[Any]:
    """The calls, and between them the chunks of one kind joined: only a border of kinds means
    something (section 3).
    """
    for kind, group in itertools.groupby(steps, key=type):
        if kind is Call:
            yield from group
        else:
            yield kind().join(group)


def whole(case: Case) -> list[Any]:
    return list(runs(case.chunks))


def single(case: Case) -> list[Any]:
    """One character or byte for each chunk."""
    steps: list[Any] = []
    for step in runs(case.chunks):
        if isinstance(step, Call) or not step:
            steps.append(step)
        else:
            steps += [step[at : at + 1] for at in range(len(step))]
    return steps


def two_way_cuts(case: Case) -> Iterator[list[Any]]:
    """Every way to cut one of the joined chunks in two, also into nothing and all of it."""
    steps = whole(case)
    for number, step in enumerate(steps):
        if not isinstance(step, Call):
            for at in range(len(step) + 1):
                yield [*steps[:number], step[:at], step[at:], *steps[number + 1 :]]


def as_bytes(case: Case) -> list[Any] | None:
    """The same text as single bytes of UTF-8, if it is text."""
    steps: list[Any] = []
    for step in runs(case.chunks):
        if isinstance(step, Call):
            steps.append(step)
            continue
        try:
            data = step if isinstance(step, bytes) else step.encode()
            data.decode()
        except UnicodeError:
            return None
        steps += [data[at : at + 1] for at in range(len(data))]
    return steps
