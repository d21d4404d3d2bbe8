"""`Finish.to` and `Finish.parse`: exact words, and the round trip that never tells what a system
does not.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback.finish import BUILT_IN_REASONS, AmbiguousFinish, Finish, ParsedFinish
from holdback.vocabularies import ALIASES, VOCABULARIES

END = Finish("stop_string", 5, stop="END")
EOS = Finish("eos", 5, token_id=2)
TOKEN = Finish("stop_token", 5, token_id=7)
LENGTH = Finish("length", 5)
GONE = Finish("cancelled", 5)

WRITTEN = [
    ("openai", END, {"finish_reason": "stop"}),
    ("openai", EOS, {"finish_reason": "stop"}),
    ("openai", LENGTH, {"finish_reason": "length"}),
    ("openai", GONE, {"finish_reason": None}),
    ("openai", Finish("tool_calls"), {"finish_reason": "tool_calls"}),
    ("openai.completions", END, {"finish_reason": "stop"}),
    ("openai.completions", Finish("content_filter"), {"finish_reason": "content_filter"}),
    ("openai.responses", END, {"status": "completed"}),
    (
        "openai.responses",
        LENGTH,
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    ),
    ("openai.responses", GONE, {"status": "cancelled"}),
    ("anthropic", END, {"stop_reason": "stop_sequence", "stop_sequence": "END"}),
    ("anthropic", EOS, {"stop_reason": "end_turn", "stop_sequence": None}),
    ("anthropic", LENGTH, {"stop_reason": "max_tokens", "stop_sequence": None}),
    ("anthropic", Finish("tool_calls"), {"stop_reason": "tool_use", "stop_sequence": None}),
    ("anthropic", Finish("pause_turn"), {"stop_reason": "pause_turn", "stop_sequence": None}),
    (
        "bedrock",
        END,
        {"stopReason": "stop_sequence", "additionalModelResponseFields": {"stop_sequence": "END"}},
    ),
    ("gemini", END, {"finishReason": "STOP"}),
    ("gemini", LENGTH, {"finishReason": "MAX_TOKENS"}),
    ("gemini", Finish("content_filter"), {"finishReason": "SAFETY"}),
    ("vllm", END, {"finish_reason": "stop", "stop_reason": "END"}),
    ("vllm", EOS, {"finish_reason": "stop", "stop_reason": None}),
    ("vllm", TOKEN, {"finish_reason": "stop", "stop_reason": 7}),
    ("vllm", GONE, {"finish_reason": "abort", "stop_reason": None}),
    (
        "vllm",
        Finish("repetition"),
        {"finish_reason": "repetition", "stop_reason": "repetition_detected"},
    ),
    ("sglang", END, {"finish_reason": "stop", "matched_stop": "END"}),
    ("sglang", EOS, {"finish_reason": "stop", "matched_stop": 2}),
    ("sglang", LENGTH, {"finish_reason": "length", "matched_stop": None}),
    ("sglang.native", END, {"meta_info": {"finish_reason": {"type": "stop", "matched": "END"}}}),
    ("tgi", END, {"details": {"finish_reason": "stop_sequence"}}),
    ("tgi", EOS, {"details": {"finish_reason": "eos_token"}}),
    ("tgi.chat", END, {"finish_reason": "stop_sequence"}),
    ("tgi.chat", EOS, {"finish_reason": "stop"}),
    ("llama.cpp", END, {"stop": True, "stop_type": "word", "stopping_word": "END"}),
    ("llama.cpp", EOS, {"stop": True, "stop_type": "eos", "stopping_word": ""}),
    ("llama.cpp", LENGTH, {"stop": True, "stop_type": "limit", "stopping_word": ""}),
    ("ollama", END, {"done": True, "done_reason": "stop"}),
    ("ollama", LENGTH, {"done": True, "done_reason": "length"}),
    ("ollama", GONE, {"done": False, "done_reason": None}),
    ("transformers", END, {"is_done": True}),
]


@pytest.mark.parametrize(
    ("system", "finish", "fields"), WRITTEN, ids=lambda value: getattr(value, "reason", None)
)
def test_a_finish_is_written_in_the_systems_own_words(system, finish, fields):
    assert finish.to(system) == fields


READ = [
    ("openai", {"finish_reason": "stop"}, ("eos", "stop_string", "stop_token")),
    ("gemini", {"finishReason": "STOP"}, ("eos", "stop_string")),
    ("ollama", {"done": True, "done_reason": "stop"}, ("eos", "stop_string")),
    (
        "openai.responses",
        {"status": "completed"},
        ("eos", "stop_string", "stop_token", "tool_calls"),
    ),
    ("vllm", {"finish_reason": "stop"}, ("eos", "stop_string", "stop_token")),
    ("vllm", {"finish_reason": "stop", "stop_reason": None}, "eos"),
    ("vllm", {"finish_reason": "stop", "stop_reason": "END"}, "stop_string"),
    ("vllm", {"finish_reason": "stop", "stop_reason": 7}, ("stop_token", "eos")),
    ("vllm", {"finish_reason": "repetition", "stop_reason": "repetition_detected"}, "repetition"),
    ("vllm", {"finish_reason": "tool_calls", "stop_reason": "END"}, "tool_calls"),
    ("sglang", {"finish_reason": "stop", "matched_stop": 2}, ("eos", "stop_token")),
    ("sglang", {"finish_reason": "stop", "matched_stop": ""}, "stop_string"),
    ("anthropic", {"stop_reason": "end_turn", "stop_sequence": None}, "eos"),
    (
        "anthropic",
        {"stop_reason": "end_turn", "stop_sequence": "END"},
        "stop_string",
    ),  # llama.cpp's route
    ("anthropic", {"stop_reason": "refusal"}, "refusal"),
    ("anthropic", {"stop_reason": "a_word_of_next_year"}, "a_word_of_next_year"),
    ("bedrock", {"stopReason": "stop_sequence"}, "stop_string"),
    ("tgi.chat", {"finish_reason": "stop_sequence"}, "stop_string"),
    ("llama.cpp", {"stop": False, "content": "x"}, None),
    ("llama.cpp", {"stop": True, "stop_type": "none", "stopping_word": ""}, None),
    ("gemini", {"content": {}}, None),
    ("openai", {"finish_reason": None}, None),
    ("openai.responses", {"status": "in_progress"}, None),
    (
        "openai.responses",
        {"status": "completed", "incomplete_details": None},
        ("eos", "stop_string", "stop_token", "tool_calls"),
    ),
    ("tgi", {"details": None}, None),
]


@pytest.mark.parametrize(("system", "fields", "expected"), READ)
def test_fields_are_read_as_far_as_they_tell(system, fields, expected):
    parsed = Finish.parse(system, fields)
    if isinstance(expected, tuple):
        assert isinstance(parsed, AmbiguousFinish)
        assert parsed.reasons == expected
        assert not hasattr(parsed, "reason")
    elif expected is None:
        assert parsed is None
    else:
        assert isinstance(parsed, ParsedFinish)
        assert parsed.reason == expected


@pytest.mark.parametrize("system", ["vllm", "sglang", "sglang.native"])
def test_the_ids_of_the_model_settle_whose_token_it_was(system):
    fields = TOKEN.to(system)
    assert Finish.parse(system, fields).token_id == 7
    assert Finish.parse(system, fields, eos_token_ids=[2, 7]).reason == "eos"
    assert Finish.parse(system, fields, eos_token_ids=2).reason == "stop_token"


finishes = st.one_of(
    st.builds(
        Finish, st.just("stop_string"), st.integers(0, 9), stop=st.text(min_size=1, max_size=5)
    ),
    st.builds(
        Finish,
        st.sampled_from(["eos", "stop_token"]),
        st.integers(0, 9),
        token_id=st.integers(0, 9),
    ),
    st.builds(
        Finish,
        st.sampled_from(
            ["length", "time", "cancelled", "tool_calls", "content_filter", "repetition"]
        ),
    ),
)


@given(finishes, st.sampled_from(sorted({*VOCABULARIES, *ALIASES})))
def test_what_was_written_is_never_read_as_something_else(finish, system):
    try:
        fields = finish.to(system)
    except ValueError:
        assert finish.reason not in BUILT_IN_REASONS
        return
    parsed = Finish.parse(system, fields)
    words = VOCABULARIES[ALIASES.get(system, system)]
    reason = words.fallbacks.get(finish.reason, finish.reason)
    if parsed is None:
        assert finish.reason == "cancelled"
    elif isinstance(parsed, AmbiguousFinish):
        assert reason in parsed.reasons
        assert len(parsed.reasons) > 1
    else:
        assert parsed.reason == reason
        if words.stop_field is not None and finish.reason == "stop_string":
            assert parsed.stop == finish.stop


@pytest.mark.parametrize("words", VOCABULARIES.values(), ids=lambda words: words.system)
def test_the_tables_agree_with_themselves(words):
    assert {"eos", "stop_token", "stop_string", "length", "time", "cancelled"} <= {
        *words.words,
        *words.fallbacks,
    }
    assert not {*words.words} & {*words.fallbacks}
    for reason, word in words.words.items():
        meanings = words.meanings.get(word, ())
        assert reason in meanings or (reason == "cancelled" and not meanings)


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(0, 9),
        st.text(max_size=3),
        st.sampled_from(["stop", "length", "word"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(["reason", "type", "matched"]), inner),
    ),
    max_leaves=4,
)
field_names = sorted(
    {
        name
        for words in VOCABULARIES.values()
        for path in (words.field, words.stop_field or "x")
        for name in path.split(".")
    }
)


@given(
    st.sampled_from(sorted(VOCABULARIES)),
    st.dictionaries(st.sampled_from(field_names), json_values, max_size=3),
)
def test_any_fields_are_read_or_refused_in_words(system, fields):
    try:
        parsed = Finish.parse(system, fields)
    except (ValueError, TypeError):  # nothing else may come out
        return
    assert parsed is None or isinstance(parsed, (ParsedFinish, AmbiguousFinish))
    if isinstance(parsed, AmbiguousFinish):
        assert len(parsed.reasons) > 1


def test_a_reason_without_a_word_is_an_error_that_lists_the_words():
    with pytest.raises(
        ValueError, match=r"no word for the reason 'lines' \(it has: content_filter, length, stop\)"
    ):
        Finish("lines").to("openai.completions")
    assert Finish("lines").to("openai.completions", otherwise="stop") == {"finish_reason": "stop"}


def test_an_unknown_system_is_an_error_that_lists_the_systems():
    for call in [lambda: END.to("open-ai"), lambda: Finish.parse("open-ai", {})]:
        with pytest.raises(
            ValueError, match=r"no vocabulary for 'open-ai'; known: anthropic, bedrock, gemini"
        ):
            call()


def test_fields_of_another_system_are_an_error():
    with pytest.raises(
        ValueError,
        match=r"openai ends an answer with the field 'finish_reason', which is not among",
    ):
        Finish.parse("openai", {"stop_reason": "end_turn"})
    with pytest.raises(TypeError, match="a mapping, not SimpleNamespace"):
        Finish.parse("openai", SimpleNamespace(finish_reason="stop"))
    with pytest.raises(TypeError, match="finish_reason of openai is int"):
        Finish.parse("openai", {"finish_reason": 3})
    with pytest.raises(TypeError, match="stop_reason of vllm is list"):
        Finish.parse("vllm", {"finish_reason": "stop", "stop_reason": ["END"]})
