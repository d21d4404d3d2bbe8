"""The cutter reads what the readers behind it read: white space before JSON, one text in two places,
the shape of the other dialect, numbers that mean nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from wire_shapes import STOPS, chat, choices, events, run, said, sse

from holdback.wire import Cutter, WireError

TEXT = '{"choices":[{"index":0,"delta":{"content":"a END b"}}]}'


def texts(out: bytes, *path: str) -> list[Any]:
    """What stands at a path in each choice that has it."""
    found = []
    for event in events(out):
        for choice in event["choices"] if event != "[DONE]" else []:
            value: Any = choice
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            if value is not None:
                found.append(value)
    return found


# --- white space before JSON
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head", ["data:  ", "data:\t", "data: \t ", "data:\ndata: ", "data\ndata:", "data:\n: x\ndata:"]
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_white_space_before_the_object_is_white_space(head: str, end: str) -> None:
    body = (head + TEXT + "\n\n").replace("\n", end).encode()
    for pieces in ([body], [bytes([byte]) for byte in body]):
        cutter = Cutter("openai.chat", STOPS, on_unread="fail")
        out = run(cutter, pieces)
        assert texts(out, "delta", "content") == ["a "]
        assert cutter.ended
    untouched = Cutter("openai.chat", ["zzz"])
    assert run(untouched, body) == body


def test_white_space_before_and_after_the_last_word() -> None:
    body = b"data: \t[DONE] \n\n"
    cutter = Cutter("openai.chat", STOPS, on_unread="fail")
    assert run(cutter, sse(chat("E")) + body).endswith(b"[DONE] \n\n")
    assert cutter.ended


# --- one text in two places
# ------------------------------------------------------------------------------------------------


def twice(piece: str, copy: Any, slot: str = "message", first: bool = False) -> dict[str, Any]:
    own: dict[str, Any] = {"delta": {"content": piece}}
    other: dict[str, Any] = {slot: copy if slot == "text" else {"content": copy}}
    both = other | own if first else own | other
    return {"choices": [{"index": 0, **both, "finish_reason": None}]}


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("slot", ["message", "text"])
def test_a_piece_that_is_said_again_is_cut_with_it(slot: str, first: bool) -> None:
    body = sse(*(twice(piece, piece, slot, first) for piece in ("one ", "E", "ND two")))
    cutter = Cutter("openai.chat", STOPS, on_unread="fail")
    out = run(cutter, body)
    path = (slot,) if slot == "text" else (slot, "content")
    assert "".join(texts(out, *path)) == "".join(texts(out, "delta", "content")) == "one "
    assert cutter.texts_read == 11
    passing = Cutter("openai.chat", ["zzz"])
    assert run(passing, body) == body


@pytest.mark.parametrize("first", [False, True])
def test_the_text_so_far_is_cut_to_what_was_emitted(first: bool) -> None:
    so_far, frames = "", []
    for piece in ("one ", "E", "N", "T", "END two"):
        so_far += piece
        frames.append(twice(piece, so_far, first=first))
    cutter = Cutter("openai.chat", STOPS)
    out = run(cutter, sse(*frames))
    assert texts(out, "delta", "content") == ["one ", "", "", "ENT", ""]
    assert texts(out, "message", "content") == ["one ", "one ", "one ", "one ENT", "one ENT"]
    assert run(Cutter("openai.chat", ["zzz"]), sse(*frames)) == sse(*frames)


def test_a_copy_shows_nothing_that_was_not_read() -> None:
    """A copy that is neither the piece nor the text so far, and one that begins late."""
    out = run(Cutter("openai.chat", STOPS), sse(twice("a", "a END b"), twice("c", "never")))
    assert texts(out, "message", "content") == ["a", "ac"]
    late = sse(chat("a "), twice("b", "a b"), twice("c", "c"))
    assert texts(run(Cutter("openai.chat", STOPS), late), "message", "content") == ["", "c"]
    other = run(Cutter("openai.chat", STOPS), sse(chat("a"), {"choices": [{"text": "END b"}]}))
    assert texts(other, "text") == [""]


def test_copies_of_thoughts_are_cut_where_thoughts_are() -> None:
    def frame(text: str) -> dict[str, Any]:
        return {
            "choices": [{"index": 0, "delta": {"reasoning": text}, "message": {"reasoning": text}}]
        }

    body = sse(frame("a E"), frame("ND b"))
    assert run(Cutter("openai.chat", STOPS), body) == body
    out = run(Cutter("openai.chat", STOPS, cut_reasoning=True), body)
    assert texts(out, "message", "reasoning") == texts(out, "delta", "reasoning") == ["a ", ""]


def test_copies_in_a_body() -> None:
    cutter = Cutter("openai.chat", STOPS)
    choice = {"index": 0, "message": {"content": "a END b"}, "text": "a END b"}
    out = json.loads(cutter.body(json.dumps({"choices": [choice]}).encode()))
    assert out["choices"][0]["message"] == {"content": "a "}
    assert out["choices"][0]["text"] == "a "
    both = {"index": 0, "delta": {"content": "a END b"}, "message": {"content": "a END b"}}
    out = json.loads(Cutter("openai.chat", STOPS).body(json.dumps({"choices": [both]}).encode()))
    assert out["choices"][0]["delta"] == out["choices"][0]["message"] == {"content": "a "}
    other = {"index": 0, "message": {"content": "a"}, "text": "x END y"}
    out = json.loads(Cutter("openai.chat", STOPS).body(json.dumps({"choices": [other]}).encode()))
    assert out["choices"][0]["text"] == "a", "what is said in the second place is not the text"


def test_a_key_that_stands_twice_in_one_object_is_refused_still() -> None:
    for choice in (
        '{"delta":{"content":"a"},"delta":{"content":"b"}}',
        '{"delta":{"content":"a","content":"b"}}',
        '{"text":"a","text":"b"}',
        '{"message":{},"message":{}}',
    ):
        with pytest.raises(WireError, match="for the second time"):
            Cutter("openai.chat", STOPS).feed(sse('{"choices":[' + choice + "]}"))


# --- the other dialect's shape
# ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["openai.chat", "openai.completions"])
@pytest.mark.parametrize("place", ["delta", "message", "text"])
def test_an_answer_is_cut_as_what_it_is(dialect: str, place: str) -> None:
    """Mistral's FIM and agents answer in the shape of chat under a path of completions."""

    def choice(text: str, finish: str | None = None) -> dict[str, Any]:
        where = {"text": text} if place == "text" else {place: {"content": text}}
        return {"choices": [{"index": 0, **where, "finish_reason": finish}]}

    cutter = Cutter(dialect, STOPS, on_unread="fail")
    out = run(cutter, sse(choice("one E"), choice("ND two"), choice("", "length")))
    path = ("text",) if place == "text" else (place, "content")
    assert texts(out, *path) == ["one ", ""]
    assert [match.start for match in cutter.matches] == [4]
    assert b'"finish_reason": "stop"' in out
    held = Cutter(dialect, STOPS)
    out = run(held, sse(choice("one E"), "[DONE]"))
    assert texts(out, *path) == ["one ", "E"], "what is made has the shape of the stream"
    body = Cutter(dialect, STOPS)
    whole = json.loads(body.body(json.dumps(choice("one END", "length")).encode()))
    assert whole["choices"][0] == choice("one ", "stop")["choices"][0] | {"stop_reason": "END"}


