"""`anthropic.messages`: Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from holdback.dialects import _parts
from holdback.dialects._pieces import closed, merge, opened
from holdback.dialects._spec import Asked, Body, Events, Spec

_WORDS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def _error(status: int, message: str, _code: str, _param: str | None) -> dict[str, Any]:
    # 503 is the gateway's own word for what Anthropic says with 529.
    default = "overloaded_error" if status == 503 else "api_error"
    default = "invalid_request_error" if status == 415 else default
    kind = _parts.word_for(status, _WORDS, default)
    return {"type": "error", "error": {"type": kind, "message": message}}


def _error_event(status: int, message: str, code: str) -> Any:
    return _error(status, message, code, None)


class _Messages:
    """Blocks from their pieces."""

    def __init__(self) -> None:
        self.error: dict[str, Any] | None = None
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._ended = False

    def add(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "error":
            self.error = event
        elif kind == "message_start":
            self._message = dict(event.get("message") or {})
        elif kind == "content_block_start":
            self._blocks[event.get("index", 0)] = opened(event.get("content_block") or {}, "")
        elif kind == "content_block_delta":
            self._add_to_block(
                self._blocks.setdefault(event.get("index", 0), {}), dict(event.get("delta") or {})
            )
        elif kind == "message_delta":
            usage = {**(self._message.get("usage") or {}), **(event.get("usage") or {})}
            extra = {
                key: value for key, value in event.items() if key not in ("type", "delta", "usage")
            }
            self._message.update({**(event.get("delta") or {}), **extra, "usage": usage})
            self._ended = True

    def _add_to_block(self, block: dict[str, Any], delta: dict[str, Any]) -> None:
        kind = delta.pop("type", "")
        if kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
        else:
            merge(block, delta)  # text, thinking, signature, partial_json

    def body(self) -> Any:
        if not self._ended:
            return None
        blocks = [closed(self._blocks[index]) for index in sorted(self._blocks)]
        for block in blocks:
            written = block.pop("partial_json", "")
            if written:
                try:
                    block["input"] = json.loads(written)
                except ValueError:  # the answer was too long, and ends inside the call
                    block["input"] = {}
        return {**self._message, "content": [block for block in blocks if not _is_empty(block)]}


def _is_empty(block: dict[str, Any]) -> bool:
    """A text block without text, as a stop at its beginning leaves it. Anthropic refuses a history
    that has one.
    """
    return block.get("type") == "text" and not block.get("text") and not block.get("citations")


def _assemble(_path: str, _body: Body) -> _Messages:
    return _Messages()


def _events(pieces: Sequence[str], asked: Asked) -> Events:
    message: dict[str, Any] = {
        "id": "msg_demo",
        "type": "message",
        "role": "assistant",
        "model": asked.model or "demo",
        "content": [],
    }
    message |= {
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 14, "output_tokens": 1},
    }
    yield False, {"type": "message_start", "message": message}
    block = {"type": "text", "text": ""}
    yield False, {"type": "content_block_start", "index": 0, "content_block": block}
    yield False, {"type": "ping"}
    for piece in pieces:
        delta = {"type": "text_delta", "text": piece}
        yield True, {"type": "content_block_delta", "index": 0, "delta": delta}
    yield False, {"type": "content_block_stop", "index": 0}
    end = {"stop_reason": "end_turn", "stop_sequence": None}
    yield False, {"type": "message_delta", "delta": end, "usage": {"output_tokens": 20}}
    yield False, {"type": "message_stop"}


ANTHROPIC_MESSAGES = Spec(
    name="anthropic.messages",
    paths=("/v1/messages",),  # an Assistants thread has /messages too, so this needs its version
    other_paths=(),
    other_posts=("/v1/messages/count_tokens",),
    headers=(b"anthropic-version",),
    native_to=("anthropic",),
    spoken_by=("vllm", "sglang", "llama.cpp", "ollama", "deepseek"),
    facts=("messages",),
    assumed="anthropic",
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
    error_words=_WORDS,
    error=_error,
    error_event=_error_event,
    events=_events,
)
