"""`cohere.chat`: Cohere's chat, version 2 (`/v2/chat`), of typed events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdback.dialects import _parts
from holdback.dialects._pieces import closed, merge, opened
from holdback.dialects._spec import Asked, Body, Events, Spec


def _error(_status: int, message: str, _code: str, _param: str | None) -> dict[str, Any]:
    return {"message": message}


def _error_event(_status: int, message: str, _code: str) -> Any:
    return {"type": "error", "message": message}


class _Chat:
    """One message of its blocks, its calls and what it cites."""

    def __init__(self) -> None:
        self.error: dict[str, Any] | None = None
        self._head: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant"}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._calls: dict[int, dict[str, Any]] = {}
        self._citations: list[Any] = []
        self._logprobs: list[Any] = []
        self._end: dict[str, Any] = {}

    def add(self, event: dict[str, Any]) -> None:
        kind, index = event.get("type"), event.get("index") or 0
        delta = event.get("delta") or {}
        message = delta.get("message") or {}
        if kind == "error":
            self.error = {key: value for key, value in event.items() if key != "type"}
        elif kind == "message-start":
            self._head = {"id": event.get("id")}
            self._message["role"] = message.get("role") or "assistant"
        elif kind == "content-start":
            self._blocks[index] = opened(message.get("content") or {}, "")
        elif kind == "content-delta":
            merge(self._blocks.setdefault(index, {"type": "text"}), message.get("content") or {})
            if event.get("logprobs") is not None:
                self._logprobs.append(event["logprobs"])
        elif kind == "tool-plan-delta":
            merge(self._message, {"tool_plan": message.get("tool_plan")})
        elif kind in ("tool-call-start", "tool-call-delta"):
            merge(self._calls.setdefault(index, {}), message.get("tool_calls") or {})
        elif kind == "citation-start":
            self._citations.append(message.get("citations"))
        elif kind == "message-end":
            self._end = delta
        if kind == "message-end" and delta.get("error"):
            self.error = {"message": delta["error"]}

    def body(self) -> Any:
        if not self._end:
            return None
        message = closed(self._message)
        content = [closed(self._blocks[index]) for index in sorted(self._blocks)]
        if content:
            message["content"] = content
        if self._calls:
            message["tool_calls"] = [closed(self._calls[index]) for index in sorted(self._calls)]
        if self._citations:
            message["citations"] = self._citations
        made = {**self._head, "message": message, **self._end}
        return {**made, "logprobs": self._logprobs} if self._logprobs else made


def _assemble(_path: str, _body: Body) -> _Chat:
    return _Chat()


def _events(pieces: Sequence[str], _asked: Asked) -> Events:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": [],
        "tool_plan": "",
        "tool_calls": [],
    }
    yield False, {"type": "message-start", "id": "demo", "delta": {"message": message}}
    content = {"type": "text", "text": ""}
    start = {"message": {"content": content}}
    yield False, {"type": "content-start", "index": 0, "delta": start}
    for piece in pieces:
        delta = {"message": {"content": {"text": piece}}}
        yield True, {"type": "content-delta", "index": 0, "delta": delta}
    yield False, {"type": "content-end", "index": 0}
    tokens = {"input_tokens": 14, "output_tokens": 20}
    end = {"finish_reason": "COMPLETE", "usage": {"billed_units": tokens, "tokens": tokens}}
    yield False, {"type": "message-end", "delta": end}


COHERE_CHAT = Spec(
    name="cohere.chat",
    paths=("/v2/chat",),
    other_paths=("/v2/",),
    other_posts=("/v2/embed", "/v2/rerank"),
    headers=(),
    native_to=("cohere",),
    spoken_by=(),
    facts=(),
    assumed="cohere",
    stop_fields=(("stop_sequences",),),
    has_stop_field=True,
    reads=(("model",), ("stream",)),
    model=_parts.model_in_body,
    wants_stream=_parts.stream_if_true,
    ask_for_stream=_parts.set_stream,
    event_query=_parts.same_query,
    choices=_parts.one,
    echoed=_parts.no_echo,
    has_stream_form=_parts.always,
    refusal=_parts.no_refusal,
    framing="events",
    takes_comments=True,
    frame=_parts.named_frame,
    assemble=_assemble,
    error_words={},
    error=_error,
    error_event=_error_event,
    events=_events,
)