# --- numbers
# ---------------------------------------------------------------------------------------------------------------


def test_a_number_that_counts_chunks_is_no_choice_where_one_was_asked_for() -> None:
    frames = [chat("a E", index=0), chat("ND b", index=1), chat("", "stop", index=2)]
    cutter = Cutter("openai.chat", STOPS, choices=1)
    out = run(cutter, sse(*frames))
    assert "".join(texts(out, "delta", "content")) == "a "
    assert [match.choice for match in cutter.matches] == [0]
    assert cutter.ended
    long = [chat("x", index=number) for number in range(300)]
    cutter = Cutter("openai.chat", STOPS, choices=1)
    assert run(cutter, sse(*long, chat("", "stop", index=300), "[DONE]")) == sse(
        *long, chat("", "stop", index=300), "[DONE]"
    )
    held = run(Cutter("openai.chat", STOPS, choices=1), sse(chat("E", index=4), "[DONE]"))
    assert said(held, index=4) == "E", "held text leaves under the number that came last"


def test_several_choices_in_one_frame_are_several_whatever_was_asked_for() -> None:
    both = {"choices": [chat(text, index=n)["choices"][0] for n, text in enumerate(("E", "x"))]}
    cutter = Cutter("openai.chat", STOPS, choices=1)
    out = run(cutter, sse(both, chat("ND", index=0), chat("ND", index=1)))
    assert [match.choice for match in cutter.matches] == [0]
    assert said(out, 1) == "xND"


