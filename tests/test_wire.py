"""The wire cutter in Python: the special cases of docs/wire.md, one test a rule."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from wire_shapes import DIALECTS, STOPS, chat, choices, entry, events, run, said, sse, with_logprobs

from holdback.wire import Cutter, WireError

# --- the special cases
# ------------------------------------------------------------------------------------------------


def test_each_choice_ends_alone_and_the_stream_with_the_last() -> None:
    cutter = Cutter("openai.chat", STOPS, choices=2)
    out = cutter.feed(sse(chat("a", index=0), chat("b", index=1), chat("END x", index=1)))
    assert not cutter.ended
    assert choices(out, 1)[-1]["finish_reason"] == "stop"
    assert cutter.feed(sse(chat("never", index=1))) == b"", (
        "what follows in an ended choice is dropped"
    )
    out = cutter.feed(sse(chat("END", index=0)))
    assert cutter.ended
    assert events(out)[-1] == "[DONE]"
    assert [(match.choice, match.start) for match in cutter.matches] == [(1, 1), (0, 1)]
    assert cutter.feed(sse(chat("never", index=0))) == b""


def test_an_ended_choice_goes_out_of_a_frame_that_others_share() -> None:
    cutter = Cutter("openai.chat", STOPS, choices=3)
    run = [chat("x", index=index) for index in range(3)] + [chat("END", index=1)]
    cutter.feed(sse(*run))
    both = {
        "choices": [chat(text, index=index)["choices"][0] for index, text in enumerate("abc")],
        "usage": None,
    }
    (event,) = events(cutter.feed(sse(both)))
    assert [(choice["index"], choice["delta"]["content"]) for choice in event["choices"]] == [
        (0, "a"),
        (2, "c"),
    ]


def test_the_end_waits_for_usage_when_the_upstream_ended_the_last_choice_itself() -> None:
    cutter = Cutter("openai.chat", STOPS)
    assert not cutter.ended
    out = cutter.feed(sse(chat("END", "stop")))
    assert not cutter.ended, "the upstream ended too: its usage frame and its [DONE] follow"
    usage = sse({"choices": [], "usage": {"total_tokens": 3}}, "[DONE]")
    assert cutter.feed(usage) == usage
    assert cutter.ended
    assert choices(out)[0]["finish_reason"] == "stop"


def test_tool_call_arguments_are_never_cut() -> None:
    call = chat(
        delta={"tool_calls": [{"index": 0, "function": {"arguments": '{"q": "END\\n\\nUser:"}'}}]}
    )
    body = sse(chat("let me"), call, call, chat(None, "tool_calls"), "[DONE]")
    assert run(Cutter("openai.chat", STOPS), body) == body
    block = {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": "END"},
    }
    assert run(Cutter("anthropic.messages", STOPS), sse(block)) == sse(block)
    part = {
        "candidates": [
            {"content": {"parts": [{"functionCall": {"name": "f", "args": {"text": "END"}}}]}}
        ]
    }
    assert run(Cutter("gemini", STOPS), sse(part)) == sse(part)
    refusal = chat(delta={"refusal": "END", "audio": {"transcript": "END"}})
    assert run(Cutter("openai.chat", STOPS), sse(refusal)) == sse(refusal)


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_reasoning_is_cut_on_demand_only(field: str) -> None:
    body = sse(
        chat(delta={field: "think E"}),
        chat(delta={field: "ND more"}),
        chat("answer"),
        chat(None, "stop"),
    )
    assert run(Cutter("openai.chat", STOPS), body) == body
    cutter = Cutter("openai.chat", STOPS, cut_reasoning=True)
    out = run(cutter, body)
    assert (said(out, field=field), said(out)) == ("think ", "")
    assert cutter.matches[0].reasoning
    assert cutter.ended


def test_thoughts_under_two_names_are_refused_where_they_would_be_read() -> None:
    """Some servers send both for a while, so that old clients go on."""
    frame = sse(chat(None, delta={"reasoning": "a END", "reasoning_content": "a END"}))
    assert run(Cutter("openai.chat", STOPS), frame) == frame
    with pytest.raises(WireError, match="thoughts under two names"):
        Cutter("openai.chat", STOPS, cut_reasoning=True).feed(frame)


def test_held_reasoning_leaves_before_the_answer_begins() -> None:
    cutter = Cutter("openai.chat", STOPS, cut_reasoning=True)
    out = cutter.feed(sse(chat(delta={"reasoning": "hm E"}), chat("yes")))
    deltas = [choice["delta"] for choice in choices(out)]
    assert deltas == [{"reasoning": "hm "}, {"reasoning": "E"}, {"content": "yes"}]


def test_inline_think_is_a_region() -> None:
    cutter = Cutter("openai.chat", STOPS, ignore_inside=[("<think>", "</think>")])
    out = run(cutter, sse(chat("<thi"), chat("nk>END"), chat("</think>a E"), chat("ND b")))
    assert said(out) == "<think>END</think>a "
    assert cutter.matches[0].start == 20


def test_log_probabilities_are_held_and_dropped_with_their_text() -> None:
    cutter = Cutter("openai.chat", STOPS)
    out = run(
        cutter,
        sse(with_logprobs("a", " E"), with_logprobs("N", "x"), with_logprobs("y E", "ND", " z")),
    )
    tokens = [[e["token"] for e in choice["logprobs"]["content"]] for choice in choices(out)]
    # An entry leaves with the first character of its token: " E" with its blank, "N" when it is
    # clear that it is no stop.
    assert tokens == [["a", " E"], ["N", "x"], ["y E"]]
    assert said(out) == "a ENxy "


def test_held_log_probabilities_leave_with_text_that_is_flushed() -> None:
    out = run(Cutter("openai.chat", STOPS), sse(with_logprobs("a", "E"), chat(None, "stop")))
    assert [choice["delta"].get("content") for choice in choices(out)] == ["a", "E", None]
    assert [[e["token"] for e in choice["logprobs"]["content"]] for choice in choices(out)[:2]] == [
        ["a"],
        ["E"],
    ]


def test_an_echoed_prompt_is_skipped_by_its_length() -> None:
    def frame(text: str) -> dict[str, Any]:
        return {"choices": [{"index": 0, "text": text, "finish_reason": None, "logprobs": None}]}

    prompt = "say END\U0001f600 "
    cutter = Cutter("openai.completions", STOPS, skip_chars=len(prompt))
    out = run(cutter, sse(frame("say E"), frame("ND\U0001f600 yes E"), frame("ND no")))
    assert (
        "".join(event["choices"][0]["text"] for event in events(out) if event != "[DONE]")
        == prompt + "yes "
    )
    assert cutter.matches[0].start == len(prompt) + 4


def completion(text: str, *tokens: str) -> bytes:
    choice = {"index": 0, "text": text, "finish_reason": None, "logprobs": {"tokens": list(tokens)}}
    return sse({"choices": [choice]})


def entries(out: bytes) -> list[list[str]]:
    return [event["choices"][0]["logprobs"]["tokens"] for event in events(out) if event != "[DONE]"]


def test_halves_of_a_character_do_not_move_the_log_probabilities_behind_them() -> None:
    high, low = "\ud83d", "\ude00"
    cutter = Cutter("openai.completions", STOPS, skip_chars=1)
    frames = [completion(high, high), completion(high, high), completion(low + "xE", low, "x", "E")]
    out = [cutter.feed(frame) for frame in frames]
    # The echo is the first half, alone; the second waits for its other half, and its entry with it;
    # "E" may become a stop.
    assert [entries(part) for part in out] == [[[high]], [[]], [[high, low, "x"]]]
    assert [events(part)[0]["choices"][0]["text"] for part in out] == [high, "", "\U0001f600x"]


def test_entries_shorter_than_their_text_never_leave_before_it() -> None:
    cutter = Cutter("openai.completions", STOPS)
    out = cutter.feed(completion("\U0001f600xE", "\ude00", "x", "E"))
    assert entries(out) == [["\ude00", "x"]], "the first entry is two bytes short, and E is held"


def test_a_half_echoed_character_still_counts_after_an_error() -> None:
    for on_error in ("flush", "drop"):
        cutter = Cutter("openai.completions", STOPS, skip_chars=3, on_error=on_error)  # type: ignore[arg-type] # a loop over its words
        out = run(
            cutter,
            [completion("\ud83d"), sse({"error": {"message": "busy"}}), completion("abcEND")],
        )
        texts = [event["choices"][0]["text"] for event in events(out) if "choices" in event]
        assert texts == ["\ud83d", "abc"], on_error
        assert cutter.matches[0].start == 4


@pytest.mark.parametrize("word", [None, "", "null"])
def test_a_finish_reason_that_says_nothing_is_none(word: str | None) -> None:
    """Servers send an empty string, or the word, where others send null; text held behind it would
    be let go.
    """
    for dialect in ("openai.chat", "openai.completions"):
        cutter = Cutter(dialect, STOPS)
        frames = [{**chat(text, word)["choices"][0], "text": text} for text in ("a E", "N", "D b")]
        run(cutter, [sse({"choices": [frame]}) for frame in frames])
        assert [match.start for match in cutter.matches] == [2]
        assert cutter.ended
    gemini = Cutter("gemini", STOPS)
    for text in ("a E", "ND"):
        reason = "FINISH_REASON_UNSPECIFIED" if word else word
        gemini.feed(
            sse({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": reason}]})
        )
    assert [match.start for match in gemini.matches] == [2]


def parts(*texts: str, thought: str = "END") -> list[dict[str, Any]]:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": thought}]}
    return [
        thinking,
        *({"type": "text", "text": text} for text in texts),
        {"type": "reference", "reference_ids": [1]},
    ]


def test_content_as_a_list_of_parts_is_read_too() -> None:
    """Mistral's reasoning models: thoughts are left alone, and what stands behind a cut goes."""
    cutter = Cutter("openai.chat", STOPS)
    out = [
        cutter.feed(sse(chat(None, delta={"content": content})))
        for content in (parts("a E"), "N", parts("D b", "c"))
    ]
    first, second, third = (events(part)[0]["choices"][0] for part in out)
    assert first["delta"]["content"] == parts("a ")
    assert (second["delta"]["content"], third["delta"]["content"]) == ("", parts("")[:2])
    assert (third["finish_reason"], third["stop_reason"]) == ("stop", "END")
    body = json.dumps(
        {"choices": [{"message": {"content": parts("a END b", "c")}, "finish_reason": "stop"}]}
    ).encode()
    cut = json.loads(Cutter("openai.chat", STOPS).body(body))["choices"][0]
    assert cut["message"]["content"] == parts("a ")[:2]
    thinks = Cutter("openai.chat", STOPS, cut_reasoning=True)
    cut = json.loads(thinks.body(body))["choices"][0]
    assert cut["message"]["content"] == parts("", thought="")[:1]
    assert thinks.matches[0].reasoning


