"""Runs one plan (`strategies.Plan`) through the compiled package and through the reference, and
compares: outcome for outcome, and after each operation all that a stream shows.
"""

from __future__ import annotations

import pickle
from types import ModuleType
from typing import Any

from corpus import MATCH, made
from hypothesis import note
from strategies import Plan

import holdback
from holdback import reference

BOTH = (holdback, reference)
PATTERN = ("pattern", "ignore_case", "name", "max_hold")


def plain(value: Any) -> Any:
    """A match as a plain value that says its types; everything else as it is."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(plain, value))
    if hasattr(value, "end_chunk"):
        names = (*MATCH, "cut") if hasattr(value, "cut") and hasattr(holdback, "Pattern") else MATCH
        told = tuple((name, type(getattr(value, name)), getattr(value, name)) for name in names)
        pattern = getattr(value, "pattern", None)
        return (*told, pattern and tuple(getattr(pattern, name) for name in PATTERN))
    return (type(value), value)


def outcome(call: Any, *arguments: Any, **options: Any) -> tuple[Any, Any]:
    """What a call gives: its value and "ok", or nothing and the type of what it raises."""
    try:
        return call(*arguments, **options), "ok"
    except (TypeError, ValueError, RuntimeError) as error:
        return None, type(error)


def shown(stream: Any) -> dict[str, Any]:
    return {name: plain(getattr(stream, name)) for name in ("held", "match", "region", "armed")}


def opened(impl: ModuleType, plan: Plan) -> Any:
    stops = impl.StopSet([made(impl, stop) for stop in plan.stops], tie=plan.tie)
    options = dict(plan.options)
    if isinstance(options.get("include_stop"), list):
        options["include_stop"] = [made(impl, stop) for stop in options["include_stop"]]
    return stops.byte_stream(**options) if plan.raw else stops.stream(**options)


def check_plan(plan: Plan) -> None:
    (rust, how), (ref, expected) = (outcome(opened, impl, plan) for impl in BOTH)
    assert how == expected
    if expected != "ok":
        return
    streams = [(rust, ref)]
    for number, (name, which, *arguments) in enumerate(plan.operations):
        note(f"operation {number}: {name}{tuple(arguments)} on stream {which % len(streams)}")
        rust, ref = streams[which % len(streams)]
        if name == "copy":
            streams = [*streams[-1:], (rust, ref), (rust.copy(), ref.copy())]
        elif name == "pickle":
            streams[which % len(streams)] = (
                pickle.loads(pickle.dumps(rust)),
                pickle.loads(pickle.dumps(ref)),
            )
        else:
            got, how = outcome(getattr(rust, name), *arguments)
            want, expected = outcome(getattr(ref, name), *arguments)
            assert (plain(got), how) == (plain(want), expected)
        for rust, ref in streams:
            assert shown(rust) == shown(ref)
    for rust, ref in streams:
        again = pickle.loads(pickle.dumps(rust))
        assert outcome(rust.flush) == outcome(ref.flush) == outcome(again.flush)
        assert shown(rust) == shown(ref) == shown(again)
        # Also what is over can move to another process.
        assert shown(pickle.loads(pickle.dumps(rust))) == shown(ref)
