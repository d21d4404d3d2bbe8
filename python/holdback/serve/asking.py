"""What a request asks for, as far as the gateway has to know, within the limits of the
configuration.

A body is parsed once and written again only if something in it has to change; otherwise its very
bytes are forwarded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from holdback.dialects import DIALECTS
from holdback.serve.config import Config
from holdback.stop_fields import find_stops
from holdback.wire import Dialect

MAX_CHOICES = 65_535
"""Answers to one request; each that turns up costs memory."""


class BadRequestError(ValueError):
    """A request that cannot be served; the message is for the client. ``param`` is the field at
    fault.
    """

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
    """Read the body of a POST to ``path``.

    Raises :class:`BadRequestError` for what is no request, or whose stops cannot be used.
    """
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequestError("the body is not a JSON object")
    try:
        field, stops = find_stops(dialect, body)
    except ValueError as error:
        raise BadRequestError(str(error), str(error).partition(" ")[0]) from error
    _check_stops(stops, ".".join(field), config)
    spec = DIALECTS[dialect]
    choices = spec.choices(body)
    if choices > MAX_CHOICES:
        raise BadRequestError(
            f"{choices} answers are asked for; at most {MAX_CHOICES} are given", "n"
        )
    echoed = spec.echoed(body)
    if stops and echoed is None:
        raise BadRequestError(
            "echo together with stops needs one prompt that is text: stops do not count inside it",
            "echo",
        )
    return Ask(
        dialect=dialect,
        body=body,
        raw=raw,
        model=spec.model(path, body),
        stops=tuple(stops),
        field=field,
        stream=spec.wants_stream(path, body),
        include_stop=body.get("include_stop_str_in_output") is True
        or body.get("no_stop_trim") is True,
        choices=choices,
        skip_chars=echoed or 0,
        has_stream_form=spec.has_stream_form(body),
    )


def _check_stops(stops: list[str], name: str, config: Config) -> None:
    if len(stops) > config.max_stops:
        raise BadRequestError(
            f"{name} has {len(stops)} stops; at most {config.max_stops} are taken", name
        )
    if (
        sum(map(len, stops)) * 4 > config.max_stop_bytes
    ):  # an upper bound first: most lists are far from the limit
        size = sum(len(stop.encode("utf-8", "surrogatepass")) for stop in stops)
        if size > config.max_stop_bytes:
            raise BadRequestError(
                f"{name} has {size} bytes of stops; at most {config.max_stop_bytes} are taken", name
            )
