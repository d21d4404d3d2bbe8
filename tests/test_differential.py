"""The compiled package against its executable specification: outcome for outcome and chunk for
chunk.

An outcome is the value or the type of the exception; after each operation all that a stream shows
is compared too.

A deep run, by hand (200,000 cases of each kind take a while; `-k` chooses one):

    HYPOTHESIS_PROFILE=deep HYPOTHESIS_EXAMPLES=200000 python -m pytest tests/test_differential.py --timeout=0
"""

from __future__ import annotations

import pickle
from typing import Any

from comparing import BOTH, check_plan, outcome, plain, shown
from hypothesis import given
from hypothesis import strategies as st
from strategies import Plan, plans, stop_lists, texts

import holdback
from holdback import reference


def words_of(thing: object) -> set[str]:
    return {word for word in dir(thing) if word[0] != "_"}


def test_two_things_are_compared_and_look_the_same() -> None:
    for name in ("StopSet", "StopStream", "StopMatch"):
        ours, theirs = getattr(holdback, name), getattr(reference, name)
        assert ours is not theirs
    ours, theirs = (
        (s := impl.StopSet(["a"]), s.stream(), s.truncate("a")[1], s.cut([])) for impl in BOTH
    )
    # What patterns bring (section 11) is in the reference first.
    later = set() if hasattr(holdback, "Pattern") else {"bounds", "cut", "pattern"}
    for our, their in zip(ours, theirs, strict=True):
        assert words_of(our) | later == words_of(their) | later


@given(plans(raw=False, scoped=False))
def test_text(plan: Plan) -> None:
    check_plan(plan)


@given(plans(raw=False))
def test_text_with_scopes(plan: Plan) -> None:
    check_plan(plan)


@given(plans(raw=True))
def test_bytes_with_scopes(plan: Plan) -> None:
    check_plan(plan)


@given(stop_lists("abé"), st.sampled_from(["longest", "first"]))
def test_sets(stops: list[str], tie: str) -> None:
    ours, theirs = (impl.StopSet(stops, tie=tie) for impl in BOTH)
    for read in (
        len,
        list,
        lambda s: s.stops,
        lambda s: s.unreachable,
        lambda s: ["a" in s, b"ab" in s, "" in s, 5 in s],
    ):
        assert read(ours) == read(theirs)
    assert pickle.loads(pickle.dumps(ours)) == ours


TEXTS = texts(["a", "b", "ab", "ba", "aab", "é"], max_pieces=8)


@given(
    stop_lists("abé"),
    st.lists(TEXTS, max_size=4),
    st.booleans(),
    st.sampled_from(["longest", "first"]),
)
def test_whole_texts(stops: list[str], texts: list[str], include: bool, tie: str) -> None:
    ours, theirs = (impl.StopSet(stops, tie=tie) for impl in BOTH)
    for text in texts:
        assert plain(ours.truncate(text, include_stop=include)) == plain(
            theirs.truncate(text, include_stop=include)
        )
    assert plain(ours.truncate_many(texts, include_stop=include)) == plain(
        theirs.truncate_many(texts, include_stop=include)
    )
    assert list(ours.cut(texts, include_stop=include)) == list(
        theirs.cut(texts, include_stop=include)
    )


@given(
    stop_lists("ab"),
    st.lists(st.lists(TEXTS | TEXTS.map(str.encode), min_size=3, max_size=3), max_size=4),
    st.data(),
)
def test_batches(stops: list[str], steps: list[list[Any]], data: st.DataObject) -> None:
    sets = [impl.StopSet(stops) for impl in BOTH]
    ours, theirs = ([stops.stream(), stops.stream(min_chars=3), stops.stream()] for stops in sets)
    for chunks in steps:
        if data.draw(st.integers(0, 9)) == 0:
            chunks[data.draw(st.integers(0, 2))] = 5
        got, want = (
            outcome(holdback.feed_batch, ours, chunks),
            outcome(reference.feed_batch, theirs, chunks),
        )
        assert plain(list(got)) == plain(list(want))
        assert [shown(stream) for stream in ours] == [shown(stream) for stream in theirs]
