"""`ollama.chat` and `ollama.generate`: Ollama's own `/api/chat` and `/api/generate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdback.dialects import _parts
from holdback.dialects._spec import Asked, Body, Events, Spec


def _wants_stream(_path: str, body: Body) -> bool:
    return body.get("stream") is not False  # the one API that streams unless told not to


def _error(_status: int, message: str, _code: str, _param: str | None) -> dict[str, Any]:
    return {"error": message}


def _error_event(_status: int, message: str, _code: str) -> Any:
    return {"error": message}


def _assemble_chat(_path: str, _body: Body) -> _parts.LastTells:
    return _parts.LastTells(("message", "logprobs"), "done")


def _assemble_generate(_path: str, _body: Body) -> _parts.LastTells:
    return _parts.LastTells(("response", "thinking", "logprobs"), "done")


def _frames(texts: Sequence[Mapping[str, Any]], asked: Asked) -> Events:
    head = {"model": asked.model or "demo", "created_at": "2026-11-30T00:00:00Z"}
    end = {
        "done": True,
        "done_reason": "stop",
        "total_duration": 5,
        "load_duration": 1,
        "prompt_eval_count": 14,
        "prompt_eval_duration": 1,
        "eval_count": 20,
        "eval_duration": 3,
    }
    for text in texts[:-1]:
        yield True, {**head, **text, "done": False}
    yield False, {**head, **texts[-1], **end}


def _chat_events(pieces: Sequence[str], asked: Asked) -> Events:
    texts = [{"message": {"role": "assistant", "content": piece}} for piece in (*pieces, "")]
    return _frames(texts, asked)


def _generate_events(pieces: Sequence[str], asked: Asked) -> Events:
    return _frames([{"response": piece} for piece in (*pieces, "")], asked)


OLLAMA_CHAT = Spec(
    name="ollama.chat",
    paths=("/api/chat",),
    other_paths=("/api/",),
    other_posts=("/api/show", "/api/embed", "/api/embeddings"),
    headers=(),
    native_to=("ollama",),
    spoken_by=(),
    facts=(),
    assumed="ollama",
    stop_fields=(("options", "stop"),),
    has_stop_field=True,
    reads=(("model",), ("stream",)),
    model=_parts.model_in_body,
    wants_stream=_wants_stream,
    ask_for_stream=_parts.set_stream,
    event_query=_parts.same_query,
    choices=_parts.one,
    echoed=_parts.no_echo,
    has_stream_form=_parts.always,
    refusal=_parts.no_refusal,
    framing="lines",
    takes_comments=False,
    frame=_parts.line,
    assemble=_assemble_chat,
    error_words={},
    error=_error,
    error_event=_error_event,
    events=_chat_events,
)
OLLAMA_GENERATE = replace(
    OLLAMA_CHAT,
    name="ollama.generate",
    paths=("/api/generate",),
    other_paths=(),
    other_posts=(),
    assemble=_assemble_generate,
    events=_generate_events,
)
