"""Where stops stand in a request to a model, and what else in it decides how its answer is cut: by
the table of `holdback.dialects`.

>>> body = {"model": "m", "stop": ["END", "###"], "n": 2, "stream": True}
>>> find_stops("openai.chat", body)
(('stop',), ['END', '###'])
>>> put_stops(body, ("stop",), ["END"]), body["stop"]
(True, ['END'])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdback.dialects import DIALECTS
from holdback.wire import Dialect


def find_stops(dialect: Dialect, body: Mapping[str, Any]) -> tuple[tuple[str, ...], list[str]]:
    """Where the stops of a request stand, or would, and what they are.

    `ValueError` for something that is not a list of stops.
    """
    fields = DIALECTS[dialect].stop_fields
    for field in fields:
        value: Any = body
        for key in field:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str):
            return field, [value]
        if isinstance(value, list) and all(isinstance(stop, str) for stop in value):
            return field, list(value)
        if value is not None:
            raise ValueError(f"{'.'.join(field)} is a string or a list of strings")
    return fields[0], []


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
