"""`tests/cases/filters.jsonl` against the filter: as written, and cut in every other way.

The compiled package joins when it has a `Filter`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from corpus import CASES, decode

from holdback import reference

ENTRIES = [
    json.loads(line) for line in (CASES / "filters.jsonl").read_text(encoding="utf-8").splitlines()
]
GOOD = [entry for entry in ENTRIES if "error" not in entry["expect"]]
BAD = [entry for entry in ENTRIES if "error" in entry["expect"]]


def named(entries: list[dict[str, Any]]) -> Any:
    return pytest.mark.parametrize("entry", entries, ids=[entry["name"] for entry in entries])


def filter_of(entry: dict[str, Any]) -> reference.Filter:
    rules = []
    for rule in decode(entry["rules"]):
        what = rule.pop("what")
        if isinstance(what, dict):
            what = (reference.Between if "open" in what else reference.Pattern)(**what)
        rules.append(reference.Rule(what, **rule))
    return reference.Filter(rules)


def stream_of(entry: dict[str, Any]) -> reference.FilterStream:
    options = dict(entry["options"])
    raw = options.pop("byte_stream", False)
    made = filter_of(entry)
    return made.byte_stream(**options) if raw else made.stream(**options)


def edits_of(edits: Any) -> list[list[int]]:
    return [[edit.rule, edit.start, edit.end, edit.out_start, edit.out_end] for edit in edits]


@named(GOOD)
def test_as_written(entry: dict[str, Any]) -> None:
    stream, expect = stream_of(entry), decode(entry["expect"])
    per_feed, held, edits = [], [], []
    for chunk in decode(entry["chunks"]):
        out, closed = stream.feed(chunk)
        per_feed.append(out)
        held.append(stream.held)
        edits += closed
    out, closed = stream.flush()
    per_feed.append(out)
    got = {
        "emitted": out[:0].join(per_feed),
        "per_feed": per_feed,
        "held": held,
        "edits": edits_of([*edits, *closed]),
    }
    assert {key: got[key] for key in expect} == expect


def other_cuts(entry: dict[str, Any]) -> Iterator[list[Any]]:
    chunks = decode(entry["chunks"])
    whole = chunks[0][:0].join(chunks)
    yield [whole[at : at + 1] for at in range(len(whole))]
    for at in range(len(whole) + 1 if len(whole) < 64 else 0):
        yield [whole[:at], whole[at:]]
    if isinstance(whole, str):
        yield [bytes([byte]) for byte in whole.encode()]


@named(GOOD)
def test_cut_in_every_other_way(entry: dict[str, Any]) -> None:
    expect = decode(entry["expect"])
    for chunks in other_cuts(entry):
        stream = stream_of(entry)
        out, edits = expect["emitted"][:0], []
        for chunk in chunks:
            more, closed = stream.feed(chunk)
            out += more
            edits += closed
        more, closed = stream.flush()
        assert out + more == expect["emitted"]
        assert edits_of([*edits, *closed]) == expect["edits"]


@named(BAD)
def test_errors(entry: dict[str, Any]) -> None:
    at = "filter"
    with pytest.raises((TypeError, ValueError)) as caught:  # noqa: PT012 - which call raises is asked
        filter_of(entry)
        at = "stream"
        stream_of(entry)
    expect = entry["expect"]
    assert (at, type(caught.value).__name__) == (expect["at"], expect["error"])
    for said in expect["says"]:
        assert said in str(caught.value)
