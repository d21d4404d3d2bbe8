"""The official client packages accept what `Finish.to` gives, as their own types.

Each runs where its package is installed.
"""

from __future__ import annotations

import typing

import pytest

from holdback.finish import BUILT_IN_REASONS, Finish

FINISHES = [
    Finish(reason, 3, stop="END" if reason == "stop_string" else None)
    for reason in BUILT_IN_REASONS
]
SAID = [
    finish for finish in FINISHES if finish.reason != "cancelled"
]  # a broken-off answer has no finish to validate


def words_of(model: type, field: str) -> set[str]:
    """The literal words that a pydantic field takes."""

    def literals(annotation: object) -> set[str]:
        inner = typing.get_args(annotation)
        if typing.get_origin(annotation) is typing.Literal:
            return set(inner)
        return set().union(*map(literals, inner))

    return literals(model.model_fields[field].annotation)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "finish",
    [*SAID, Finish("tool_calls"), Finish("content_filter")],
    ids=lambda finish: finish.reason,
)
def test_openai_chat(finish):
    chat = pytest.importorskip(
        "openai.types.chat.chat_completion", reason="the openai package is not installed"
    )
    choice = chat.Choice.model_validate(
        {
            "index": 0,
            "message": {"role": "assistant", "content": "x"},
            "logprobs": None,
            **finish.to("openai"),
        }
    )
    assert choice.finish_reason in words_of(chat.Choice, "finish_reason")


@pytest.mark.parametrize("finish", FINISHES, ids=lambda finish: finish.reason)
def test_openai_chat_chunk(finish):
    chunk = pytest.importorskip(
        "openai.types.chat.chat_completion_chunk", reason="the openai package is not installed"
    )
    choice = chunk.Choice.model_validate({"index": 0, "delta": {}, **finish.to("openai")})
    assert choice.finish_reason in {None, *words_of(chunk.Choice, "finish_reason")}


@pytest.mark.parametrize("finish", SAID, ids=lambda finish: finish.reason)
def test_openai_completions(finish):
    completions = pytest.importorskip("openai.types", reason="the openai package is not installed")
    choice = completions.CompletionChoice.model_validate(
        {"index": 0, "text": "x", "logprobs": None, **finish.to("openai.completions")}
    )
    assert choice.finish_reason in words_of(completions.CompletionChoice, "finish_reason")


@pytest.mark.parametrize("finish", FINISHES, ids=lambda finish: finish.reason)
def test_openai_responses(finish):
    responses = pytest.importorskip(
        "openai.types.responses.response", reason="the openai package is not installed"
    )
    fields = finish.to("openai.responses")
    assert fields["status"] in words_of(responses.Response, "status")
    if "incomplete_details" in fields:
        responses.IncompleteDetails.model_validate(fields["incomplete_details"])
        assert fields["incomplete_details"]["reason"] in words_of(
            responses.IncompleteDetails, "reason"
        )


@pytest.mark.parametrize(
    "finish", [*SAID, Finish("tool_calls"), Finish("pause_turn")], ids=lambda finish: finish.reason
)
def test_anthropic(finish):
    anthropic = pytest.importorskip(
        "anthropic.types", reason="the anthropic package is not installed"
    )
    fields = finish.to("anthropic")
    message = anthropic.Message.model_validate(
        {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "x",
            "content": [],
            "usage": {"input_tokens": 1, "output_tokens": 3},
            **fields,
        }
    )
    assert (message.stop_reason, message.stop_sequence) == (
        fields["stop_reason"],
        fields["stop_sequence"],
    )
    assert message.stop_reason in words_of(anthropic.Message, "stop_reason")


@pytest.mark.parametrize("finish", FINISHES, ids=lambda finish: finish.reason)
def test_gemini(finish):
    genai = pytest.importorskip(
        "google.genai.types", reason="the google-genai package is not installed"
    )
    fields = finish.to("gemini")
    candidate = genai.Candidate.model_validate(fields)
    if fields["finishReason"] is not None:
        assert candidate.finish_reason in set(genai.FinishReason)
        assert candidate.finish_reason.value == fields["finishReason"]
