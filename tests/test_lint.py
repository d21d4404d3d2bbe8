"""`lint`: each kind of finding fires where it should, and nowhere on a sound list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback import StopSet, lint, providers
from holdback._holdback_rate import held_share, samples
from holdback._lint import COMMON, SEVERITIES

SOUND = ["</answer>", "<|my end of turn|>", "###END###", "\nObservation:", "[DONE]"]

CASES = [
    ([""], "empty", "error", 0),
    ([b""], "empty", "error", 0),
    ([None], "type", "error", 0),
    (["x\ud83d"], "surrogate", "error", 0),
    (["[DONE]", "[DONE]"], "duplicate", "warning", 1),
    (["[DONE]", b"[DONE]"], "duplicate", "warning", 1),
    (["x[DONE]y", "[DONE]"], "unreachable", "warning", 0),
    (["<|eot_id|>"], "special-token", "warning", 0),
    (["</s>"], "special-token", "warning", 0),
    (["<｜end▁of▁sentence｜>"], "special-token", "warning", 0),
    (["Bye<|im_end|>"], "special-token", "warning", 0),
    (["[INST]"], "special-token", "warning", 0),
    (["---"], "common", "warning", 0),
    (["\n\n"], "common", "warning", 0),
    (["```"], "common", "warning", 0),
    (["}"], "common", "warning", 0),
    (["。"], "common", "warning", 0),
    (["QED"], "bare-word", "note", 0),
    ([" zq:"], "edge-space", "warning", 0),
    (["zq:\t"], "edge-space", "warning", 0),
    (["zq\r\n"], "line-ends", "warning", 0),
    (["\n\nzq:"], "line-ends", "note", 0),
    ([r"zq\n"], "escaped", "warning", 0),
    (["&lt;zq"], "escaped", "warning", 0),
    (["zq.*x"], "pattern", "warning", 0),
    (["zq\\d"], "pattern", "warning", 0),
    (["User:|Human:"], "pattern", "warning", 0),
    (["zq\u200b:"], "invisible", "warning", 0),
    (["zq\xa0:"], "invisible", "warning", 0),
    (["ЕND"], "look-alike", "warning", 0),
    (["zq “x"], "look-alike", "warning", 0),
    (["caf\u0065\u0301"], "not-nfc", "warning", 0),
    (["ＥＮＤ"], "compatibility", "note", 0),
    ([" zq:"], "stutter", "warning", 0),
    (["e!", "t!", "a!"], "stutter", "warning", 0),
]


@pytest.mark.parametrize(
    ("stops", "code", "severity", "index"),
    CASES,
    ids=[f"{at}-{case[1]}" for at, case in enumerate(CASES)],
)
def test_it_is_found(stops, code, severity, index):
    found = [finding for finding in lint(stops) if finding.code == code]
    assert (severity, index) in [(finding.severity, finding.index) for finding in found]
    assert all(finding.message and finding.remedy for finding in found)


@pytest.mark.parametrize("stop", SOUND)
def test_a_sound_stop_has_no_findings(stop):
    assert lint(stop) == []


def test_a_sound_list_has_no_findings():
    assert lint(SOUND) == []
    assert lint(None) == lint([]) == []


def test_letters_of_another_script_are_no_disguise_in_their_own_text():
    assert not [finding for finding in lint(["КОНЕЦ:", "停止："]) if finding.code == "look-alike"]


def test_many_different_beginnings_stutter_together():
    findings = [
        finding
        for finding in lint(["fz!", "gz!", "mz!", "wz!", "yz!"])
        if finding.code == "stutter"
    ]
    assert [(finding.severity, finding.index) for finding in findings] == [("note", None)]


def test_the_unreachable_one_names_the_one_that_shadows_it():
    (finding,) = [
        finding for finding in lint(["x[DONE]y", "[DONE]"]) if finding.code == "unreachable"
    ]
    assert "stop 1 '[DONE]' ends inside it" in finding.message
    assert finding.remedy == "remove it, or remove stop 1"


@given(
    st.lists(
        st.one_of(st.text(max_size=6), st.binary(max_size=4), st.integers(), st.none()), max_size=5
    )
)
def test_any_list_gets_findings_and_never_an_error(stops):
    findings = lint(stops)
    assert all(finding.index is None or 0 <= finding.index < len(stops) for finding in findings)
    ranks = [SEVERITIES.index(finding.severity) for finding in findings]
    assert ranks == sorted(ranks)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=5))
def test_errors_are_exactly_the_lists_that_a_set_refuses(stops):
    try:
        StopSet(stops)
        refused = False
    except ValueError:
        refused = True
    assert refused == any(finding.severity == "error" for finding in lint(stops))


@given(st.lists(st.text("ab-\n", min_size=1, max_size=4), min_size=1, max_size=5))
def test_every_unreachable_stop_is_told_once(stops):
    told = [
        finding.index for finding in lint(stops) if finding.code in ("unreachable", "duplicate")
    ]
    assert {*told} == {*StopSet(stops).unreachable}


@given(
    st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3),
    st.text("abc", max_size=20),
)
def test_the_share_held_is_what_a_stream_holds(stops, text):
    stream = StopSet(stops).stream()
    held = 0
    for character in text:
        if stream.feed(character)[1]:
            stream.reset()
        held += bool(stream.held)
    assert held_share(stops, text) == (held / len(text) if text else 0.0)


def test_the_samples_are_there_and_small():
    assert {name: 500 < len(text) < 5000 for name, text in samples().items()} == dict.fromkeys(
        samples(), True
    )
    assert all(COMMON)


PROVIDER_CASES = [
    (list("12345"), "openai", "gpt-4o", "too-many", "error"),
    (["[DONE]"], "openai", "gpt-5", "not-accepted", "error"),
    (["[DONE]"], "openai.responses", None, "not-accepted", "error"),
    ([" \n"], "anthropic", None, "blank", "error"),
    ([], "vertex", None, "empty-list", "error"),
    ([], "ollama", None, "empty-list", "warning"),
    (["[DONE]"], "tgi", None, "included", "note"),
    (["[DONE]"], "sglang", None, "missed", "warning"),
    (["[DONE]"], "gemini", None, "unnamed", "note"),
]


@pytest.mark.parametrize(("stops", "provider", "model", "code", "severity"), PROVIDER_CASES)
def test_a_provider_adds_its_limits(stops, provider, model, code, severity):
    (finding,) = [finding for finding in lint(stops, provider, model) if finding.code == code]
    assert finding.severity == severity
    assert "2026-11" in finding.message or code == "unnamed"


def test_a_provider_of_ones_own_counts():
    mine = providers.get("openai").with_facts(name="mine", max_stops=64)
    assert "too-many" not in [finding.code for finding in lint(list("12345"), mine)]


def test_an_unknown_provider_is_an_error():
    with pytest.raises(ValueError, match="no facts about the provider 'nobody'"):
        lint(["x"], "nobody")


def test_an_argument_of_the_wrong_type_is_named() -> None:
    with pytest.raises(
        TypeError, match="stops must be a str, bytes, an iterable of them, or None, not int"
    ):
        lint(3)  # type: ignore[arg-type]
