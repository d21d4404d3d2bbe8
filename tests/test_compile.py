"""`compile`: a cache that never gives a set that was not asked for."""

from __future__ import annotations

import threading
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdback

words = st.sampled_from(["first", "longest", "x", "xx", "y", b"x"])
lists = st.one_of(words, st.lists(words, max_size=3), st.lists(words, max_size=3).map(tuple))
requests = st.tuples(lists, st.sampled_from([None, "first", "longest"]))


@given(st.lists(requests, min_size=1, max_size=8))
def test_a_hit_is_what_a_new_set_would_be(
    asked: list[tuple[Any, Literal["first", "longest"] | None]],
) -> None:
    for stops, tie in asked:
        kept, new = holdback.compile(stops, tie=tie), holdback.StopSet(stops, tie=tie)
        assert kept == new
        assert kept.stops == new.stops
        assert kept is holdback.compile(stops, tie=tie)


def test_one_str_by_a_rule_is_not_a_list_of_two() -> None:
    assert holdback.compile("x", tie="first").stops == ("x",)
    assert holdback.compile(["first", "x"]).stops == ("first", "x")


def test_what_only_says_it_is_equal_is_not_taken_for_it() -> None:
    class Twin:
        def __hash__(self) -> int:
            return hash("a stop")

        def __eq__(self, other: object) -> bool:
            return True

    holdback.compile(["a stop"])
    with pytest.raises(TypeError, match="stop 0"):
        holdback.compile([Twin()])  # type: ignore[list-item]


def test_the_cache_forgets_and_survives_many_threads() -> None:
    def many(base: int) -> None:
        for number in range(base, base + 1500):
            assert holdback.compile([f"stop {number}", "x"]).stops[0] == f"stop {number}"

    first = holdback.compile(["stop 0", "x"])
    threads = [threading.Thread(target=many, args=(base,)) for base in (0, 700, 5000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert holdback.compile(["stop 0", "x"]) == first
    assert holdback.compile(["stop 0", "x"]) is not first
