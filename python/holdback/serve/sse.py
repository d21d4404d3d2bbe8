"""The events of a cut stream, read back as JSON, and JSON written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from holdback._sse import payloads


def objects(data: bytes) -> Iterator[dict[str, Any]]:
    """The JSON object of each frame in ``data``; what is none (``[DONE]``) is left out.

    Raises `ValueError` for what cannot be read.
    """
    for payload in payloads(data):
        if payload.startswith(b"{"):
            try:
                found = json.loads(payload)
            except RecursionError as error:
                raise ValueError("the event is nested too deeply") from error
            if isinstance(found, dict):
                yield found


def dump_json(value: Any) -> bytes:
    """A value as JSON in UTF-8. Half of a surrogate pair that stands alone, which UTF-8 has no form
    for, is an escape.

    Raises `ValueError` for a number that JSON has not got (1e999 is read as infinity).

    >>> dump_json({"a": "\\u00e9\\ud83d"})
    b'{"a":"\\xc3\\xa9\\\\ud83d"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Halves that came in two pieces are a character when they stand side by side.
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return whole.encode("utf-8", "backslashreplace")
