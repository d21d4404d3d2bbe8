"""`openai.responses`: the Responses API. It has no field for stops; `stop` is what people add by
hand, for the gateway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdback.dialects import _openai, _parts
from holdback.dialects._spec import Asked, Body, Events, Spec

_ENDS = ("response.completed", "response.incomplete", "response.failed")


def _refusal(body: Body) -> tuple[str, str] | None:
    if body.get("background") is not True:
        return None
    return "background", (
        "stops cannot be enforced on an answer that is fetched later: leave background out, or the stops"
    )


def _error_event(status: int, message: str, code: str) -> Any:
    return {
        "type": "error",
        "code": code,
        "message": message,
        "param": None,
        "sequence_number": 0,
    }


class _Responses:
    """Its last event holds the whole answer."""

    def __init__(self) -> None:
        self.error: dict[str, Any] | None = None
        self._response: Any = None

    def add(self, event: dict[str, Any]) -> None:
        if event.get("type") == "error":
            self.error = {"error": {key: event.get(key) for key in ("message", "code", "param")}}
        elif event.get("type") in _ENDS:
            self._response = event.get("response")

    def body(self) -> Any:
        return self._response


def _assemble(_path: str, _body: Body) -> _Responses:
    return _Responses()


def _events(pieces: Sequence[str], asked: Asked) -> Events:
    text = "".join(pieces)
    usage: dict[str, Any] = {
        "input_tokens": 14,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20,
    }
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 34}
    where = {"item_id": "msg_demo", "output_index": 0, "content_index": 0}

    def response(status: str, output: list[Any], usage: Any = None) -> dict[str, Any]:
        fixed = {
            "id": "resp_demo",
            "object": "response",
            "created_at": 1790000000,
            "model": asked.model or "demo",
            "error": None,
        }
        fixed |= {
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
        }
        return {**fixed, "status": status, "output": output, "tools": [], "tool_choice": "auto", "temperature": 1.0,
                "top_p": 1.0, "usage": usage}  # fmt: skip

    def part(text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def item(status: str, content: list[Any]) -> dict[str, Any]:
        return {
            "id": "msg_demo",
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": content,
        }

    events: list[tuple[bool, str, dict[str, Any]]] = [
        (False, "response.created", {"response": response("in_progress", [])}),
        (False, "response.in_progress", {"response": response("in_progress", [])}),
        (False, "response.output_item.added", {"output_index": 0, "item": item("in_progress", [])}),
        (False, "response.content_part.added", {**where, "part": part("")}),
        *(
            (True, "response.output_text.delta", {**where, "delta": piece, "logprobs": []})
            for piece in pieces
        ),
        (False, "response.output_text.done", {**where, "text": text, "logprobs": []}),
        (False, "response.content_part.done", {**where, "part": part(text)}),
        (
            False,
            "response.output_item.done",
            {"output_index": 0, "item": item("completed", [part(text)])},
        ),
        (
            False,
            "response.completed",
            {"response": response("completed", [item("completed", [part(text)])], usage)},
        ),
    ]
    for number, (is_piece, kind, fields) in enumerate(events):
        yield is_piece, {"type": kind, "sequence_number": number, **fields}


OPENAI_RESPONSES = Spec(
    name="openai.responses",
    paths=("/responses",),
    other_paths=(),
    other_posts=("/responses/input_tokens",),
    headers=(),
    native_to=("openai",),
    spoken_by=("vllm", "llama.cpp", "ollama", "xai"),
    facts=("responses",),
    assumed="openai.responses",
    stop_fields=(("stop",),),
    has_stop_field=False,
    reads=(("model",), ("stream",), ("best_of",), ("modalities",), ("background",)),
    model=_parts.model_in_body,
    wants_stream=_parts.stream_if_true,
    ask_for_stream=_parts.set_stream,
    event_query=_parts.same_query,
    choices=_parts.one,
    echoed=_parts.no_echo,
    has_stream_form=_openai.has_stream_form,
    refusal=_refusal,
    framing="events",
    takes_comments=True,
    frame=_parts.named_frame,
    assemble=_assemble,
    error_words=_openai.ERROR_WORDS,
    error=_openai.error,
    error_event=_error_event,
    events=_events,
)
