"""Parts that several dialects have alike."""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping
from typing import Any

from holdback.dialects._pieces import closed, merge
from holdback.dialects._spec import Body, Large


def model_in_body(_path: str, body: Body) -> str | None:
    """The field `model`."""
    model = body.get("model")
    return model if isinstance(model, str) else None


def stream_if_true(_path: str, body: Body) -> bool:
    """The field `stream`."""
    return body.get("stream") is True


def set_stream(
    path: str, query: str, body: MutableMapping[str, Any], _usage: bool
) -> tuple[str, str]:
    """Set `stream`."""
    body["stream"] = True
    return path, query


def same_query(query: str) -> str:
    """Streams are events."""
    return query


def whole(count: Any) -> int:
    """A number of answers; 1 for what is none."""
    if type(count) is float and count.is_integer():
        count = int(count)
    return count if type(count) is int and count > 0 else 1


def one(_body: Body) -> int:
    """One answer, whatever the request says."""
    return 1


def prompts(body: Body) -> list[Any]:
    """The prompts that are answered one by one; a list of token numbers is one prompt."""
    prompt = body.get("prompt")
    if isinstance(prompt, Large):
        return [prompt] * (prompt.prompts or 1)
    if isinstance(prompt, list) and not all(type(entry) is int for entry in prompt):
        return prompt
    return [prompt]


def no_echo(_body: Body) -> int:
    """The prompt never comes back."""
    return 0


def always(_body: Body) -> bool:
    """A stream brings all."""
    return True


def no_refusal(_body: Body) -> None:
    """Stops can always be enforced."""


def dumped(event: Any) -> str:
    """An event as JSON, or as the text that it is."""
    if isinstance(event, str):
        return event
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def data_frame(event: Any) -> bytes:
    """An event of an event stream, without a name."""
    return f"data: {dumped(event)}\n\n".encode()


def named_frame(event: Any) -> bytes:
    """An event whose name is its `type`."""
    return f"event: {event['type']}\ndata: {dumped(event)}\n\n".encode()


def line(event: Any) -> bytes:
    """A line of JSON."""
    return f"{dumped(event)}\n".encode()


def word_for(status: int, words: Mapping[str, int], default: str) -> str:
    """The word for a status, the first that has it."""
    return next((word for word, code in words.items() if code == status), default)


class LastTells:
    """Ollama, llama.cpp: the last frame has the facts about the answer, those before it bring pieces
    of it.
    """

    def __init__(self, joined: tuple[str, ...], end: str) -> None:
        self.error: dict[str, Any] | None = None
        self._joined = joined  # keys that come in pieces
        self._end = end  # the key that is set in the last frame
        self._answers: dict[int, dict[str, Any]] = {}

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event."""
        if event.get("error"):
            self.error = event
            return
        answer = self._answers.setdefault(
            event["index"] if type(event.get("index")) is int else 0, {}
        )
        for key, value in event.items():
            if key in self._joined:
                merge(answer, {key: value})
            else:
                answer[key] = value

    def body(self) -> Any:
        """The answer; a list of them if there are several."""
        answers = [closed(self._answers[index]) for index in sorted(self._answers)]
        if not answers or not all(answer.get(self._end) for answer in answers):
            return None
        return answers[0] if len(answers) == 1 else answers
