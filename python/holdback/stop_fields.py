"""Where stops stand in a request to a model, and what else in it decides how its answer is cut: one
table, for all dialects.

The gateway and the adapters that see HTTP requests read them with this. A request is its path and
its JSON body.

>>> body = {"model": "m", "stop": ["END", "###"], "n": 2, "stream": True}
>>> dialect = dialect_of("/v1/chat/completions")
>>> find_stops(dialect, body), wants_stream(dialect, "/v1/chat/completions", body), count_choices(dialect, body)
((('stop',), ['END', '###']), True, 2)
>>> put_stops(body, ("stop",), ["END"]), body["stop"]
(True, ['END'])
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from holdback.wire import Dialect

# The first that fits. The end of the path decides, because what stands in front differs: /v1,
# /v1beta/openai, /openai/deployments/x, /proxy/... An Assistants thread has /messages too, so
# Anthropic's needs its version.
_PATHS: tuple[tuple[str, Dialect], ...] = (
    (r"/chat/completions$", "openai.chat"),
    (r"/completions$", "openai.completions"),
    (r"/responses$", "openai.responses"),
    (r"/v1/messages$", "anthropic.messages"),
    (r":(?:streamG|g)enerateContent$", "gemini"),
    (r"/api/chat$", "ollama.chat"),
    (r"/api/generate$", "ollama.generate"),
    (r"/completion$", "llama.cpp"),
    (r"/generate(?:_stream)?$|^/$", "tgi"),
)

FIELDS: Mapping[Dialect, tuple[tuple[str, ...], ...]] = {
    "openai.chat": (("stop",),),
    "openai.completions": (("stop",),),
    "openai.responses": (("stop",),),  # the API has none; `stop` is what people add by hand
    "anthropic.messages": (("stop_sequences",),),
    "gemini": (
        ("generationConfig", "stopSequences"),
        ("generationConfig", "stop_sequences"),
        ("generation_config", "stop_sequences"),
        ("generation_config", "stopSequences"),
    ),
    "ollama.chat": (("options", "stop"),),
    "ollama.generate": (("options", "stop"),),
    "llama.cpp": (("stop",),),
    "tgi": (("parameters", "stop"),),
}
"""Where stops stand in a body, from the outside in.

The first is the usual one; Gemini takes underscores as well.
"""


def dialect_of(path: str) -> Dialect | None:
    """The dialect of a POST to a path, `None` for a path that is none of a model's."""
    return next((dialect for pattern, dialect in _PATHS if re.search(pattern, path)), None)


def find_stops(dialect: Dialect, body: Mapping[str, Any]) -> tuple[tuple[str, ...], list[str]]:
    """Where the stops of a request stand, or would, and what they are.

    `ValueError` for something that is not a list of stops.
    """
    for field in FIELDS[dialect]:
        value: Any = body
        for key in field:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str):
            return field, [value]
        if isinstance(value, list) and all(isinstance(stop, str) for stop in value):
            return field, list(value)
        if value is not None:
            raise ValueError(f"{'.'.join(field)} is a string or a list of strings")
    return FIELDS[dialect][0], []


def put_stops(body: dict[str, Any], field: Sequence[str], stops: Sequence[str]) -> bool:
    """Leave just these stops in the body, never an empty list; says whether that changed anything.

    `ValueError` if something that is no JSON object stands where one has to be.
    """
    *outer, name = field
    holder: Any = body
    for key in outer:
        inner = holder.get(key)
        if inner is None:
            if not stops:
                return False
            inner = holder[key] = {}
        if not isinstance(inner, dict):
            raise ValueError(f"{key} is not a JSON object")  # noqa: TRY004 - data is wrong here, not a type of ours
        holder = inner
    if stops:
        holder[name] = list(stops)
        return True
    missing = object()
    return holder.pop(name, missing) is not missing


def model_of(dialect: Dialect, path: str, body: Mapping[str, Any]) -> str | None:
    """The model's name, if the request tells it."""
    if dialect == "gemini":
        return path.rpartition("/")[2].partition(":")[0]
    model = body.get("model")
    return model if isinstance(model, str) else None


def wants_stream(dialect: Dialect, path: str, body: Mapping[str, Any]) -> bool:
    """Whether the answer is to be streamed."""
    if dialect == "gemini":
        return path.endswith(":streamGenerateContent")
    if dialect == "tgi" and path != "/":
        return path.endswith("/generate_stream")
    if dialect in ("ollama.chat", "ollama.generate"):
        return body.get("stream") is not False  # the one API that streams unless told not to
    return body.get("stream") is True


def count_choices(dialect: Dialect, body: Mapping[str, Any]) -> int:
    """How many answers are asked for: `n` of them, to each of several prompts."""
    count: Any = None
    if dialect in ("openai.chat", "openai.completions"):
        count = body.get("n")
    elif dialect == "gemini":
        settings = body.get("generationConfig", body.get("generation_config"))
        if isinstance(settings, dict):
            count = settings.get("candidateCount", settings.get("candidate_count"))
    if type(count) is float and count.is_integer():
        count = int(count)
    return (count if type(count) is int and count > 0 else 1) * max(1, len(_prompts(dialect, body)))


def echoed_chars(dialect: Dialect, body: Mapping[str, Any]) -> int | None:
    """Characters of the prompt that come back in front of the answer; `None` if they cannot be
    known.
    """
    if dialect != "openai.completions" or body.get("echo") is not True:
        return 0
    prompts = _prompts(dialect, body)
    return len(prompts[0]) if len(prompts) == 1 and isinstance(prompts[0], str) else None


def _prompts(dialect: Dialect, body: Mapping[str, Any]) -> list[Any]:
    """The prompts that are answered one by one; a list of token numbers is one prompt."""
    prompt = body.get("prompt") if dialect in ("openai.completions", "llama.cpp") else None
    if isinstance(prompt, list) and not all(type(entry) is int for entry in prompt):
        return prompt
    return [prompt]
