"""Patterns in the compiled package against the reference (section 11): outcome for outcome, and after
each operation all that a stream shows. `tests/random_patterns.py` runs longer ones by hand.
"""

from __future__ import annotations

import itertools
import pickle

import pytest
from comparing import BOTH, check_plan
from corpus import made
from hypothesis import given
from hypothesis import strategies as st
from pattern_strategies import ALPHABETS, pattern_plans, pattern_stops
from strategies import Plan
from test_patterns_oracles import all_small_trees, written

import holdback

if not hasattr(holdback, "Pattern"):
    pytest.skip("holdback.Pattern does not exist yet", allow_module_level=True)

import random_patterns


@given(pattern_plans(raw=False, scoped=False))
def test_text(plan: Plan) -> None:
    check_plan(plan)


@given(pattern_plans(raw=False, scoped=True))
def test_text_with_scopes(plan: Plan) -> None:
    check_plan(plan)


@given(pattern_plans(raw=True, scoped=False))
def test_bytes(plan: Plan) -> None:
    check_plan(plan)


@given(pattern_plans(raw=True, scoped=True))
def test_bytes_with_scopes(plan: Plan) -> None:
    check_plan(plan)


@given(st.sampled_from(ALPHABETS).flatmap(pattern_stops), st.sampled_from(["longest", "first"]))
def test_sets(stops: list[object], tie: str) -> None:
    ours, theirs = (impl.StopSet([made(impl, stop) for stop in stops], tie=tie) for impl in BOTH)
    assert ours.bounds == theirs.bounds
    assert ours.unreachable == theirs.unreachable
    assert len(ours) == len(theirs)
    again = pickle.loads(pickle.dumps(ours))
    assert again == ours
    assert hash(again) == hash(ours)
    assert [stop in ours for stop in ours] == [True] * len(stops)


@pytest.mark.parametrize("seed", range(4))
def test_random_triples(seed: int) -> None:
    differences: list[str] = []
    assert random_patterns.run(0, seed, differences.append, least=1500) >= 1500
    assert differences == []


@pytest.mark.parametrize("part", range(4))
def test_every_small_pattern_on_every_small_text_in_every_cut(part: int) -> None:
    for tree in all_small_trees()[part::4]:
        stops = [{"pattern": written(tree), "max_hold": 1000}]
        for length in range(1, 6):
            for text in map("".join, itertools.product("ab", repeat=length)):
                cuts = [
                    [at for at in range(1, length) if mask >> (at - 1) & 1]
                    for mask in range(2 ** (length - 1))
                ]
                assert random_patterns.told(stops, "longest", {}, text, cuts) is None
