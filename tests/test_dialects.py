"""The table of dialects: whole, in step with the cutters, and each path in one of them."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback import providers, wire
from holdback.dialects import DIALECTS, Spec, dialect_of, dialects_of, error_status
from holdback.wire import Dialect


def test_the_table_is_that_of_the_cutters() -> None:
    assert tuple(DIALECTS) == wire.DIALECTS


def test_a_record_with_a_missing_part_cannot_be_made() -> None:
    """No part has a default: a forgotten one is an error at import."""
    whole = {entry.name: getattr(DIALECTS["tgi"], entry.name) for entry in fields(Spec)}
    assert Spec(**whole) == DIALECTS["tgi"]
    for name in whole:
        with pytest.raises(TypeError, match=name):
            Spec(**{key: value for key, value in whole.items() if key != name})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_provider_that_a_dialect_names_is_known(dialect: Dialect) -> None:
    spec = DIALECTS[dialect]
    for name in (*spec.native_to, *spec.spoken_by, spec.assumed):
        assert providers.get(name).name == name
    for name in (*spec.native_to, *spec.spoken_by):
        assert dialect in (dialects_of(name) or ())
    assert not set(spec.native_to) & set(spec.spoken_by)


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("/v1/chat/completions", "openai.chat"),
        ("/chat/completions", "openai.chat"),
        ("/openai/deployments/x/chat/completions", "openai.chat"),
        ("/v1beta/openai/chat/completions", "openai.chat"),
        ("/v1/fim/completions", "openai.chat"),
        ("/v1/agents/completions", "openai.chat"),
        ("/v1/completions", "openai.completions"),
        ("/v1/responses", "openai.responses"),
        ("/v1/messages", "anthropic.messages"),
        ("/v1/threads/x/messages", None),
        ("/v1/messages/count_tokens", None),
        ("/v1beta/models/g-2.5:generateContent", "gemini"),
        ("/v1/projects/p/locations/l/models/g:streamGenerateContent", "gemini"),
        ("/v1beta/models/g:countTokens", None),
        ("/api/chat", "ollama.chat"),
        ("/api/generate", "ollama.generate"),
        ("/completion", "llama.cpp"),
        ("/generate", "tgi"),
        ("/generate_stream", "tgi"),
        ("/", "tgi"),
        ("/v1/", None),
        ("", None),
    ],
)
def test_paths(path: str, dialect: str | None) -> None:
    assert dialect_of(path) == dialect


@given(
    dialect=st.sampled_from(wire.DIALECTS),
    status=st.integers(400, 599),
    message=st.text(max_size=9),
)
def test_an_error_can_be_read_back(dialect: Dialect, status: int, message: str) -> None:
    spec = DIALECTS[dialect]
    body = spec.error(status, message, "word", "field")
    inner = json.loads(json.dumps(body.get("error", body)))
    assert message in (inner.values() if isinstance(inner, dict) else [inner])
    assembly = spec.assemble(spec.paths[0], {})
    assembly.add(spec.error_event(status, message or "x", "word"))
    assert assembly.error
    assert 400 <= error_status(dialect, body) <= 599


@pytest.mark.parametrize(
    ("dialect", "error", "status"),
    [
        ("openai.chat", {"error": {"type": "BadRequestError", "code": 400}}, 400),
        ("openai.chat", {"error": {"type": "x", "code": "429"}}, 429),
        ("openai.chat", {"error": {"code": "rate_limit_exceeded"}}, 429),
        ("openai.chat", {"error": {"code": 200, "type": "invalid_request_error"}}, 400),
        ("openai.chat", {"error": {"code": True}}, 502),
        ("openai.chat", {"error": {"code": 9**99, "type": ["x"]}}, 502),
        ("openai.chat", {"error": {"code": "4" * 9999}}, 502),
        ("openai.chat", {"error": "it broke"}, 502),
        ("openai.responses", {"error": {"code": "server_error", "message": "m"}}, 500),
        ("anthropic.messages", {"error": {"type": "invalid_request_error"}}, 400),
        ("anthropic.messages", {"error": {"type": "authentication_error"}}, 401),
        ("anthropic.messages", {"error": {"type": "permission_error"}}, 403),
        ("anthropic.messages", {"error": {"type": "not_found_error"}}, 404),
        ("anthropic.messages", {"error": {"type": "request_too_large"}}, 413),
        ("anthropic.messages", {"error": {"type": "rate_limit_error"}}, 429),
        ("anthropic.messages", {"error": {"type": "api_error"}}, 500),
        ("anthropic.messages", {"error": {"type": "overloaded_error"}}, 529),
        ("gemini", {"error": {"code": 503, "status": "UNAVAILABLE"}}, 503),
        ("gemini", {"error": {"status": "RESOURCE_EXHAUSTED"}}, 429),
        ("ollama.chat", {"error": "it broke"}, 502),
        ("tgi", {"error": "m", "error_type": "overloaded"}, 429),
        ("tgi", ["no error at all"], 502),
    ],
)
def test_the_status_of_an_error_in_a_stream(dialect: Dialect, error: Any, status: int) -> None:
    assert error_status(dialect, error) == status


# --- usage figures
# ---------------------------------------------------------------------------------------------------


def usage_of(*events: Any, dialect: Dialect = "openai.chat", n: int = 1) -> Any:
    assembly = DIALECTS[dialect].assemble("", {"n": n})
    for event in events:
        assembly.add(event)
    return assembly.body()["usage"]


def chat(text: str | None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def figures(count: int) -> dict[str, int]:
    return {"prompt_tokens": 9, "completion_tokens": count, "total_tokens": 9 + count}


def test_usage_figures_are_always_there() -> None:
    estimate = {"prompt_tokens": 0, "completion_tokens": 2, "total_tokens": 2}
    end = chat(None, "stop")
    assert usage_of(chat("a"), chat("b"), end) == estimate
    assert usage_of(chat("a"), chat("b"), end, {"choices": [], "usage": figures(7)}) == figures(7)
    assert usage_of(chat("a"), chat("b"), chat(None, "stop", usage=figures(7))) == figures(7)
    assert usage_of(chat("a", usage=None), chat("b", usage=None), end) == estimate
    text = {"choices": [{"index": 0, "text": "a", "finish_reason": "stop"}]}
    assert usage_of(text, text, dialect="openai.completions") == estimate


def test_figures_of_a_preview_are_not_those_of_the_answer() -> None:
    """A frame before the text, or in its middle, tells of a part."""
    end = chat(None, "stop")
    assert usage_of({"choices": [], "usage": figures(1)}, chat("a"), chat("b"), end) == figures(2)
    assert usage_of(chat("a", usage=figures(1)), chat("b"), end) == figures(2)
    running = [chat("a", usage=figures(1)), chat("b", usage=figures(2))]
    assert usage_of(*running, end) == figures(2)


def test_an_index_that_counts_chunks_is_one_choice_where_one_was_asked_for() -> None:
    assembly = DIALECTS["openai.chat"].assemble("", {})
    for index, text in enumerate(("a", "b", None)):
        event = chat(text, None if text else "stop")
        event["choices"][0]["index"] = index
        assembly.add(event)
    (choice,) = assembly.body()["choices"]
    assert (choice["index"], choice["message"]["content"]) == (0, "ab")


def test_a_text_block_that_the_cut_has_emptied_goes() -> None:
    """Anthropic refuses a history that has one."""
    assembly = DIALECTS["anthropic.messages"].assemble("", {})
    for index, text in enumerate(("", "x", "")):
        block = {"type": "text", "text": text}
        assembly.add({"type": "content_block_start", "index": index, "content_block": block})
    assembly.add({"type": "message_delta", "delta": {"stop_reason": "stop_sequence"}})
    assert assembly.body()["content"] == [{"type": "text", "text": "x"}]
