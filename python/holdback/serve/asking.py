"""What a request asks for, as far as the gateway has to know: its stops, whether it streams, how many answers, what is echoed.

A body is parsed once and written again only if something in it has to change; otherwise its very bytes are forwarded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdback.serve.config import Config
from holdback.wire import Dialect

# Where stops stand, from the outside in. Gemini's JSON may also be written with underscores.
FIELDS: Mapping[Dialect, tuple[tuple[str, ...], ...]] = {
    "openai.chat": (("stop",),),
    "openai.completions": (("stop",),),
    "openai.responses": (("stop",),),  # the API has none: the gateway takes it and never sends it on
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


class BadRequestError(ValueError):
    """A request that cannot be served; the message is for the client. ``param`` is the field at fault."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


@dataclass(slots=True)
class Ask:
    """One request for an answer."""

    dialect: Dialect
    body: dict[str, Any]
    raw: bytes
    model: str | None
    stops: tuple[str, ...]
    field: tuple[str, ...]
    """Where the stops stood, or would."""
    stream: bool
    """The client wants a stream."""
    include_stop: bool
    """The client wants to see the stop's text."""
    choices: int
    skip_chars: int
    """Characters of the prompt that come back in front of the answer."""
    has_stream_form: bool
    """A stream can bring all that this request asks for."""


def read_ask(dialect: Dialect, path: str, raw: bytes, config: Config) -> Ask:
    """Read the body of a POST to ``path``. Raises :class:`BadRequestError` for what is no request, or whose stops cannot be used."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequestError("the body is not a JSON object")
    field, stops = _stops(dialect, body)
    _check_stops(stops, ".".join(field), config)
    prompts = _prompts(dialect, body)
    return Ask(
        dialect=dialect,
        body=body,
        raw=raw,
        model=_model(dialect, path, body),
        stops=stops,
        field=field,
        stream=_streams(dialect, path, body),
        include_stop=body.get("include_stop_str_in_output") is True or body.get("no_stop_trim") is True,
        choices=_choices(dialect, body) * max(1, len(prompts)),
        skip_chars=_echoed(dialect, body, prompts) if stops else 0,
        has_stream_form=_has_stream_form(dialect, body),
    )


def _stops(dialect: Dialect, body: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where the stops stand and what they are."""
    for field in FIELDS[dialect]:
        holder: Any = body
        for key in field[:-1]:
            holder = holder.get(key) if isinstance(holder, dict) else None
        value = holder.get(field[-1]) if isinstance(holder, dict) else None
        if value is None:
            continue
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or not all(isinstance(stop, str) for stop in value):
            raise BadRequestError(f"{'.'.join(field)} is a string or a list of strings", ".".join(field))
        return field, tuple(value)
    return FIELDS[dialect][0], ()


def _check_stops(stops: tuple[str, ...], name: str, config: Config) -> None:
    if len(stops) > config.max_stops:
        raise BadRequestError(f"{name} has {len(stops)} stops; at most {config.max_stops} are taken", name)
    if sum(map(len, stops)) * 4 > config.max_stop_bytes:  # an upper bound first: most lists are far from the limit
        size = sum(len(stop.encode("utf-8", "surrogatepass")) for stop in stops)
        if size > config.max_stop_bytes:
            raise BadRequestError(f"{name} has {size} bytes of stops; at most {config.max_stop_bytes} are taken", name)


def _model(dialect: Dialect, path: str, body: dict[str, Any]) -> str | None:
    if dialect == "gemini":
        return path.rpartition("/")[2].partition(":")[0]
    model = body.get("model")
    return model if isinstance(model, str) else None


def _streams(dialect: Dialect, path: str, body: dict[str, Any]) -> bool:
    if dialect == "gemini":
        return path.endswith(":streamGenerateContent")
    if dialect in ("ollama.chat", "ollama.generate"):
        return body.get("stream") is not False  # the one API that streams unless it is told not to
    if dialect == "tgi" and path != "/":
        return path == "/generate_stream"
    return body.get("stream") is True


def _choices(dialect: Dialect, body: dict[str, Any]) -> int:
    count: Any = 1
    if dialect in ("openai.chat", "openai.completions"):
        count = body.get("n")
    elif dialect == "gemini":
        settings = body.get("generationConfig", body.get("generation_config"))
        if isinstance(settings, dict):
            count = settings.get("candidateCount", settings.get("candidate_count"))
    return count if type(count) is int and count > 0 else 1


def _prompts(dialect: Dialect, body: dict[str, Any]) -> list[Any]:
    """The prompts that are answered one by one; a list of token numbers is one prompt."""
    prompt = body.get("prompt") if dialect in ("openai.completions", "llama.cpp") else None
    if not isinstance(prompt, list):
        return [prompt]
    return [prompt] if all(type(entry) is int for entry in prompt) else prompt


def _echoed(dialect: Dialect, body: dict[str, Any], prompts: list[Any]) -> int:
    if dialect != "openai.completions" or body.get("echo") is not True:
        return 0
    if len(prompts) == 1 and isinstance(prompts[0], str):
        return len(prompts[0])
    raise BadRequestError(
        "echo together with stops needs one prompt that is text: stops must not count inside it", "echo"
    )


def _has_stream_form(dialect: Dialect, body: dict[str, Any]) -> bool:
    """False for what only a whole answer can bring: the best of several, sound, work that goes on in the background."""
    best = body.get("best_of")
    if dialect == "tgi" and isinstance(body.get("parameters"), dict):
        best = body["parameters"].get("best_of")
    modalities = body.get("modalities")
    if isinstance(modalities, list) and "audio" in modalities:
        return False
    return not (type(best) is int and best > 1) and body.get("background") is not True
