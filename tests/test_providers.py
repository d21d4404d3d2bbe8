"""Provider facts and `plan`: every fact is dated and sourced, no stop is ever lost, and two cuts
give what one would.
"""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback import StopSet, providers
from holdback.providers import KINDS, Fact, Provider, get, load, names, plan, register

ALL = [get(name) for name in names()]
FACTS = [
    (provider.name, key, fact)
    for provider in ALL
    for facts in (provider.facts, *(special for _, special in provider.models))
    for key, fact in facts.items()
]

stop_lists = st.lists(st.text("ab \n", min_size=1, max_size=4), min_size=1, max_size=8)
texts = st.text("ab \n", max_size=30)
everyone = st.sampled_from(
    [
        (p.name, model)
        for p in ALL
        for model in (None, *(m[0][0].replace("*", "x") for m in p.models))
    ]
)


def cut(stops: list[str | bytes], text: str) -> str:
    stream = StopSet(stops).stream()
    emit, match = stream.feed(text)
    return emit if match else emit + stream.flush()


def test_every_fact_has_a_date_a_source_and_a_value_of_its_kind():
    assert len(FACTS) > 100
    for name, key, fact in FACTS:
        where = f"{name}, {key}: {fact}"
        assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", fact.date), where
        assert re.match(r"https://|[a-z]", fact.source), where
        assert type(fact.value) in KINDS[key], where


@pytest.mark.parametrize("provider", ALL, ids=lambda provider: provider.name)
def test_a_system_that_takes_stops_says_in_which_field(provider):
    assert provider.facts["accepts"].value is False or provider.facts["field"].value


@given(stop_lists, everyone, st.booleans())
def test_no_stop_is_lost(stops, who, must_name):
    made = plan(stops, *who, must_name=must_name)
    assert {*made.send, *made.enforce} == {*stops}
    assert len(set(made.send)) == len(made.send)
    cap = made.facts.get("max_stops")
    assert cap is None or cap.value is None or len(made.send) <= cap.value
    if (blank := made.facts.get("whitespace_stop")) is not None and blank.value == "refused":
        assert all(stop.strip() for stop in made.send)


@given(stop_lists, texts, st.integers(0, 4))
def test_cutting_there_and_here_is_cutting_once_over_the_whole_list(stops, text, cap):
    made = plan(stops, get("vllm").with_facts(name="capped", max_stops=cap))
    assert cut(made.enforce, cut(made.send, text)) == cut(stops, text)


def test_a_stop_that_would_take_the_end_of_another_along_is_kept_here():
    stops = ["1", "2", "\nUser:", "```\n"]
    made = plan(stops, get("openai").with_facts(max_stops=3))
    assert (made.send, made.enforce) == (["1", "2", "```\n"], ["\nUser:"])
    assert cut(made.enforce, cut(made.send, "x```\nUser:")) == "x"


def test_a_longer_stop_goes_before_one_it_ends_with():
    assert plan(["bc", "x", "abc"], "vllm").send == ["abc", "bc", "x"]


@pytest.mark.parametrize(
    "model", ["gpt-5", "openai/gpt-5-mini", "GPT-5.4", "o3", "o4-mini-2025-04-16"]
)
def test_reasoning_models_get_none_and_all_are_enforced(model):
    made = plan(["END"], "openai", model)
    assert (made.send, made.enforce, made.request) == ([], ["END"], {})
    assert "unsupported_parameter" in str(made)


def test_other_models_of_the_same_system_get_them():
    assert plan(["END"], "openai", "gpt-4o").request == {"stop": ["END"]}


@pytest.mark.parametrize(
    ("provider", "request_body"),
    [
        ("gemini", {"generationConfig": {"stopSequences": ["a", "b"]}}),
        ("ollama", {"options": {"stop": ["a", "b"]}}),
        ("anthropic", {"stop_sequences": ["a", "b"]}),
        ("openai.responses", {}),
    ],
)
def test_the_request_has_the_systems_own_field(provider, request_body):
    assert plan(["a", "b"], provider).request == request_body


