"""`llama.cpp`: the server's own `/completion`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdback.dialects import _openai, _parts
from holdback.dialects._spec import Asked, Body, Events, Spec


def _choices(body: Body) -> int:
    return max(1, len(_parts.prompts(body)))


def _error(status: int, message: str, code: str, param: str | None) -> dict[str, Any]:
    kind = _openai.error(status, message, code, param)["error"]["type"]
    return {"error": {"code": status, "message": message, "type": kind}}


def _error_event(status: int, message: str, code: str) -> Any:
    return _error(status, message, code, None)


def _assemble(_path: str, _body: Body) -> _parts.LastTells:
    return _parts.LastTells(("content", "tokens", "completion_probabilities"), "stop")


def _events(pieces: Sequence[str], _asked: Asked) -> Events:
    for place, piece in enumerate(pieces, 1):
        event = {"index": 0, "content": piece, "tokens": [place], "stop": False, "id_slot": 0}
        yield True, {**event, "tokens_predicted": place, "tokens_evaluated": 14}
    event = {"index": 0, "content": "", "tokens": [], "id_slot": 0, "stop": True}
    event |= {"model": "demo.gguf", "tokens_predicted": 20, "tokens_evaluated": 14}
    yield False, {**event, "stop_type": "eos", "stopping_word": "", "truncated": False}


LLAMA_CPP = Spec(
    name="llama.cpp",
    paths=("/completion",),
    other_paths=("/tokenize", "/detokenize", "/props", "/slots"),
    other_posts=(),
    headers=(),
    native_to=("llama.cpp",),
    spoken_by=(),
    facts=(),
    assumed="llama.cpp",
    stop_fields=(("stop",),),
    has_stop_field=True,
    reads=(("model",), ("stream",), ("prompt",)),
    model=_parts.model_in_body,
    wants_stream=_parts.stream_if_true,
    ask_for_stream=_parts.set_stream,
    event_query=_parts.same_query,
    choices=_choices,
    echoed=_parts.no_echo,
    has_stream_form=_parts.always,
    refusal=_parts.no_refusal,
    framing="events",
    takes_comments=True,
    frame=_parts.data_frame,
    assemble=_assemble,
    error_words=_openai.ERROR_WORDS,
    error=_error,
    error_event=_error_event,
    events=_events,
)
