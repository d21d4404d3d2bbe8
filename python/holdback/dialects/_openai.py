"""What OpenAI's dialects, and their many relatives, have in common."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from holdback.dialects._pieces import closed, merge
from holdback.dialects._spec import Body

ERROR_WORDS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "permission_denied_error": 403,
    "not_found_error": 404,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "internal_error": 500,
    "api_error": 500,
    "BadRequestError": 400,
    "NotFoundError": 404,
    "overloaded_error": 503,
    "service_unavailable": 503,
}
"""Also words of vLLM and others that speak these dialects."""

DEMO_USAGE = {"prompt_tokens": 14, "completion_tokens": 20, "total_tokens": 34}


def error(status: int, message: str, code: str, param: str | None) -> dict[str, Any]:
    """The body of an error."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def error_event(status: int, message: str, code: str) -> Any:
    """The same in a stream."""
    return error(status, message, code, None)


def set_stream(
    path: str, query: str, body: MutableMapping[str, Any], usage: bool
) -> tuple[str, str]:
    """Ask for a stream, with usage figures at its end if they may be asked for."""
    body["stream"] = True
    if usage:
        options = body.get("stream_options")
        body["stream_options"] = {
            **(options if isinstance(options, dict) else {}),
            "include_usage": True,
        }
    return path, query


def has_stream_form(body: Body) -> bool:
    """False for the best of several, and for sound."""
    modalities = body.get("modalities")
    if isinstance(modalities, list) and "audio" in modalities:
        return False
    best = body.get("best_of")
    return not (type(best) is int and best > 1)


class Choices:
    """Chunks of `choices` into one body.

    It always has usage figures, which clients require: the upstream's own if they came at the end,
    else an estimate, a token for each chunk of text (or more, if figures on the way said so).

    Args:
        kind: its `object`: `chat.completion` or `text_completion`.
        asked: how many choices were asked for. Some servers count their chunks with `index`: where
            one was asked for, all are of that one.
    """

    def __init__(self, kind: str, asked: int) -> None:
        self.error: dict[str, Any] | None = None
        self._head: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._kind, self._one = kind, asked == 1
        self._chunks = 0  # that brought something
        self._counted = 0  # of them when the last usage figures came

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event."""
        if event.get("error"):
            self.error = event
            return
        for key, value in event.items():
            if key not in ("choices", "obfuscation") and (
                value is not None or key not in self._head
            ):
                self._head[key] = value
        pieces = event.get("choices") or ()
        self._chunks += any(_brings_something(piece) for piece in pieces)
        if event.get("usage"):
            self._counted = self._chunks
        for piece in pieces:
            index = 0 if self._one else piece.get("index", 0) or 0
            choice = self._choices.setdefault(index, {"index": index})
            for key, value in piece.items():
                if key == "delta":
                    merge(choice.setdefault("message", {}), value or {})
                elif key in ("text", "logprobs"):
                    merge(choice, {key: value})
                elif key != "index" and (value is not None or key not in choice):
                    choice[key] = value

    def body(self) -> Any:
        """The answer, `None` unless every choice has its end."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        if not choices or any(choice.get("finish_reason") is None for choice in choices):
            return None
        made: list[dict[str, Any]] = []
        for choice in choices:
            whole = closed(choice)
            if self._kind == "chat.completion":
                message = {"role": "assistant", "content": None, **whole.pop("message", {})}
                for call in message.get("tool_calls") or ():
                    call.pop("index", None)  # it only said which pieces belong together
                if message.get("tool_calls") and not message["content"]:
                    message["content"] = None
                whole = {"index": whole.pop("index"), "message": message, **whole}
            made.append(whole)
        head = {**self._head, "object": self._kind}
        return {**head, "choices": made, "usage": self._usage(head.pop("usage", None))}

    def _usage(self, seen: Any) -> Any:
        """Figures that came with the last text, or after it, are the answer's; others were on the
        way there.
        """
        if seen and self._counted >= self._chunks:
            return seen
        known = seen if isinstance(seen, dict) else {}
        prompt, told = known.get("prompt_tokens"), known.get("completion_tokens")
        prompt = prompt if type(prompt) is int else 0
        tokens = max(told if type(told) is int else 0, self._chunks)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": tokens,
            "total_tokens": prompt + tokens,
        }


def _brings_something(piece: Any) -> bool:
    """A piece of a choice with text, thoughts, or a part of a call; not one that opens or ends it."""
    delta = piece.get("delta")
    parts = delta.items() if isinstance(delta, dict) else [("text", piece.get("text"))]
    # The piece that completed a stop may have no text left.
    stopped = piece.get("stop_reason") or piece.get("matched_stop")
    return bool(stopped) or any(value for key, value in parts if key != "role")