@pytest.mark.parametrize("provider", names())
@pytest.mark.parametrize("stops", [None, []])
def test_no_stops_send_no_field(provider, stops):
    assert plan(stops, provider).request == {}


def test_more_than_the_cap_says_so_with_its_source():
    made = plan(list("abcdef"), "openai", "gpt-4o")
    assert (made.send, made.enforce) == (list("abcd"), list("ef"))
    assert any("6 stops, 4 are taken" in note and "https://" in note for note in made.notes)


def test_a_blank_stop_is_not_sent_where_it_is_refused():
    made = plan(["\n\n", "END"], "anthropic")
    assert (made.send, made.enforce) == (["END"], ["\n\n"])
    assert any("must contain non-whitespace" in note for note in made.notes)


def test_what_leaves_the_stop_in_or_can_miss_it_is_enforced_here_too():
    made = plan(["END"], "tgi")
    assert (made.send, made.enforce) == (["END"], ["END"])


def test_stops_of_bytes_are_sent_as_text_or_not_at_all():
    made = plan([b"END", b"\xff"], "vllm")
    assert (made.send, made.enforce) == (["END"], [b"\xff"])


def test_must_name_keeps_them_where_the_answer_would_not_tell():
    assert plan(["END"], "openai", "gpt-4o", must_name=True).enforce == ["END"]
    assert plan(["END"], "anthropic", must_name=True).send == ["END"]


def test_bad_stops_are_refused_as_everywhere():
    with pytest.raises(ValueError, match="1"):
        plan(["a", ""], "openai")


def test_an_unknown_provider_is_an_error_that_lists_the_known_ones():
    with pytest.raises(
        ValueError,
        match=r"no facts about the provider 'opena' \(did you mean 'openai'\?\); known: anthropic, ",
    ):
        plan(["a"], "opena")


def test_a_provider_about_which_nothing_is_known_gets_nothing():
    made = plan(["a"], Provider("ours", "Ours", {}))
    assert (made.send, made.enforce) == ([], ["a"])


@pytest.fixture
def registry(monkeypatch):
    table = dict(providers._registry())
    monkeypatch.setattr(providers, "_registry", lambda: table)


@pytest.mark.usefixtures("registry")
def test_facts_can_be_corrected_and_added():
    register(get("vllm").with_facts(name="ours", max_stops=64, source="our config", date="2026-12"))
    assert get("ours").facts["max_stops"] == Fact(64, "2026-12", "our config")
    assert get("vllm").facts["max_stops"].value == 4
    assert len(plan(list("abcdef"), "ours").send) == 6


@pytest.mark.usefixtures("registry")
def test_a_file_of_facts_is_read_like_our_own(tmp_path):
    path = tmp_path / "facts.json"
    fact = {"value": True, "date": "2026-12", "source": "https://example.org"}
    path.write_text(
        json.dumps({"providers": {"ours": {"facts": {"accepts": fact}, "aliases": ["mine"]}}})
    )
    assert load(path) == [get("mine")]
    assert plan(["a"], "ours").send == ["a"]


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ({"value": True, "date": "2026-12"}, "ours: the fact 'accepts' has no source"),
        ({"value": True, "source": "x"}, "ours: the fact 'accepts' has no date"),
        ({"value": "yes", "date": "2026-12", "source": "x"}, "ours: accepts is 'yes', not bool"),
    ],
)
def test_a_bad_fact_is_named_and_nothing_is_registered(tmp_path, fact, message):
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({"providers": {"ours": {"facts": {"accepts": fact}}}}))
    with pytest.raises(ValueError, match=re.escape(message)):
        load(path)
    assert "ours" not in names()


def test_an_unknown_kind_of_fact_is_an_error():
    with pytest.raises(ValueError, match="no fact is called 'max_stop'; there are accepts, field"):
        get("vllm").with_facts(max_stop=3)