@pytest.mark.parametrize("dialect", ["openai.chat", "gemini", "llama.cpp", "cohere.chat"])
def test_a_null_number_is_none(dialect: str) -> None:
    frame: dict[str, dict[str, Any]] = {
        "openai.chat": {"choices": [{"index": None, "delta": {"content": "a END b"}}]},
        "gemini": {"candidates": [{"index": None, "content": {"parts": [{"text": "a END b"}]}}]},
        "llama.cpp": {"index": None, "content": "a END b"},
        "cohere.chat": {
            "type": "content-delta",
            "index": None,
            "delta": {"message": {"content": {"text": "a END b"}}},
        },
    }
    cutter = Cutter(dialect, STOPS)
    assert b"b" not in run(cutter, sse(frame[dialect])).replace(b"cb", b"").split(b"a ")[1][:2]
    assert [match.choice for match in cutter.matches] == [0]


def test_many_choices_that_all_hold_text_let_go_of_it_at_the_end() -> None:
    count = 20_000
    frames = sse(*(chat("EN", index=number) for number in range(count)))
    cutter = Cutter("openai.chat", STOPS, choices=count, max_choices=count)
    out = cutter.feed(frames)
    assert len(out) < len(frames)
    assert cutter.finish().count(b'"EN"') == count


# --- ends
# ----------------------------------------------------------------------------------------------------------------


def test_a_drained_frame_with_figures_keeps_its_choice() -> None:
    """Clients of servers that always send one look for it (Mistral's)."""
    last = chat("more", "length") | {"usage": {"total_tokens": 9}}
    cutter = Cutter("openai.chat", STOPS, on_match="drain")
    out = run(cutter, sse(chat("a END"), chat("b"), last, "[DONE]"))
    (kept,) = [event for event in events(out) if event != "[DONE]" and event.get("usage")]
    assert kept["usage"] == {"total_tokens": 9}
    assert kept["choices"] == [
        {"index": 0, "delta": {"content": ""}, "finish_reason": "stop", "stop_reason": "END"}
    ]
    assert [choice["delta"]["content"] for choice in choices(out)] == ["a ", ""]


def test_a_block_that_the_cut_has_emptied_goes_from_a_body() -> None:
    """Anthropic refuses an empty text block when it comes back as history."""

    def cut(*blocks: dict[str, str]) -> Any:
        body = {"content": blocks, "stop_reason": "end_turn", "stop_sequence": None}
        cutter = Cutter("anthropic.messages", ["END"])
        out = json.loads(cutter.body(json.dumps(body).encode()))
        assert (out["stop_reason"], out["stop_sequence"]) == ("stop_sequence", "END")
        return out["content"]

    text = {"type": "text", "text": "END x"}
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert cut(text) == []
    assert cut(text, thought) == []
    assert cut(thought, text) == [thought]
    assert cut(thought, {"type": "text", "text": "a END"}) == [
        thought,
        {"type": "text", "text": "a "},
    ]
