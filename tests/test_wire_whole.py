"""Answers to requests that do not stream, cut in place."""

from __future__ import annotations

import json
from typing import Any

import pytest
from wire_shapes import DIALECTS, STOPS

from holdback.wire import Cutter, WireError

# --- whole answers
# ----------------------------------------------------------------------------------------------------

BODIES: dict[str, tuple[Any, Any]] = {
    "openai.chat": (
        {
            "id": "x",
            "choices": [
                {
                    "index": 0,
                    "message": {"content": "a END b", "tool_calls": [1]},
                    "finish_reason": "tool_calls",
                }
            ],
            "usage": {"t": 1},
        },
        {
            "id": "x",
            "choices": [
                {
                    "index": 0,
                    "message": {"content": "a ", "tool_calls": None},
                    "finish_reason": "stop",
                    "stop_reason": "END",
                }
            ],
            "usage": {"t": 1},
        },
    ),
    "cohere.chat": (
        {
            "id": "x",
            "message": {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "END"},
                    {"type": "text", "text": "a END b"},
                    {"type": "text", "text": "c"},
                ],
                "tool_calls": [{"id": "1"}],
                "citations": [{"start": 6, "end": 7, "text": "b"}],
            },
            "finish_reason": "COMPLETE",
            "logprobs": [{"text": "a END b", "token_ids": [1], "logprobs": [-1]}],
            "usage": {"t": 1},
        },
        {
            "id": "x",
            "message": {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "END"},
                    {"type": "text", "text": "a "},
                ],
                "tool_calls": None,
                "citations": None,
            },
            "finish_reason": "STOP_SEQUENCE",
            "logprobs": None,
            "usage": {"t": 1},
        },
    ),
    "openai.completions": (
        {"choices": [{"index": 0, "text": "a END b", "finish_reason": "length"}]},
        {"choices": [{"index": 0, "text": "a ", "finish_reason": "stop", "stop_reason": "END"}]},
    ),
    "openai.responses": (
        {
            "status": "incomplete",
            "incomplete_details": {"reason": "x"},
            "output": [
                {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "END"}]},
                {
                    "type": "message",
                    "status": "incomplete",
                    "content": [
                        {"type": "output_text", "text": "a END"},
                        {"type": "output_text", "text": "b"},
                    ],
                },
                {"type": "function_call"},
            ],
        },
        {
            "status": "completed",
            "incomplete_details": None,
            "output": [
                {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "END"}]},
                {
                    "type": "message",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": "a "}],
                },
            ],
        },
    ),
    "anthropic.messages": (
        {
            "content": [
                {"type": "text", "text": "x"},
                {"type": "text", "text": "a END b"},
                {"type": "tool_use", "id": "t"},
            ],
            "stop_reason": "tool_use",
            "stop_sequence": None,
        },
        {
            "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "a "}],
            "stop_reason": "stop_sequence",
            "stop_sequence": "END",
        },
    ),
    "gemini": (
        {
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {"text": "END", "thought": True},
                            {"text": "a E"},
                            {"text": "ND b"},
                            {"text": "c"},
                        ]
                    },
                    "finishReason": "MAX_TOKENS",
                }
            ]
        },
        {
            "candidates": [
                {
                    "content": {
                        "parts": [{"text": "END", "thought": True}, {"text": "a "}, {"text": ""}]
                    },
                    "finishReason": "STOP",
                }
            ]
        },
    ),
    "ollama.chat": (
        {
            "message": {"role": "assistant", "content": "a END b"},
            "done": True,
            "done_reason": "length",
            "eval_count": 3,
        },
        {
            "message": {"role": "assistant", "content": "a "},
            "done": True,
            "done_reason": "stop",
            "eval_count": 3,
        },
    ),
    "ollama.generate": (
        {"response": "a END b", "done": True},
        {"response": "a ", "done": True, "done_reason": "stop"},
    ),
    "llama.cpp": (
        {"content": "a END b", "stop": True, "stop_type": "eos", "stopping_word": ""},
        {"content": "a ", "stop": True, "stop_type": "word", "stopping_word": "END"},
    ),
    "tgi": (
        [
            {
                "generated_text": "a END b",
                "details": {"finish_reason": "length", "generated_tokens": 3},
            }
        ],
        [
            {
                "generated_text": "a ",
                "details": {"finish_reason": "stop_sequence", "generated_tokens": 3},
            }
        ],
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_answer_is_cut_in_place(dialect: str) -> None:
    before, after = BODIES[dialect]
    for spacing in ((",", ":"), (", ", " : ")):
        cutter = Cutter(dialect, STOPS)
        assert json.loads(cutter.body(json.dumps(before, separators=spacing).encode())) == after
        assert [match.stop for match in cutter.matches] == ["END"]
        assert cutter.ended
    untouched = json.dumps(before, indent=1).encode() + b"\n"
    none = Cutter(dialect, ["zzz", "b!"])
    assert none.body(untouched) == untouched, "held text leaves at the end of a whole text"
    assert not none.matches
    assert not none.ended
    with pytest.raises(WireError, match="fed already"):
        none.body(untouched)


def test_a_body_that_cannot_be_read() -> None:
    with pytest.raises(WireError, match="cannot be read: this string never ends"):
        Cutter("openai.chat", STOPS).body(b'{"choices": [{"message": {"content": "a')
    broken = b'{"choices": [{"message": {"content": "a'
    assert Cutter("openai.chat", STOPS, on_malformed="pass").body(broken) == broken
