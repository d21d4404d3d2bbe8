"""`explain`: the reason a person would give, in the order in which a person would look."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback import StopSet, explain
from holdback._explain import LIKELIEST, ORDER
from holdback._folding import fold

THINK = [("<think>", "</think>")]

# text, stop, kind, place
NEAR_MISSES = [
    ("x\n \ny", "\n\n", "white-space", (1, 4)),
    ("END \nUser :", "\nUser:", "white-space", (4, 11)),
    ("a\n\nUser: b", "\nUser :", "white-space", (2, 8)),
    ("x\r\n\r\ny", "\n\n", "line-ends", (1, 5)),
    ("x\ny", "x\r\ny", "line-ends", (0, 3)),
    ("the end", "END", "case", (4, 7)),
    ("a\n**END**\n", "\nEND", "markup", (1, 7)),
    ("### **END**", "### END", "markup", (3, 9)),
    ("END it", "\nEND", "bare", (0, 3)),
    ("a\\nb", "a\nb", "escaped", (0, 4)),
    ("a\nb", "a\\nb", "escaped", (0, 3)),
    ("caf\u0065\u0301!", "café!", "normal-form", (0, 6)),
    ("각!", "\u1100\u1161\u11a8!", "normal-form", (0, 2)),
    ("x ＥＮＤ", "END", "full-width", (2, 5)),
    ("x ЕND", "END", "look-alike", (2, 5)),
    ("it’s over", "it's over", "look-alike", (0, 9)),
    ("E\u200bND", "END", "invisible", (0, 4)),
    ("** ｅnd **", "END", "several", (3, 6)),
    ("</anser>", "</answer>", "one-edit", (0, 8)),
    ("</answwer>", "</answer>", "one-edit", (0, 10)),
    ("x </answar>", "</answer>", "one-edit", (2, 11)),
    ("42 </ans", "</answer>", "unfinished", (3, 8)),
    ("hello", "</answer>", "never", None),
    ("", "END", "never", None),
    ("hello", "<|eot_id|>", "special-token", None),
]


@pytest.mark.parametrize(("text", "stop", "kind", "place"), NEAR_MISSES)
def test_a_near_miss_is_named_with_its_place(text, stop, kind, place):
    explanation = explain(text, [stop])
    (reason,) = explanation.reasons
    assert (explanation.match, explanation.emitted) == (None, text)
    assert (reason.kind, reason.places[:1]) == (kind, (place,) if place else ())
    assert reason.remedy
    assert explanation.answer == reason.message
    assert str(explanation).startswith("No stop fired.\nstop 0 ")


def test_the_stop_that_fired_leads_and_the_others_say_why_not():
    explanation = explain("x END FIN", ["FIN", "D", "nd", "END"])
    assert [(reason.index, reason.kind) for reason in explanation.reasons] == [
        (3, "fired"),
        (1, "shadowed"),
        (2, "case"),
        (0, "late"),
    ]
    assert explanation.answer == "stop 3 'END' fired at 2, after 2 characters"
    assert explanation.emitted == "x "


@pytest.mark.parametrize(
    ("text", "stop", "options", "kind"),
    [
        ("<think>END</think>ok", "END", {"ignore_inside": THINK}, "ignored"),
        ("END</think>ok", "END", {"ignore_inside": THINK, "start_inside": True}, "ignored"),
        ("<think></think>ok", "k>o", {"ignore_inside": THINK}, "spans-marker"),
        ("END ok", "END", {"min_chars": 5}, "not-armed"),
        ("END <think>END</think>", "END", {"ignore_inside": THINK, "min_chars": 5}, "ignored"),
    ],
)
def test_a_stop_that_is_there_but_did_not_count_says_why(text, stop, options, kind):
    (reason,) = explain(text, [stop], **options).reasons
    assert (reason.kind, reason.places[0][1] - reason.places[0][0]) == (kind, 3)


def test_reasons_come_likeliest_first_then_in_the_order_of_the_list():
    stops = ["zzzz", "<|eot_id|>", "End", "\n\n", "Yes"]
    explanation = explain("x\n \nyes end", stops)
    assert [reason.index for reason in explanation.reasons] == [3, 2, 4, 1, 0]


def test_places_are_counted_when_they_are_many():
    (reason,) = explain("end " * 20, ["END"]).reasons
    assert len(reason.places) == 5
    assert "'end' at 0 (and 19 more places)" in reason.message


def test_what_looks_the_same_is_spelled_out():
    assert r"(there '\u0415ND', the stop 'END')" in explain("ЕND", ["END"]).answer


def test_bytes_and_halves_of_characters_are_read_as_a_stream_reads_them():
    assert explain(b"x END", ["END"]).match.start == 2
    assert explain("x\ud800", ["x�"]).match.start == 0


def test_no_stops_explain_themselves():
    assert explain("text", None).answer == "no stops were given, so none fired"


def test_a_bad_stop_is_an_error_as_everywhere():
    with pytest.raises(ValueError, match="1"):
        explain("x", ["a", ""])


texts = st.text("aA\n \r*Е\u200b", max_size=12)
stop_lists = st.lists(st.text("aA\n \r*Е", min_size=1, max_size=4), max_size=4)


@given(texts, stop_lists, st.booleans(), st.integers(0, 4))
def test_it_agrees_with_the_stream_and_every_stop_gets_one_reason(text, stops, regions, arm):
    options = {"ignore_inside": [("*", " ")]} if regions else {}
    try:
        compiled = StopSet(stops)
        stream = compiled.stream(**options, **({"min_chars": arm} if arm else {}))
    except ValueError:  # a stop that equals a marker
        return
    emit, match = stream.feed(text)
    explanation = explain(text, compiled, min_chars=arm, **options)
    assert (explanation.emitted, explanation.match) == (emit + stream.flush(), match)
    assert sorted(reason.index for reason in explanation.reasons) == list(range(len(stops)))
    ranks = [ORDER.index(reason.kind) for reason in explanation.reasons]
    assert ranks == sorted(ranks)
    for reason in explanation.reasons:
        assert (reason.kind == "fired") == (match is not None and reason.index == match.index)
        if reason.kind in ("ignored", "not-armed", "spans-marker", "shadowed", "late"):
            assert {text[slice(*place)] for place in reason.places} == {reason.stop}
        assert all(0 <= start < end <= len(text) for start, end in reason.places)


every_folding = sorted(
    {folding for *_, ways in LIKELIEST for way in ways for folding in way}, key=lambda f: f.__name__
)


@pytest.mark.parametrize("folding", every_folding, ids=lambda folding: folding.__name__)
@given(text=st.text(st.sampled_from("aÉe\u0301Ｅﬁ \r\n\\n*Е\u200b각\u1161ß"), max_size=12))
def test_folded_text_knows_where_it_came_from(folding, text):
    folded = fold(text, folding)
    assert len(folded.text) == len(folded.starts) == len(folded.ends)
    assert list(folded.starts) == sorted(folded.starts)
    for at, character in enumerate(folded.text):
        stretch = text[folded.starts[at] : folded.ends[at]]
        assert character in fold(stretch, folding).text


def test_an_argument_of_the_wrong_type_is_named() -> None:
    with pytest.raises(TypeError, match="a text must be str or bytes-like, not NoneType"):
        explain(None, ["a"])  # type: ignore[arg-type]
