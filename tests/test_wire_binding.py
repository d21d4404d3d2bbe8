"""What the cutter is not meant for: input that cannot be read, limits, framing; and the binding
itself.
"""

from __future__ import annotations

import copy
import pickle
import threading

import pytest
from wire_shapes import STOPS, chat, run, said, sse, with_logprobs

import holdback
from holdback import wire
from holdback.wire import Cutter, WireError

# --- malformed input and limits
# ---------------------------------------------------------------------------------------

MALFORMED = {
    "bad JSON": (b'data: {"choices":[}\n\n', "a value is expected"),
    "text behind the object": (b'data: {"choices":[]} x\n\n', "something follows"),
    "an unknown escape": (b'data: {"choices":[{"delta":{"content":"\\x"}}]}\n\n', "unknown escape"),
    "half an escape": (
        b'data: {"choices":[{"delta":{"content":"\\u12"}}]}\n\n',
        "four hexadecimal digits",
    ),
    "bad UTF-8": (b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n', "not UTF-8"),
    "a text twice": (
        b'data: {"choices":[{"delta":{"content":"a","content":"b"}}]}\n\n',
        "second time",
    ),
    "an index that is none": (b'data: {"choices":[{"index":-1}]}\n\n', "whole number"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_frames_fail_or_pass(case: str) -> None:
    frame, message = MALFORMED[case]
    good = sse(chat("a E"))
    cutter = Cutter("openai.chat", STOPS)
    with pytest.raises(WireError, match=message) as caught:
        cutter.feed(good + frame + good)
    error = caught.value
    assert said(error.output) == "a E", "what came before it, and what was held"
    assert (error.frame, error.offset) == (1, len(good))
    assert "frame 1" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.output, again.offset) == (str(error), error.output, error.offset)
    with pytest.raises(WireError, match=message) as caught:
        cutter.feed(b"")
    assert caught.value.output == b""
    passing = Cutter("openai.chat", STOPS, on_malformed="pass")
    assert frame in run(passing, good + frame + good)


def test_what_is_no_object_passes() -> None:
    body = b"data: hello\n\ndata: [1, 2]\n\ndata:\n\nevent: x\n\nid: 7\nretry: 10\n\n: c\n\ndata: 1\ndata: 2\n\n"
    assert run(Cutter("openai.chat", STOPS), body) == body


def test_a_stream_that_breaks_off_inside_a_frame() -> None:
    cutter = Cutter("openai.chat", STOPS)
    out = cutter.feed(sse(chat("a E")) + b'data: {"choices":[{"del')
    with pytest.raises(WireError, match="broke off inside frame 1") as caught:
        cutter.finish()
    assert said(out + caught.value.output) == "a E"


def test_a_last_frame_without_its_blank_line_is_a_frame() -> None:
    body = sse(chat("a E"))[:-2]
    out = run(Cutter("openai.chat", STOPS), body)
    assert said(out) == "a E"
    assert out.endswith(b"\n\n"), "what has to follow it ends it first"
    line = b'{"response":"a","done":true}'
    assert run(Cutter("ollama.generate", STOPS), line) == line


@pytest.mark.parametrize("step", [1, 1000, 1 << 20])
def test_an_endless_line_is_refused(step: int) -> None:
    cutter = Cutter("openai.chat", STOPS, max_frame_bytes=2000)
    body = sse(chat("a")) + b"data: " + b"x" * 5000
    parts = (body[at : at + step] for at in range(0, len(body), step))
    with pytest.raises(WireError, match=r"longer than 2000 bytes \(max_frame_bytes\)"):
        run(cutter, parts)
    long = sse(chat("x" * 3000))
    with pytest.raises(WireError, match="2000"):
        Cutter("openai.chat", STOPS, max_frame_bytes=2000).feed(long)


def test_limits_on_choices_held_entries_and_repeated_text() -> None:
    with pytest.raises(WireError, match=r"more than 2 choices .*max_choices"):
        Cutter("openai.chat", STOPS, max_choices=2).feed(
            sse(*[chat("a", index=index) for index in range(3)])
        )
    heavy = with_logprobs("E")
    heavy["choices"][0]["logprobs"]["content"][0]["pad"] = "x" * 5000
    with pytest.raises(WireError, match="max_held_bytes"):
        Cutter("openai.chat", STOPS, max_held_bytes=1000).feed(sse(heavy))
    with pytest.raises(WireError, match="max_text_bytes"):
        Cutter("tgi", STOPS, max_text_bytes=10).feed(
            sse(*[{"token": {"text": "abcdef", "special": False}}] * 3)
        )


CROWDS = {
    "openai.chat": b'data: {"choices":[' + b"{}," * 2000 + b"{}]}\n\n",
    "gemini": b'data: {"candidates":[{"content":{"parts":[' + b"{}," * 2000 + b"{}]}}]}\n\n",
}


@pytest.mark.parametrize("dialect", CROWDS)
def test_a_frame_of_thousands_of_choices_or_parts_is_refused(dialect: str) -> None:
    with pytest.raises(WireError, match="more than 1024"):
        Cutter(dialect, STOPS).feed(CROWDS[dialect])


def test_many_small_log_probabilities_count_for_what_they_cost() -> None:
    crowd = chat("E", logprobs={"content": [0] * 100_000})
    with pytest.raises(WireError, match="max_held_bytes"):
        Cutter("openai.chat", STOPS, max_held_bytes=1 << 20).feed(sse(crowd))


# --- framing
# ----------------------------------------------------------------------------------------------------------


def test_an_event_of_several_data_lines() -> None:
    body = b'event: x\ndata: {"choices":[{"index":0,\ndata: "delta":{"content":"%s"}}]}\nid: 3\n\n'
    assert run(Cutter("openai.chat", STOPS), body % b"ok") == body % b"ok"
    out = Cutter("openai.chat", STOPS).feed(body % b"a E")
    assert out == b'event: x\ndata: {"choices":[{"index":0, "delta":{"content":"a "}}]}\nid: 3\n\n'


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_ends_of_our_own_use_the_streams_line_ends(end: str) -> None:
    out = run(Cutter("openai.chat", STOPS), sse(chat("END"), end=end))
    assert out.endswith(f"data: [DONE]{end}{end}".encode())


# --- the binding
# ------------------------------------------------------------------------------------------------------


def test_arguments_are_refused_with_their_names() -> None:
    with pytest.raises(ValueError, match=r'unknown dialect "openai": there are openai\.chat, '):
        Cutter("openai")
    with pytest.raises(ValueError, match="stop 1 is empty"):
        Cutter("gemini", ["a", ""])
    with pytest.raises(TypeError, match="stop 0 is bytes"):
        Cutter("gemini", [b"a"])
    with pytest.raises(TypeError, match="tie belongs to the set"):
        Cutter("gemini", holdback.StopSet(["a"]), tie="first")
    with pytest.raises(ValueError, match="on_match must be 'cancel' or 'drain', not 'stop'"):
        Cutter("gemini", on_match="stop")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bytes-like input, not str"):
        Cutter("gemini").feed("text")  # type: ignore[arg-type]
    for name in (
        "choices",
        "skip_chars",
        "max_frame_bytes",
        "max_choices",
        "max_held_bytes",
        "max_text_bytes",
    ):
        with pytest.raises(ValueError, match=rf"{name} must be from 0 to 2\*\*\d\d - 1, not -1"):
            Cutter("gemini", **{name: -1})  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=f"{name} must be an int, not str"):
            Cutter("gemini", **{name: "1"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cut_reasoning must be a bool, not int"):
        Cutter("gemini", cut_reasoning=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dialect must be a str, not int"):
        Cutter(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="START"):
        Cutter("gemini", ["START"], ignore_inside=[("START", "x")])


def test_any_bytes_like_input_is_taken() -> None:
    body = sse(chat("a"))
    for kind in (bytes, bytearray, memoryview):
        assert Cutter("openai.chat", STOPS).feed(kind(body)) == body


def test_matches_are_values() -> None:
    def match() -> wire.WireMatch:
        cutter = Cutter("openai.chat", STOPS)
        cutter.feed(sse(chat("a E"), chat("ND")))
        return cutter.matches[0]

    one, other = match(), match()
    assert one == other
    assert hash(one) == hash(other)
    assert one != "END"
    assert repr(one) == (
        "WireMatch(stop='END', index=0, start=2, end=5, choice=0, block=None, reasoning=False, start_frame=0, end_frame=1)"
    )
    assert one.stop is STOPS[0], "the very object that the set was given"


def test_a_set_is_shared() -> None:
    stops = holdback.StopSet(STOPS)
    cutters = [Cutter(dialect, stops) for dialect in wire.DIALECTS]
    assert all(cutter.stops is stops for cutter in cutters)
    assert [cutter.dialect for cutter in cutters] == list(wire.DIALECTS)


def test_no_stops_means_no_change() -> None:
    body = sse(chat("a END"), chat(None, "stop"), "[DONE]")
    for stops in (None, []):
        assert run(Cutter("openai.chat", stops), body) == body


@pytest.mark.thread_unsafe
def test_one_cutter_belongs_to_one_caller_at_a_time() -> None:
    cutter = Cutter("openai.chat", STOPS)
    block = sse(chat("a")) * 20_000
    outcomes: list[str] = []

    def feed() -> None:
        try:
            cutter.feed(block)
        except RuntimeError as error:
            outcomes.append(str(error))
        else:
            outcomes.append("")

    threads = [threading.Thread(target=feed) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "" in outcomes, "one of them was first"
    assert all(not outcome or "another thread" in outcome for outcome in outcomes)
    assert cutter.feed(sse(chat("b"))) == sse(chat("b")), "and the cutter is sound"


def test_a_cutter_does_not_copy() -> None:
    with pytest.raises(TypeError):
        copy.deepcopy(Cutter("openai.chat"))
