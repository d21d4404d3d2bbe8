"""`openai.chat`: chat completions of OpenAI, vLLM, SGLang, DeepSeek and most others; also Mistral's
routes for code and agents, whose paths look like those of text completions and whose answers are
chats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdback.dialects import _openai, _parts
from holdback.dialects._spec import Asked, Body, Events, Spec


def _choices(body: Body) -> int:
    return _parts.whole(body.get("n"))


def _assemble(_path: str, body: Body) -> _openai.Choices:
    return _openai.Choices("chat.completion", _choices(body))


def _events(pieces: Sequence[str], asked: Asked) -> Events:
    def chunk(choices: list[Any], **more: Any) -> dict[str, Any]:
        head = {
            "id": "chatcmpl-demo",
            "object": "chat.completion.chunk",
            "created": 1790000000,
            "model": asked.model or "demo",
        }
        return {**head, "choices": choices, **more}

    def delta(index: int, value: dict[str, Any], finish: str | None = None) -> list[Any]:
        return [{"index": index, "delta": value, "logprobs": None, "finish_reason": finish}]

    every = range(asked.choices)
    for index in every:
        yield False, chunk(delta(index, {"role": "assistant", "content": ""}))
    for piece in pieces:
        for index in every:
            yield index == 0, chunk(delta(index, {"content": piece}))
    for index in every:
        yield False, chunk(delta(index, {}, "stop"))
    if not asked.stream or (asked.body.get("stream_options") or {}).get("include_usage"):
        yield False, chunk([], usage=_openai.DEMO_USAGE)
    yield False, "[DONE]"


OPENAI_CHAT = Spec(
    name="openai.chat",
    paths=("/chat/completions", "/fim/completions", "/agents/completions"),
    other_paths=("/v1/", "/openai/", "/v1beta/openai/", "/models", "/embeddings"),
    other_posts=("/embeddings", "/moderations", "/rerank", "/score", "/tokenize", "/detokenize"),
    headers=(),
    native_to=("openai",),
    spoken_by=("vllm", "sglang", "tgi", "llama.cpp", "ollama", "deepseek", "mistral", "xai"),
    facts=("chat", "openai"),
    assumed="openai",
    stop_fields=(("stop",),),
    has_stop_field=True,
    reads=(("model",), ("stream",), ("stream_options",), ("n",), ("best_of",), ("modalities",)),
    model=_parts.model_in_body,
    wants_stream=_parts.stream_if_true,
    ask_for_stream=_openai.set_stream,
    event_query=_parts.same_query,
    choices=_choices,
    echoed=_parts.no_echo,
    has_stream_form=_openai.has_stream_form,
    refusal=_parts.no_refusal,
    framing="events",
    takes_comments=True,
    frame=_parts.data_frame,
    assemble=_assemble,
    error_words=_openai.ERROR_WORDS,
    error=_openai.error,
    error_event=_openai.error_event,
    events=_events,
)
