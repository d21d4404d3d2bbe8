"""Objects that come in pieces, put together again.

Fields that are not known are kept: a string that comes in pieces is joined, a list is extended,
anything else is the last one sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Text(list[str]):
    """A string in the making: pieces are joined once, at the end."""


_ONCE = frozenset(
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
"""Entries with an `index` in one list, such as tool calls: each piece is looked for among them."""


def merge(into: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece of an object to what is there of it."""
    for key, value in piece.items():
        have = into.get(key)
        parts = have if isinstance(have, list) and not isinstance(have, Text) else None
        if key == "content" and (parts is not None or isinstance(value, list)):
            into[key] = _add_parts(_add_parts([], have) if parts is None else parts, value)
        elif have is None:
            into[key] = opened(value, key)
        elif isinstance(value, str) and isinstance(have, Text):
            have.append(value)
        elif isinstance(value, dict) and isinstance(have, dict):
            merge(have, value)
        elif isinstance(value, list) and isinstance(have, list):
            _extend(have, value)
        elif value is not None and (key not in _ONCE or not have):
            into[key] = value


def _extend(have: list[Any], more: list[Any]) -> None:
    """Entries with an `index` are pieces of the entry with that index, all others are new."""
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
            have.append(opened(entry, ""))
        else:
            merge(same, entry)


def _add_parts(parts: list[Any], more: Any) -> list[Any]:
    """Content as a list of parts, as Mistral's reasoning models send it: text, or thoughts, go on
    in the part before of that kind.
    """
    if isinstance(more, str | Text):
        text = "".join(more)
        more = [{"type": "text", "text": text}] if text else []
    for part in more or ():
        last = parts[-1] if parts else {}
        if part.get("type") == last.get("type") == "text" and isinstance(last["text"], Text):
            last["text"].append(part["text"])
        elif part.get("type") == last.get("type") == "thinking" and isinstance(
            last["thinking"], list
        ):
            last["thinking"] = _add_parts(last["thinking"], part["thinking"])
        else:
            parts.append(opened(part, ""))
    return parts


def opened(value: Any, key: str) -> Any:
    """A value to which pieces can be added."""
    if isinstance(value, str):
        return value if key in _ONCE else Text((value,))
    if isinstance(value, dict):
        return {name: opened(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        have: list[Any] = []
        _extend(have, value)
        return have
    return value


def closed(value: Any) -> Any:
    """The value as JSON has it again."""
    if isinstance(value, Text):
        return "".join(value)
    if isinstance(value, dict):
        return {key: closed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [closed(entry) for entry in value]
    return value
