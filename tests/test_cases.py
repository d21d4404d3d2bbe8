"""The corpus: every case as it is written, and cut in every other way."""

from __future__ import annotations

import collections
from types import ModuleType
from typing import Any

import pytest
from corpus import (
    LITERALS,
    MATCH,
    PATTERNS,
    Call,
    Case,
    as_bytes,
    load,
    open_stream,
    run,
    single,
    stop_set,
    two_way_cuts,
    whole,
)

CASES = load(LITERALS + PATTERNS)
GOOD = [case for case in CASES if "error" not in case.expect]
BAD = [case for case in CASES if "error" in case.expect]
OPTIONS = {
    "tie", "include_stop", "errors", "byte_stream", "min_chars", "ignore_inside", "start_inside", "atomic",
}  # fmt: skip
EXPECT = {
    *MATCH,
    "cut",
    "bounds",
    "unreachable",
    "emitted",
    "per_feed",
    "held",
    "region",
    "armed",
    "error",
    "at",
    "says",
}


def ids(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


def test_names_are_unique_and_fields_are_known() -> None:
    names = collections.Counter(case.name for case in CASES)
    assert [name for name, count in names.items() if count > 1] == []
    for case in CASES:
        assert set(case.options) <= OPTIONS, case.name
        assert set(case.expect) <= EXPECT, case.name


def known(impl: ModuleType, case: Case) -> None:
    if not hasattr(impl, "Pattern") and any(isinstance(stop, dict) for stop in case.stops):
        pytest.skip("holdback.Pattern does not exist yet")


@ids(GOOD)
def test_as_written(impl: ModuleType, case: Case) -> None:
    known(impl, case)
    stream = open_stream(impl, case)
    per_feed, seen = [], collections.defaultdict(list)
    for step in case.chunks:
        if isinstance(step, Call):
            getattr(stream, step.name)()
            continue
        emitted, match = stream.feed(step)
        assert match == stream.match
        per_feed.append(emitted)
        for name in {"held", "region", "armed"} & case.expect.keys():
            value = getattr(stream, name)
            seen[name].append(list(value) if isinstance(value, tuple) else value)
    per_feed.append(stream.flush())
    got = dict(seen, per_feed=per_feed, emitted=per_feed[0][:0].join(per_feed))
    got |= {name: getattr(stream.match, name, None) for name in MATCH}
    for name in {"cut"} & case.expect.keys():
        got[name] = getattr(stream.match, name, None)
    for name in {"bounds", "unreachable"} & case.expect.keys():
        got[name] = list(getattr(stream.stops, name))
    assert {key: got[key] for key in case.expect} == case.expect
    assert type(got["rest"]) is type(case.expect.get("rest", got["rest"]))
    assert (got["stop"] is None) == (stream.match is None)


@ids(GOOD)
def test_cut_in_every_other_way(impl: ModuleType, case: Case) -> None:
    known(impl, case)
    ways = [whole(case), single(case)]
    if not case.raw:
        ways += filter(None, [as_bytes(case)])
    if sum(len(step) for step in case.chunks if not isinstance(step, Call)) <= 64:
        ways += two_way_cuts(case)
    expected = tuple(case.expect[name] for name in ("emitted", "stop", "index", "start", "end"))
    for steps in ways:
        emitted, match = run(impl, case, steps)
        found = tuple(getattr(match, name, None) for name in ("stop", "index", "start", "end"))
        assert (emitted, *found) == expected, steps


@ids(BAD)
def test_errors(impl: ModuleType, case: Case) -> None:
    """The call that the case names raises, the message says what the contract promises, and nothing
    is lost.
    """
    known(impl, case)
    at, error, stream, before = first_error(impl, case)
    assert (at, type(error).__name__) == (case.expect["at"], case.expect["error"])
    for said in case.expect["says"]:
        assert said in str(error)
    if stream is not None:
        assert (stream.held, stream.match) == before


def first_error(impl: ModuleType, case: Case) -> tuple[str, Exception | None, Any, Any]:
    """Which call raises, what it raises, and the stream with what it showed before that call."""
    at, stream, before = "stops", None, None
    try:
        stop_set(impl, case)
        at = "stream"
        stream = open_stream(impl, case)
        at = "feed"
        for chunk in case.chunks:
            before = stream.held, stream.match
            stream.feed(chunk)
        at = "flush"
        before = stream.held, stream.match
        stream.flush()
    except (TypeError, ValueError) as error:
        return at, error, stream, before
    return "nowhere", None, stream, before