def test_a_frame_that_cannot_be_read_changes_nothing_even_like_the_last() -> None:
    def frame(reasoning: bytes, content: bytes) -> bytes:
        return b'data: {"choices":[{"index":0,"delta":{"reasoning":"%s","content":"%s"}}]}\n\n' % (
            reasoning,
            content,
        )

    bad = frame(rb"\x", b"yEND")
    cutter = Cutter("openai.chat", STOPS, on_malformed="pass")
    assert run(cutter, [frame(b"a", b"x"), bad, frame(b"", b"z")]) == frame(
        b"a", b"x"
    ) + bad + frame(b"", b"z")
    failing = Cutter("openai.chat", STOPS)
    with pytest.raises(WireError, match="unknown escape") as caught:
        failing.feed(frame(b"a", b"x") + frame(rb"\x", b"yE"))
    assert caught.value.output == frame(b"a", b"x")
    many = Cutter("openai.chat", STOPS, max_choices=1)
    two = {"choices": [chat("x")["choices"][0], chat("y", index=1)["choices"][0]]}
    with pytest.raises(WireError, match="max_choices") as caught:
        many.feed(sse(chat("EN"), two))
    assert said(caught.value.output) == "EN", "held text, not that of the frame"


def test_a_last_event_may_have_blanks_behind_it() -> None:
    cutter = Cutter("openai.chat", STOPS)
    out = run(cutter, sse(chat("a E")) + b"data: [DONE] \n\n")
    assert out.endswith(b"data: [DONE] \n\n")
    assert out.index(b'"E"') < out.index(b"[DONE]")


