"""`openai.completions`: the older text completions."""

from __future__ import annotations

from collections.abc import Sequence

from holdback.dialects import _openai, _parts
from holdback.dialects._spec import Asked, Body, Events, Spec


def _choices(body: Body) -> int:
    return _parts.whole(body.get("n")) * max(1, len(_parts.prompts(body)))


def _echoed(body: Body) -> int | None:
    if body.get("echo") is not True:
        return 0
    prompts = _parts.prompts(body)
    return len(prompts[0]) if len(prompts) == 1 and isinstance(prompts[0], str) else None


def _assemble(_path: str, body: Body) -> _openai.Choices:
    return _openai.Choices("text_completion", _choices(body))


def _events(pieces: Sequence[str], asked: Asked) -> Events:
    head = {
        "id": "cmpl-demo",
        "object": "text_completion",
        "created": 1790000000,
        "model": asked.model or "demo",
    }
    for place, piece in enumerate((*pieces, "")):
        finish = "stop" if place == len(pieces) else None
        for index in range(asked.choices):
            choice = {"index": index, "text": piece, "logprobs": None, "finish_reason": finish}
            yield index == 0 and not finish, {**head, "choices": [choice]}
    yield False, {**head, "choices": [], "usage": _openai.DEMO_USAGE}
    yield False, "[DONE]"


OPENAI_COMPLETIONS = Spec(
    name="openai.completions",
    paths=("/completions",),
    other_paths=(),
    other_posts=(),
    headers=(),
    native_to=("openai",),
    spoken_by=("vllm", "sglang", "tgi", "llama.cpp", "ollama", "deepseek"),
    facts=("completions", "openai"),
    assumed="openai.completions",
    stop_fields=(("stop",),),
    has_stop_field=True,
    reads=(
        ("model",),
        ("stream",),
        ("stream_options",),
        ("n",),
        ("best_of",),
        ("modalities",),
        ("prompt",),
        ("echo",),
    ),
    model=_parts.model_in_body,
    wants_stream=_parts.stream_if_true,
    ask_for_stream=_openai.set_stream,
    event_query=_parts.same_query,
    choices=_choices,
    echoed=_echoed,
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
