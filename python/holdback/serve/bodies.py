"""One answer out of a stream, for clients that did not ask for one: what the upstream would have
sent as a whole.

Each API has its own way to take an answer apart; here it is put together again. Fields that are not
known are kept: a string that comes in pieces is joined, a list is extended, anything else is the
last one sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from holdback.wire import Dialect


class Assembly(Protocol):
    """Events in, one body out."""

    error: dict[str, Any] | None
    """An error that the upstream reported in mid-stream."""

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event."""
        ...

    def body(self) -> Any:
        """The answer, ``None`` if its end has not come."""
        ...


class _Text(list[str]):
    """A string in the making: pieces are joined once, at the end."""


_SAID_ONCE = frozenset(
    (
        "id",
        "index",
        "type",
        "role",
        "object",
        "name",
        "format",
        "status",
        "encoding",
        "mime_type",
        "media_type",
    )
)
"""Strings that some servers repeat in every piece."""

_MAX_INDEXED = 1024
"""Entries with an ``index`` in one list, such as tool calls: each piece is looked for among them.
"""


def _merge(into: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece of an object to what is there of it."""
    for key, value in piece.items():
        have = into.get(key)
        parts = have if isinstance(have, list) and not isinstance(have, _Text) else None
        if key == "content" and (parts is not None or isinstance(value, list)):
            into[key] = _add_parts(_add_parts([], have) if parts is None else parts, value)
        elif have is None:
            into[key] = _opened(value, key)
        elif isinstance(value, str) and isinstance(have, _Text):
            have.append(value)
        elif isinstance(value, dict) and isinstance(have, dict):
            _merge(have, value)
        elif isinstance(value, list) and isinstance(have, list):
            _extend(have, value)
        elif value is not None and (key not in _SAID_ONCE or not have):
            into[key] = value


def _extend(have: list[Any], more: list[Any]) -> None:
    """Entries with an ``index`` are pieces of the entry with that index, all others are new."""
    for entry in more:
        index = entry.get("index") if isinstance(entry, dict) else None
        same = None
        if index is not None:
            if len(have) > _MAX_INDEXED:
                raise ValueError(f"more than {_MAX_INDEXED} pieces with an index")
            same = next(
                (old for old in have if isinstance(old, dict) and old.get("index") == index), None
            )
        if same is None:
            have.append(_opened(entry, ""))
        else:
            _merge(same, entry)


def _add_parts(parts: list[Any], more: Any) -> list[Any]:
    """Content as a list of parts, as Mistral's reasoning models send it: text, or thoughts, go on
    in the part before of that kind.
    """
    if isinstance(more, str | _Text):
        text = "".join(more)
        more = [{"type": "text", "text": text}] if text else []
    for part in more or ():
        last = parts[-1] if parts else {}
        if part.get("type") == last.get("type") == "text" and isinstance(last["text"], _Text):
            last["text"].append(part["text"])
        elif part.get("type") == last.get("type") == "thinking" and isinstance(
            last["thinking"], list
        ):
            last["thinking"] = _add_parts(last["thinking"], part["thinking"])
        else:
            parts.append(_opened(part, ""))
    return parts


def _opened(value: Any, key: str) -> Any:
    """A value to which pieces can be added."""
    if isinstance(value, str):
        return value if key in _SAID_ONCE else _Text((value,))
    if isinstance(value, dict):
        return {name: _opened(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        have: list[Any] = []
        _extend(have, value)
        return have
    return value


def _closed(value: Any) -> Any:
    """The value as JSON has it again."""
    if isinstance(value, _Text):
        return "".join(value)
    if isinstance(value, dict):
        return {key: _closed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_closed(entry) for entry in value]
    return value


class _Choices:
    """OpenAI's chat completions and completions, and their many relatives."""

    def __init__(self, kind: str) -> None:
        self.error: dict[str, Any] | None = None
        self._head: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._kind = kind

    def add(self, event: dict[str, Any]) -> None:
        if event.get("error"):
            self.error = event
            return
        for key, value in event.items():
            if key not in ("choices", "obfuscation") and (
                value is not None or key not in self._head
            ):
                self._head[key] = value
        for piece in event.get("choices") or ():
            index = piece.get("index", 0)
            choice = self._choices.setdefault(index, {"index": index})
            for key, value in piece.items():
                if key == "delta":
                    _merge(choice.setdefault("message", {}), value or {})
                elif key in ("text", "logprobs"):
                    _merge(choice, {key: value})
                elif value is not None or key not in choice:
                    choice[key] = value

    def body(self) -> Any:
        choices = [self._choices[index] for index in sorted(self._choices)]
        if not choices or any(choice.get("finish_reason") is None for choice in choices):
            return None
        made: list[dict[str, Any]] = []
        for choice in choices:
            whole = _closed(choice)
            if self._kind == "chat.completion":
                message = {"role": "assistant", "content": None, **whole.pop("message", {})}
                for call in message.get("tool_calls") or ():
                    call.pop("index", None)  # it only said which pieces belong together
                if message.get("tool_calls") and not message["content"]:
                    message["content"] = None
                whole = {"index": whole.pop("index"), "message": message, **whole}
            made.append(whole)
        return {**self._head, "object": self._kind, "choices": made}


class _Responses:
    """OpenAI's Responses API: its last event holds the whole answer."""

    def __init__(self) -> None:
        self.error: dict[str, Any] | None = None
        self._response: Any = None

    def add(self, event: dict[str, Any]) -> None:
        if event.get("type") == "error":
            self.error = {"error": {key: event.get(key) for key in ("message", "code", "param")}}
        elif event.get("type") in ("response.completed", "response.incomplete", "response.failed"):
            self._response = event.get("response")

    def body(self) -> Any:
        return self._response


class _Messages:
    """Anthropic's Messages API."""

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
            self._blocks[event.get("index", 0)] = _opened(event.get("content_block") or {}, "")
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
            _merge(block, delta)  # text, thinking, signature, partial_json

    def body(self) -> Any:
        if not self._ended:
            return None
        blocks = [_closed(self._blocks[index]) for index in sorted(self._blocks)]
        for block in blocks:
            written = block.pop("partial_json", "")
            if written:
                try:
                    block["input"] = json.loads(written)
                except ValueError:  # the answer was too long, and ends inside the call
                    block["input"] = {}
        return {**self._message, "content": blocks}


class _Gemini:
    """Gemini: every event is a whole answer with a piece of text in it."""

    def __init__(self) -> None:
        self.error: dict[str, Any] | None = None
        self._head: dict[str, Any] = {}
        self._candidates: dict[int, dict[str, Any]] = {}

    def add(self, event: dict[str, Any]) -> None:
        if event.get("error"):
            self.error = event
            return
        self._head.update((key, value) for key, value in event.items() if key != "candidates")
        for piece in event.get("candidates") or ():
            candidate = self._candidates.setdefault(piece.get("index", 0), {})
            for key, value in piece.items():
                if key == "content" and isinstance(value, dict):
                    content = candidate.setdefault("content", {"parts": []})
                    self._add_parts(content["parts"], value.get("parts") or [])
                    content.update(
                        (name, inner) for name, inner in value.items() if name != "parts"
                    )
                elif key == "citationMetadata" and isinstance(value, dict):
                    have = candidate.setdefault(key, {}).get("citations") or []
                    more = [
                        cite for cite in value.get("citations") or [] if cite not in have
                    ]  # each event brings its own
                    candidate[key] = {**value, "citations": [*have, *more]}
                elif key == "logprobsResult" and isinstance(value, dict):
                    _merge(candidate.setdefault(key, {}), value)
                else:
                    candidate[key] = value

    @staticmethod
    def _add_parts(parts: list[dict[str, Any]], more: list[dict[str, Any]]) -> None:
        """Text goes on in the part before if that is of the same kind, an answer or a thought; all
        else is a part of its own.
        """
        for part in more:
            last = parts[-1] if parts else {}
            if isinstance(last.get("text"), _Text) and isinstance(part.get("text"), str):
                same = last.get("thought") == part.get("thought")
                if same:
                    last["text"].append(part["text"])
                    last.update((key, value) for key, value in part.items() if key != "text")
                    continue
                if not part["text"] and len(part) == 1:
                    continue
            parts.append(
                {
                    **part,
                    **(
                        {"text": _Text((part["text"],))}
                        if isinstance(part.get("text"), str)
                        else {}
                    ),
                }
            )

    def body(self) -> Any:
        candidates = [self._candidates[index] for index in sorted(self._candidates)]
        blocked = "promptFeedback" in self._head
        if not blocked and (
            not candidates or any(not candidate.get("finishReason") for candidate in candidates)
        ):
            return None
        return _closed({"candidates": candidates, **self._head} if candidates else self._head)


class _Lines:
    """Ollama, llama.cpp, TGI: the last frame tells all about the answer, those before it bring
    pieces of it.
    """

    def __init__(self, joined: tuple[str, ...], end: str) -> None:
        self.error: dict[str, Any] | None = None
        self._joined = joined  # keys that come in pieces
        self._end = end  # the key that is set in the last frame
        self._answers: dict[int, dict[str, Any]] = {}

    def add(self, event: dict[str, Any]) -> None:
        if event.get("error"):
            self.error = event
            return
        answer = self._answers.setdefault(
            event["index"] if type(event.get("index")) is int else 0, {}
        )
        for key, value in event.items():
            if key in self._joined:
                _merge(answer, {key: value})
            else:
                answer[key] = value

    def body(self) -> Any:
        answers = [_closed(self._answers[index]) for index in sorted(self._answers)]
        if not answers or not all(answer.get(self._end) for answer in answers):
            return None
        return answers[0] if len(answers) == 1 else answers


class _Tgi:
    """text-generation-inference: the text stands whole in the last event, the tokens in all of
    them.
    """

    def __init__(self, *, details: bool, listed: bool) -> None:
        self.error: dict[str, Any] | None = None
        self._tokens: list[Any] = []
        self._top: list[Any] = []
        self._last: dict[str, Any] = {}
        self._details = details
        self._listed = listed

    def add(self, event: dict[str, Any]) -> None:
        if event.get("error"):
            self.error = event
            return
        if self._details:
            self._tokens.append(event.get("token"))
            if event.get("top_tokens"):
                self._top.append(event["top_tokens"])
        if event.get("generated_text") is not None:
            self._last = event

    def body(self) -> Any:
        if not self._last:
            return None
        made = {"generated_text": self._last["generated_text"]}
        if self._details:
            made["details"] = {
                **(self._last.get("details") or {}),
                "prefill": [],
                "tokens": self._tokens,
            }
            if self._top:
                made["details"]["top_tokens"] = self._top
        return [made] if self._listed else made


def assembly(dialect: Dialect, path: str, request: Mapping[str, Any]) -> Assembly:
    """What puts together the answer to ``request``, a POST to ``path``."""
    if dialect == "openai.chat":
        return _Choices("chat.completion")
    if dialect == "openai.completions":
        return _Choices("text_completion")
    if dialect == "openai.responses":
        return _Responses()
    if dialect == "anthropic.messages":
        return _Messages()
    if dialect == "gemini":
        return _Gemini()
    if dialect == "ollama.chat":
        return _Lines(("message", "logprobs"), "done")
    if dialect == "ollama.generate":
        return _Lines(("response", "thinking", "logprobs"), "done")
    if dialect == "llama.cpp":
        return _Lines(("content", "tokens", "completion_probabilities"), "stop")
    parameters = request.get("parameters")
    wants = isinstance(parameters, dict) and (
        parameters.get("details") is True or bool(parameters.get("top_n_tokens"))
    )
    return _Tgi(details=wants, listed=path == "/")