def test_text_and_finish_in_one_event_flush_into_it() -> None:
    out = run(Cutter("openai.chat", STOPS), sse(chat("a E"), chat("N", "length")))
    assert [(c["delta"]["content"], c["finish_reason"]) for c in choices(out)] == [
        ("a ", None),
        ("EN", "length"),
    ]
    body = sse(
        {"candidates": [{"content": {"parts": [{"text": "a E"}]}, "finishReason": "STOP"}]},
        end="\r\n",
    )
    assert run(Cutter("gemini", STOPS), body) == body


def test_a_finish_without_text_is_preceded_by_a_frame_of_the_streams_own_pattern() -> None:
    first = {"id": "c", "x": [1.50, {"k": "v"}], **chat("a E")}
    out = run(Cutter("openai.chat", STOPS), sse(first, chat(None, "stop"), "[DONE]"))
    made = events(out)[1]
    assert made["id"] == "c"
    assert made["x"] == [1.5, {"k": "v"}]
    assert made["choices"][0]["delta"] == {"content": "E"}
    assert b'"x": [1.5' in out.split(b"\n\n")[1], "the spelling of the pattern is kept"


def test_escapes_of_one_character_split_over_two_deltas() -> None:
    body = [
        b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % text
        for text in (rb"a\ud83d", rb"\ude00", rb"b")
    ]
    out = run(Cutter("openai.chat", STOPS), body)
    assert said_raw(out) == ["a", "\U0001f600", "b"], "a half waits for its other half"
    cutter = Cutter("openai.chat", ["\U0001f600"])
    assert said_raw(run(cutter, body)) == ["a", ""]
    assert cutter.matches[0].stop == "\U0001f600"
    lone = [
        b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % text
        for text in (rb"a\ud83d", rb"b", rb"\ude00c")
    ]
    assert "".join(said_raw(run(Cutter("openai.chat", STOPS), lone))) == "a\ud83db\ude00c", (
        "lone halves pass as they came"
    )


