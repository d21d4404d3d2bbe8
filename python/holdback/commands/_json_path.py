"""The way to a field of a row: `text`, or `response.body.choices[0].message.content` as batch files
have it; and where its value stands in the line, so that nothing else is written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

Path: TypeAlias = "tuple[str | int, ...]"
"""Names of objects and indexes of arrays, from the outside in."""

_BLANK, _COLON, _COMMA = (re.compile(rf"[ \t\r\n]*{sign}[ \t\r\n]*") for sign in ("", ":", ",?"))
_DECODER = json.JSONDecoder()
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]")
MOST_NAMES = 12  # of a row, in an error


def parse(text: str) -> Path:
    """The steps of a path.

    >>> parse("choices[0].message.content")
    ('choices', 0, 'message', 'content')

    Raises:
        ValueError: for a text that is no path.
    """
    steps: list[str | int] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or (not steps and found[0] != found[1]):
            raise ValueError(f"{text!r} names no field: write it like choices[0].message.content")
        steps.append(found[1] if found[2] is None else int(found[2]))
        at = found.end()
    if not steps:
        raise ValueError("an empty name names no field")
    return tuple(steps)


def value_at(row: Any, path: Path) -> Any:
    """The value that `path` leads to; `None` where the way ends in a null (the answer of a failed
    request, say).

    Raises:
        ValueError: if there is none; it says where the way ends and what is there. (Never a
            `TypeError`: it is the data that is wrong, not the call.)
    """
    value = row
    for depth, step in enumerate(path):
        if value is None:
            return None
        before = shown(path[:depth])
        if isinstance(step, int):
            if not isinstance(value, list):
                raise ValueError(f"{before} is no list, so it has no item {step}")  # noqa: TRY004 - of the data
            if step >= len(value):
                raise ValueError(f"{before} has no item {step}: its length is {len(value)}")
        elif not isinstance(value, dict):
            raise ValueError(f"{before} is no object, so it has no field {step!r}")  # noqa: TRY004 - of the data
        elif step not in value:
            where = f"in {before} " if depth else ""
            raise ValueError(f"no field {step!r} {where}({_has(value)})")
        value = value[step]
    return value


def _has(row: dict[str, Any]) -> str:
    names = list(row)
    listed = ", ".join(repr(name)[:80] for name in names[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"it has {listed}{more}" if names else "it is empty"


def shown(path: Path) -> str:
    """The path as it is written."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return steps.removeprefix(".")


def span_at(text: str, path: Path) -> tuple[int, int]:
    """Where the value that `path` leads to stands in `text`, which is known to be good JSON that has
    it. Of equal names the last one counts, as in `json`.
    """
    begin = _end(_BLANK, text, text.index("{"))
    end = len(text)
    for step in path:
        for name, inner_begin, inner_end in _members(text, begin):
            if name == step:
                begin_found, end = inner_begin, inner_end
                if isinstance(step, int):
                    break
        begin = begin_found
    return begin, end


def _members(text: str, at: int) -> Iterator[tuple[str | int, int, int]]:
    """The values of the object or array that begins at `at`, each with its name or index."""
    named = text[at] == "{"
    at = _end(_BLANK, text, at + 1)
    number = 0
    while text[at] not in "}]":
        name: str | int = number
        if named:
            name, at = _DECODER.raw_decode(text, at)
            at = _end(_COLON, text, at)
        _, end = _DECODER.raw_decode(text, at)
        yield name, at, end
        number += 1
        at = _end(_COMMA, text, end)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
