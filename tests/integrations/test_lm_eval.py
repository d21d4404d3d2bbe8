"""The lm-evaluation-harness: the filter in its own pipeline, and the drop-in for its
post-processing.
"""

from __future__ import annotations

import doctest
import importlib

from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.instance import Instance
from lm_eval.filters import build_filter_ensemble
from lm_eval.models import utils as theirs

from holdback import StopSet
from holdback.integrations import lm_eval as ours

STOPS = ["\n\nQ:", "###", "</answer>", "Observation:", "<|im_end|>", "STOP"]
words = st.lists(st.sampled_from([*STOPS, "a", "\n", "Q:", "</think>", " "]), max_size=8).map(
    "".join
)


@given(st.lists(st.lists(words, max_size=3), min_size=1, max_size=4))
def test_the_filter_cuts_what_the_harness_collects(responses):
    ours.register()
    instances = [
        Instance("generate_until", {"q": n}, ("prompt", {}), n) for n in range(len(responses))
    ]
    for instance, texts in zip(instances, responses, strict=True):
        instance.resps = list(texts)
    build_filter_ensemble("cut", [("truncate_at_stops", {"until": STOPS})]).apply(instances)
    stops = StopSet(STOPS)
    for instance, texts in zip(instances, responses, strict=True):
        assert instance.filtered_resps["cut"] == [stops.truncate(text)[0] for text in texts]
        assert instance.resps == texts, "what the model said stays"


def test_the_filter_goes_before_those_of_the_harness():
    ours.register()
    ours.register()
    instance = Instance("generate_until", {}, ("prompt", {}), 0)
    instance.resps = ["4 or 5\n\nQ: more", None]
    steps = [("truncate_at_stops", {"until": "\n\nQ:"}), ("take_first", None)]
    build_filter_ensemble("cut", steps).apply([instance])
    assert instance.filtered_resps["cut"] == "4 or 5"


@given(words, st.permutations(STOPS), st.sampled_from([None, "</think>"]))
def test_the_order_of_the_list_does_not_matter(text, stops, think):
    made = ours.postprocess_generated_text(text, stops, think)
    assert made == ours.postprocess_generated_text(text, sorted(stops), think)
    assert not any(stop in made for stop in stops)
    # none of these stops overlaps another one, so the harness's way gives the same
    assert made == theirs.postprocess_generated_text(text, stops, think)


def test_where_the_two_differ():
    assert theirs.postprocess_generated_text("xab", ["b", "ab"], None) == "xa"
    assert ours.postprocess_generated_text("xab", ["b", "ab"], None) == "x"
    assert ours.postprocess_generated_text("abc", ["", "c"], None) == "ab"
    assert ours.postprocess_generated_text("abc", None, None) == "abc"


def test_the_drop_in_reaches_the_models_that_bound_the_function(monkeypatch):
    completions = importlib.import_module("lm_eval.models.openai_completions")
    monkeypatch.setattr(theirs, "postprocess_generated_text", theirs.postprocess_generated_text)
    monkeypatch.setattr(
        completions, "postprocess_generated_text", completions.postprocess_generated_text
    )
    assert {"lm_eval.models.utils", "lm_eval.models.openai_completions"} <= set(ours.patch())
    assert completions.postprocess_generated_text is ours.postprocess_generated_text
    assert ours.patch() == []


def test_the_examples_in_docstrings():
    done = doctest.testmod(ours)
    assert done.attempted > 2
    assert not done.failed