LONE_AT_THE_END = {
    "openai.chat": (
        rb'data: {"choices":[{"delta":{"content":"xN\ud83d"}}]}',
        rb'"finish_reason":"stop"',
    ),
    "openai.completions": (rb'data: {"choices":[{"text":"xN\ud83d"}]}', rb'"finish_reason":"stop"'),
    "gemini": (
        rb'data: {"candidates":[{"content":{"parts":[{"text":"xN\ud83d"}]}}]}',
        rb'"finishReason":"STOP"',
    ),
    "ollama.chat": (rb'{"message":{"content":"xN\ud83d"},"done":false}', rb'"done":true'),
    "ollama.generate": (rb'{"response":"xN\ud83d","done":false}', rb'"done":true'),
    "llama.cpp": (rb'data: {"content":"xN\ud83d","stop":false}', rb'"stop":true'),
    "tgi": (
        rb'data: {"token":{"text":"xN\ud83d"},"generated_text":null}',
        rb'"generated_text":"x"',
    ),
    "anthropic.messages": (
        rb'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"xN\ud83d"}}',
        rb'"stop_reason":"stop_sequence"',
    ),
    "openai.responses": (
        rb'data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"i","delta":"xN\ud83d"}',
        rb'"type":"response.completed"',
    ),
    "cohere.chat": (
        rb'data: {"type":"content-delta","delta":{"message":{"content":{"text":"xN\ud83d"}}}}',
        rb'"finish_reason":"STOP_SEQUENCE"',
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stop_that_the_end_of_the_input_completes_ends_the_answer_too(
    dialect: str,
) -> None:
    """Half of a character that nothing follows is read as U+FFFD, which completes the stop in a
    frame that has to be made.
    """
    frame, ending = LONE_AT_THE_END[dialect]
    cutter = Cutter(dialect, ["N\ufffd"])
    out = cutter.feed(frame + b"\n\n")
    assert b'"x"' in out
    assert ending not in out
    assert ending in cutter.finish()
    assert cutter.ended
    assert [(match.stop, match.start) for match in cutter.matches] == [("N\ufffd", 1)]


def said_raw(out: bytes) -> list[str]:
    return [event["choices"][0]["delta"]["content"] for event in events(out) if event != "[DONE]"]


ERRORS = {
    "openai.chat": (sse(chat("a E")), sse({"error": {"message": "overloaded END", "code": 529}})),
    "anthropic.messages": (
        sse(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": "a E"},
            }
        ),
        sse({"type": "error", "error": {"type": "overloaded_error", "message": "END"}}),
    ),
    "openai.responses": (
        sse(
            {
                "type": "response.output_text.delta",
                "output_index": 0,
                "content_index": 0,
                "delta": "a E",
            }
        ),
        sse({"type": "error", "message": "END"}),
    ),
    "cohere.chat": (
        sse({"type": "content-delta", "delta": {"message": {"content": {"text": "a E"}}}}),
        sse({"type": "error", "message": "END"}),
    ),
    "ollama.chat": (b'{"message":{"content":"a E"},"done":false}\n', b'{"error":"END"}\n'),
    "tgi": (
        sse({"token": {"text": "a E", "special": False}}, prefix="data:"),
        sse({"error": "END", "error_type": "x"}, prefix="data:"),
    ),
    "llama.cpp": (
        sse({"content": "a E", "stop": False}),
        b'error: {"code":500,"message":"END"}\n\n',
    ),
}


@pytest.mark.parametrize("dialect", ERRORS)
def test_an_error_in_mid_stream_comes_after_held_text_and_untouched(dialect: str) -> None:
    text, error = ERRORS[dialect]
    out = run(Cutter(dialect, STOPS), text + error)
    assert out.endswith(error)
    flushed = out[: -len(error)]
    assert b'"E"' in flushed
    assert flushed.count(b'"a "') == 1
    dropped = run(Cutter(dialect, STOPS, on_error="drop"), text + error)
    assert dropped.endswith(error)
    assert b'"E"' not in dropped


def test_an_upstream_that_stopped_by_itself_passes() -> None:
    body = sse(chat("a"), chat("b", "stop", stop_reason="END"), "[DONE]")
    cutter = Cutter("openai.chat", STOPS)
    assert run(cutter, body) == body
    assert cutter.ended
    assert not cutter.matches


def test_every_content_block_is_a_text_of_its_own() -> None:
    def delta(index: int, text: str) -> dict[str, Any]:
        return {
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": "text_delta", "text": text},
        }

    def stop(index: int) -> dict[str, Any]:
        return {"type": "content_block_stop", "index": index}

    cutter = Cutter("anthropic.messages", STOPS)
    body = sse(
        delta(0, "a E"),
        stop(0),
        delta(1, "ND "),
        stop(1),
        delta(2, "b END c"),
        stop(2),
        delta(3, "d"),
    )
    kinds = [
        (event["type"], event.get("index"), event.get("delta"))
        for event in events(cutter.feed(body))
    ]
    assert kinds == [
        ("content_block_delta", 0, {"type": "text_delta", "text": "a "}),
        ("content_block_delta", 0, {"type": "text_delta", "text": "E"}),
        ("content_block_stop", 0, None),
        ("content_block_delta", 1, {"type": "text_delta", "text": "ND "}),
        ("content_block_stop", 1, None),
        ("content_block_delta", 2, {"type": "text_delta", "text": "b "}),
        ("content_block_stop", 2, None),
        ("message_delta", None, {"stop_reason": "stop_sequence", "stop_sequence": "END"}),
        ("message_stop", None, None),
    ]
    assert [(match.block, match.start) for match in cutter.matches] == [(2, 2)]


def test_a_part_that_is_no_text_ends_a_gemini_text() -> None:
    parts = [
        {"text": "a E"},
        {"functionCall": {"name": "f"}},
        {"text": "ND b END c"},
        {"text": "d"},
        {"inlineData": {}},
    ]
    cutter = Cutter("gemini", STOPS)
    out = run(cutter, sse({"candidates": [{"content": {"parts": parts}, "index": 0}]}))
    (candidate,) = events(out)[0]["candidates"]
    assert candidate["content"]["parts"] == [
        {"text": "a E"},
        {"functionCall": {"name": "f"}},
        {"text": "ND b "},
    ]
    assert candidate["finishReason"] == "STOP"


def test_include_stop_sends_the_stop_and_holds_nothing() -> None:
    out = run(Cutter("openai.chat", STOPS, include_stop=True), sse(chat("a E"), chat("ND b")))
    assert [choice["delta"]["content"] for choice in choices(out)] == ["a E", "ND"]


def test_the_field_that_names_the_stop() -> None:
    body = sse(chat("a END"))
    assert choices(run(Cutter("openai.chat", STOPS), body))[0]["stop_reason"] == "END"
    assert choices(run(Cutter("openai.chat", STOPS, stop_field="why"), body))[0]["why"] == "END"
    assert set(choices(run(Cutter("openai.chat", STOPS, stop_field=None), body))[0]) == {
        "index",
        "delta",
        "finish_reason",
    }
    sglang = sse(chat("a", matched_stop=None), chat("END", matched_stop=None))
    last = choices(run(Cutter("openai.chat", STOPS), sglang))[-1]
    assert last["matched_stop"] == "END"
    assert "stop_reason" not in last
    ollama = b'{"response":"END","done":false}\n'
    assert b'"stop_reason"' not in run(Cutter("ollama.generate", STOPS), ollama)
    assert (
        json.loads(run(Cutter("ollama.generate", STOPS, stop_field="stop_reason"), ollama))[
            "stop_reason"
        ]
        == "END"
    )


def test_a_field_of_ones_own_stands_beside_the_familys() -> None:
    body = sse(chat("a END", stop_reason=None, matched_stop=None))

    def last(stop_field: str) -> list[Any]:
        choice = choices(run(Cutter("openai.chat", STOPS, stop_field=stop_field), body))[0]
        return [choice.get(key) for key in ("why", "stop_reason", "matched_stop")]

    assert last("why") == ["END", None, None]
    assert last("stop_reason") == [None, "END", None]
    assert last("matched_stop") == last("auto") == [None, None, "END"]


OWN_KEYS = {
    "openai.chat": ("index", "delta", "message", "finish_reason", "logprobs"),
    "openai.completions": ("index", "text", "finish_reason"),
    "openai.responses": ("status", "output", "incomplete_details"),
    "anthropic.messages": ("stop_reason", "stop_sequence", "content"),
    "gemini": ("finishReason", "content"),
    "ollama.chat": ("done", "done_reason", "message"),
    "ollama.generate": ("done", "done_reason", "response"),
    "llama.cpp": ("stop", "stop_type", "stopping_word", "content"),
    "tgi": ("finish_reason", "generated_tokens"),
    "cohere.chat": ("finish_reason", "usage", "message"),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_key_that_the_dialect_has_itself_is_no_field_for_the_stop(dialect: str) -> None:
    for key in OWN_KEYS[dialect]:
        with pytest.raises(
            ValueError,
            match=rf'stop_field is "{key}": {re.escape(dialect)} has a meaning of its own',
        ):
            Cutter(dialect, STOPS, stop_field=key)
    with pytest.raises(ValueError, match="stop_field is empty"):
        Cutter(dialect, STOPS, stop_field="")


def test_draining_reads_on_for_the_usage_figures() -> None:
    cutter = Cutter("openai.chat", STOPS, on_match="drain")
    usage = sse({"choices": [], "usage": {"total_tokens": 9}}, "[DONE]")
    out = cutter.feed(
        sse(chat("a END"), chat("b"), chat(None, "stop") | {"usage": {"total_tokens": 8}})
    )
    (kept,) = events(out)[1:]
    assert kept["usage"] == {"total_tokens": 8}
    assert [choice["delta"] for choice in kept["choices"]] == [{}], "figures stay, with a choice"
    assert not cutter.ended
    assert cutter.feed(usage) == usage
    assert cutter.ended
    broken = Cutter("openai.chat", STOPS, on_match="drain")
    assert events(run(broken, sse(chat("a END"), chat("b"))))[-1] == "[DONE]", (
        "an upstream that breaks off gets its end"
    )


# --- the Responses API
# ------------------------------------------------------------------------------------------------


def test_made_deltas_move_the_sequence_numbers_behind_them() -> None:
    def event(kind: str, number: int, **more: Any) -> dict[str, Any]:
        return {
            "type": f"response.{kind}",
            "sequence_number": number,
            "output_index": 0,
            "content_index": 0,
            **more,
        }

    body = sse(
        event("output_text.delta", 4, delta="a E"),
        event("output_text.done", 5, text="a E"),
        event("completed", 6, response={}),
    )
    got = events(run(Cutter("openai.responses", STOPS), body))
    assert [(e["type"], e["sequence_number"]) for e in got] == [
        ("response.output_text.delta", 4),
        ("response.output_text.delta", 5),
        ("response.output_text.done", 6),
        ("response.completed", 7),
    ]
    assert got[2]["text"] == "a E"


def test_an_end_is_not_written_into_another_item() -> None:
    def item(at: int, **more: Any) -> dict[str, Any]:
        return {"type": "response.output_item.added", "output_index": at, "item": more}

    delta = {
        "type": "response.output_text.delta",
        "output_index": 0,
        "content_index": 0,
        "item_id": "m",
        "delta": "a END",
    }
    frames = sse(
        item(0, id="m", type="message", content=[]), item(1, id="f", type="function_call"), delta
    )
    done = {
        event["type"]: event for event in events(run(Cutter("openai.responses", STOPS), frames))
    }
    made = done["response.output_item.done"]["item"]
    assert (made["id"], made["type"], made["content"][0]["text"]) == ("m", "message", "a ")
    assert done["response.completed"]["response"]["output"] == [made]


def test_an_end_repeats_the_annotations_and_log_probabilities_that_left() -> None:
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    note = {"type": "url_citation", "url": "x"}

    def delta(*tokens: str) -> dict[str, Any]:
        probs = [entry(token) for token in tokens]
        return {
            "type": "response.output_text.delta",
            **place,
            "delta": "".join(tokens),
            "logprobs": probs,
        }

    annotation = {"type": "response.output_text.annotation.added", **place, "annotation": note}
    for template in (
        [],
        [
            {
                "type": "response.content_part.added",
                **place,
                "part": {"text": "", "annotations": [], "logprobs": []},
            }
        ],
    ):
        out = run(
            Cutter("openai.responses", STOPS),
            sse(*template, delta("a", " E"), annotation, delta("ND", " b")),
        )
        done = {event["type"]: event for event in events(out)}
        part = done["response.content_part.done"]["part"]
        assert (part["text"], part["annotations"]) == ("a ", [note])
        left = [entry("a"), entry(" E")]  # with the first character of its token
        assert part["logprobs"] == done["response.output_text.done"]["logprobs"] == left
        assert done["response.completed"]["response"]["output"][0]["content"] == [part]


def test_a_drained_response_that_ran_into_its_limit_is_complete() -> None:
    part = {
        "type": "output_text",
        "text": "a END b",
        "logprobs": [entry("a"), entry(" END"), entry(" b")],
    }
    item = {
        "type": "message",
        "status": "incomplete",
        "content": [part, {"type": "refusal", "refusal": "x"}],
    }
    response = {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [item, item],
        "usage": {"t": 1},
    }
    place = {"output_index": 0, "content_index": 0}
    body = sse(
        {"type": "response.output_text.delta", **place, "delta": "a END b"},
        {"type": "response.output_text.done", **place, "text": "a END b"},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.output_item.added", "output_index": 1, "item": item},
        {"type": "response.incomplete", "response": response},
    )
    out = run(Cutter("openai.responses", STOPS, on_match="drain"), body)
    got = events(out)
    assert b"event: response.completed\n" in out
    assert b"response.incomplete" not in out
    assert [e["type"].removeprefix("response.") for e in got][1:] == [
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    last = got[-1]["response"]
    assert last["status"] == "completed"
    assert last["incomplete_details"] is None
    assert last["usage"] == {"t": 1}
    (kept,) = last["output"]
    assert kept["content"] == [
        {"type": "output_text", "text": "a ", "logprobs": [entry("a"), entry(" END")]}
    ]
