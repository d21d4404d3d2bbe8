"""`truncate_many` of lists: as `truncate` one by one, `None` for `None`, and errors with a place."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdback
from holdback import StoppingCriteria, reference

BOTH = [holdback, reference]
TEXTS = st.none() | st.text("ab\ud83d\u65e5", max_size=4) | st.binary(max_size=3)


@given(st.lists(TEXTS, max_size=6), st.sampled_from([list, tuple, iter]))
def test_each_text_is_cut_by_itself_and_none_stays_none(texts, kind):
    for module in BOTH:
        stops = module.StopSet(["b", "aa"])
        kept, matches = stops.truncate_many(kind(texts))
        alone = [(None, None) if text is None else stops.truncate(text) for text in texts]
        assert kept == [text for text, _ in alone]
        assert [match and match.start for match in matches] == [
            match and match.start for _, match in alone
        ]


@pytest.mark.parametrize("module", BOTH, ids=["rust", "reference"])
@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("hello", "truncate_many takes an iterable of texts, not one str"),
        (b"hello", "truncate_many takes an iterable of texts, not one bytes"),
        (["a", 5], "text 1 is int, not str, bytes-like or None"),
        (["a", None, ["b"]], "text 2 is list, not str, bytes-like or None"),
    ],
)
def test_what_is_no_text_is_named_with_its_place(module, texts, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        module.StopSet(["b"]).truncate_many(texts)


def test_what_is_no_iterable_is_named():
    with pytest.raises(TypeError, match="iterable of texts, not int"):
        holdback.StopSet(["b"]).truncate_many(5)


def test_criteria_say_what_the_stops_are_called():
    with pytest.raises(TypeError, match="stop="):
        StoppingCriteria(stops=["END"])
