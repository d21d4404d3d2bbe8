"""What the cutter says about frames that it could not place (docs/wire.md, "What is not read")."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from wire_shapes import DIALECTS, STOPS, chat, sse

from holdback.wire import Cutter, WireError

WHOLE = b'{"choices":[{"index":0,"message":{"content":"a END b"},"finish_reason":"stop"}]}'
DELTA = {
    "type": "content_block_delta",
    "index": 0,
    "delta": {"type": "text_delta", "text": "a END b"},
}

FOREIGN: dict[str, Any] = {
    "openai.chat": {"choices": [{"index": 0, "delta": {"content": "a END b"}}]},
    "openai.completions": {"choices": [{"index": 0, "text": "a END b"}]},
    "openai.responses": {"type": "response.output_text.delta", "delta": "a END b"},
    "anthropic.messages": DELTA,
    "gemini": {"candidates": [{"content": {"parts": [{"text": "a END b"}]}}]},
    "ollama.chat": {"model": "m", "message": {"role": "assistant", "content": "a END b"}},
    "ollama.generate": {"model": "m", "response": "a END b", "done": False},
    "llama.cpp": {"content": "a END b", "stop": False},
    "cohere.chat": {
        "type": "content-delta",
        "index": 0,
        "delta": {"message": {"content": {"text": "a END b"}}},
    },
    "tgi": {"index": 1, "token": {"text": "a END b", "special": False}, "generated_text": None},
}

# Frames without text that providers send; none of them may count.
SILENT: dict[str, list[Any]] = {
    "openai.chat": [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"content": None, "refusal": "no END"}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"function": {"arguments": "END"}}]}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_content": "END"}}]},
        {"choices": [{"index": 0, "delta": None, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"annotations": [{"type": "url_citation"}]}}]},
        {"choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {"start": 1}}]},
        {"choices": [], "usage": {"total_tokens": 3}},
        {"id": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        {"id": "1", "object": "chat.completion.chunk", "usage": {"total_tokens": 3}},
        {"id": "1", "choices": None},
        {"id": "1", "x_groq": {"id": "req"}, "choices": [{"index": 0, "delta": {}}]},
        {"citations": ["https://example.org"]},
        {"type": "ping"},
        {"error": {"message": "too long", "code": 400}},
        {"detail": "no such model"},
        {},
    ],
    "openai.completions": [
        {"choices": [{"index": 0, "text": "", "finish_reason": None}]},
        {"choices": [], "usage": {"total_tokens": 3}},
        {"error": {"message": "x"}},
    ],
    "openai.responses": [
        {"type": "response.created", "response": {"output": []}},
        {"type": "response.reasoning_summary_text.delta", "delta": "END"},
        {"type": "response.function_call_arguments.delta", "delta": "END"},
        {"type": "response.audio.transcript.delta", "delta": "END"},
        {"type": "response.something_new", "delta": "x"},
        {"type": "error", "message": "x"},
        {"type": "keepalive", "sequence_number": 3},
    ],
    "anthropic.messages": [
        {"type": "ping"},
        {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "E"}},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "END"}},
        {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "x"}},
        {"type": "content_block_delta", "delta": {"type": "citations_delta", "citation": {}}},
        {"type": "content_block_start", "content_block": {"type": "server_tool_use", "id": "x"}},
        {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 3}},
        {"type": "vertex_event"},
        {"type": "error", "error": {"type": "overloaded_error", "message": "x"}},
    ],
    "gemini": [
        {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]},
        {"usageMetadata": {"totalTokenCount": 3}, "modelVersion": "x"},
        {"promptFeedback": {"blockReason": "SAFETY"}},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "END"}}]}}]},
        {"error": {"code": 503, "message": "x"}},
    ],
    "ollama.chat": [
        {"model": "m", "message": {"role": "assistant", "content": ""}, "done": False},
        {"model": "m", "message": {"content": "", "thinking": "END"}, "done": False},
        {"error": "no such model"},
    ],
    "ollama.generate": [
        {"model": "m", "response": "", "done": True, "done_reason": "load"},
        {"error": "x"},
    ],
    "llama.cpp": [
        {"index": 0, "content": "", "tokens": [], "stop": False},
        {"content": "", "stop": True, "prompt": "say END", "timings": {}},
        {"error": {"message": "x"}},
        {"prompt_progress": {"total": 3}},
    ],
    "cohere.chat": [
        {"type": "message-start", "id": "1", "delta": {"message": {"content": []}}},
        {"type": "content-start", "index": 0, "delta": {"message": {"content": {"text": ""}}}},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"thinking": "E"}}}},
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "END"}}},
        {"type": "tool-call-delta", "delta": {"message": {"tool_calls": {"id": "1"}}}},
        {"type": "citation-start", "delta": {"message": {"citations": {"text": "END"}}}},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {}}},
        {"id": "1", "message": "too many requests"},
    ],
    "tgi": [
        {"index": 1, "token": {"id": 2, "text": "</s>", "special": True}, "generated_text": "x"},
        {"error": "x", "error_type": "validation"},
    ],
}


def framed(dialect: str, data: bytes) -> bytes:
    return data + b"\n" if dialect.startswith("ollama") else b"data: " + data + b"\n\n"


def fed(cutter: Cutter, body: bytes) -> bytes:
    return cutter.feed(body) + cutter.finish()


def check_unread(dialect: str, body: bytes, first: str, count: int = 1) -> None:
    """It passes and is counted; with `on_unread="fail"` it does not pass."""
    cutter = Cutter(dialect, STOPS)
    assert fed(cutter, body) == body
    assert (cutter.texts_read, cutter.frames_unread) == (0, count)
    assert cutter.unread == first
    assert not cutter.matches
    failing = Cutter(dialect, STOPS, on_unread="fail")
    with pytest.raises(WireError, match=r"could not be searched for stops") as caught:
        fed(failing, body)
    assert caught.value.output == b""
    without = Cutter(dialect, on_unread="fail")
    assert fed(without, body) == body, "where nothing is looked for, nothing can be missed"


@pytest.mark.parametrize("gap", [b"", b"\n", b"\r\n\r\n"])
def test_a_whole_body_that_is_fed_as_a_stream(gap: bytes) -> None:
    check_unread("openai.chat", WHOLE + gap, WHOLE.decode())


def test_a_compressed_stream() -> None:
    body = gzip.compress(sse(chat("a END b")), mtime=0)
    cutter = Cutter("openai.chat", STOPS)
    assert fed(cutter, body) == body
    assert cutter.frames_unread > 0
    with pytest.raises(WireError, match="no frame of a stream"):
        fed(Cutter("openai.chat", STOPS, on_unread="fail"), body)


@pytest.mark.parametrize("theirs", DIALECTS)
@pytest.mark.parametrize("ours", DIALECTS)
def test_the_text_of_another_dialect(ours: str, theirs: str) -> None:
    """Whatever is not cut is told."""
    if {ours, theirs} == {"openai.chat", "openai.completions"}:
        return
    body = framed(ours, json.dumps(FOREIGN[theirs]).encode())
    cutter = Cutter(ours, STOPS, on_unread="fail")
    out, told = b"", None
    try:
        out = fed(cutter, body)
    except WireError as error:
        told = error
    if told:
        assert ours != theirs
        assert told.output == b""
    else:
        assert cutter.matches
        assert b" b" not in out
        assert cutter.frames_unread == 0


@pytest.mark.parametrize(
    "data",
    [
        b'"a END b"',
        b"a END b",
        b'[{"choices":[]}]',
        b'\xef\xbb\xbf{"choices":[]}',
        b"\x0c{}",
        b'{"answer_of_ours":"a END b"}',
        b'{"id":"1","text":"a END b"}',
        b'{"choices":"a END b"}',
        b'{"choices":[{"delta":"a END b"}]}',
        b'{"choices":[{"delta":{"content":{"text":"a END b"}}}]}',
    ],
)
def test_data_that_are_no_frame_of_the_dialect(data: bytes) -> None:
    check_unread("openai.chat", b"data: " + data + b"\n\n", data.decode())


@pytest.mark.parametrize("line", [b"Data: {}", b" data: {}", b"data : {}", b"<html>", b'"x'])
def test_lines_that_are_no_fields(line: bytes) -> None:
    check_unread("openai.chat", line + b"\n\n", line.strip().decode())


@pytest.mark.parametrize("line", [b"foo: bar", b"x", b"retry: 3", b": END", b"data", b"data: "])
def test_fields_and_comments_do_not_count(line: bytes) -> None:
    body = line + b"\n\n"
    cutter = Cutter("openai.chat", STOPS, on_unread="fail")
    assert fed(cutter, body) == body
    assert (cutter.frames_unread, cutter.unread) == (0, None)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_frames_without_text_that_providers_send_do_not_count(dialect: str) -> None:
    for data in SILENT[dialect]:
        body = framed(dialect, json.dumps(data).encode())
        cutter = Cutter(dialect, STOPS, on_unread="fail")
        assert fed(cutter, body) == body, data
        assert (cutter.frames_unread, cutter.unread) == (0, None), data


def test_recorded_streams_hold_nothing_unread() -> None:
    folder = Path(__file__).parent / "wire"
    for row in json.loads((folder / "streams.json").read_text()):
        body = (folder / "streams" / f"{row['name']}.txt").read_bytes()
        for on_match in ("cancel", "drain"):
            cutter = Cutter(row["dialect"], row["stops"], on_unread="fail", on_match=on_match)  # type: ignore[arg-type]
            fed(cutter, body)
            assert (cutter.frames_unread, cutter.unread) == (0, None)
        cutter = Cutter(row["dialect"], ["\U0001f980"], on_unread="fail")
        fed(cutter, body)
        assert cutter.texts_read == len(row["text"]), row["name"]


def test_what_is_unread_between_frames_that_are_read_ends_the_stream_there() -> None:
    cutter = Cutter("openai.chat", STOPS, on_unread="fail")
    with pytest.raises(WireError, match=r"frame 1 \(byte 98 of the stream\)") as caught:
        cutter.feed(sse(chat("a E"), {"response": "END"}, chat("ND")))
    assert b'"content":"a "' in caught.value.output.replace(b": ", b":")
    assert caught.value.output.endswith(b"\n\n"), "what was held has left"


def test_what_follows_the_last_word_is_nobodys_answer() -> None:
    body = sse(chat("a"), "[DONE]") + b"data: bye\n\n"
    cutter = Cutter("openai.chat", STOPS, on_unread="fail")
    assert fed(cutter, body) == body
    assert cutter.frames_unread == 1


def test_a_malformed_frame_that_would_pass_is_unread() -> None:
    body = b'data: {"choices":[{"delta":{"content":"a END b"}}]\n\n'
    cutter = Cutter("openai.chat", STOPS, on_malformed="pass")
    assert fed(cutter, body) == body
    assert cutter.frames_unread == 1
    with pytest.raises(WireError):
        fed(Cutter("openai.chat", STOPS, on_malformed="pass", on_unread="fail"), body)


def test_only_the_beginning_of_an_unread_frame_is_kept() -> None:
    cutter = Cutter("openai.chat", STOPS)
    cutter.feed(b"data: " + "é".encode() * 500 + b"\n\ndata: other\n\n")
    assert (cutter.frames_unread, cutter.unread) == (2, "é" * 200)


@pytest.mark.parametrize("dialect", [d for d in DIALECTS if d not in ("llama.cpp",)])
def test_a_body_of_another_dialect(dialect: str) -> None:
    body = b'{"content":"a END b","stop":true}'
    cutter = Cutter(dialect, STOPS)
    assert cutter.body(body) == body
    assert (cutter.texts_read, cutter.frames_unread, cutter.unread) == (0, 1, body.decode())
    with pytest.raises(WireError, match="text of another dialect"):
        Cutter(dialect, STOPS, on_unread="fail").body(body)


def test_a_text_that_is_said_again_with_a_stop_that_was_not_read() -> None:
    token = {"token": {"text": "a", "special": False}, "generated_text": None}
    last = {"token": {"text": "b", "special": False}, "generated_text": "a END b"}
    check_repeat("tgi", sse(token, last), 2)
    place = {"output_index": 0, "content_index": 0}
    delta = {"type": "response.output_text.delta", **place, "delta": "a"}
    part = {"type": "output_text", "text": "a END b"}
    item = {"type": "message", "content": [part]}
    for event in (
        {"type": "response.output_text.done", **place, "text": "a END b"},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"status": "completed", "output": [item]}},
    ):
        check_repeat("openai.responses", sse(delta, event), 1)


def check_repeat(dialect: str, body: bytes, read: int) -> None:
    cutter = Cutter(dialect, STOPS)
    assert fed(cutter, body) == body
    assert (cutter.texts_read, cutter.frames_unread) == (read, 1)
    with pytest.raises(WireError, match="said again was not read"):
        fed(Cutter(dialect, STOPS, on_unread="fail"), body)
    assert fed(Cutter(dialect, ["zzz"], on_unread="fail"), body) == body


def test_text_that_goes_on_after_an_end_at_which_held_text_had_left() -> None:
    first = {"choices": [{"index": 0, "delta": {"content": "a EN"}, "finish_reason": "stop"}]}
    again = {"choices": [{"index": 0, "delta": {"content": "D b"}, "finish_reason": None}]}
    cutter = Cutter("openai.chat", STOPS)
    body = sse(first, again)
    assert fed(cutter, body) == body
    assert (cutter.frames_unread, cutter.matches) == (1, ())
    with pytest.raises(WireError, match="text goes on after its end"):
        fed(Cutter("openai.chat", STOPS, on_unread="fail"), body)
    # Servers that end every frame are read: where nothing was held, nothing can be missed.
    first["choices"][0]["delta"]["content"] = "a "
    cutter = Cutter("openai.chat", STOPS, on_unread="fail")
    assert fed(cutter, sse(first, {**again})) == sse(first, again)
    assert cutter.frames_unread == 0
