"""The frames of a cut stream, read back: the JSON in each, and Gemini's other way of streaming, one
long JSON array.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def payloads(data: bytes) -> Iterator[bytes]:
    """The payload of each frame in ``data``, which holds whole frames, as a cutter gives them: of
    event streams or lines of JSON.

    >>> list(payloads(b'event: x\\r\\ndata: {"a":\\r\\ndata: 1}\\r\\n\\r\\n: note\\n\\ndata:[DONE]\\n\\n'))
    [b'{"a":\\n1}', b'[DONE]']
    >>> list(payloads(b' {"b":2}\\n'))
    [b'{"b":2}']
    """
    lines: list[bytes] = []
    for line in data.splitlines():
        line = line.removeprefix(b"\xef\xbb\xbf")
        if line.startswith(b"data:"):
            lines.append(line[5:])
        elif not line:
            if lines:
                yield _joined(lines)
                lines = []
        elif not lines and line.lstrip().startswith(b"{"):
            yield line.strip()
    if lines:
        yield _joined(lines)


def _joined(lines: list[bytes]) -> bytes:
    return b"\n".join(line.removeprefix(b" ") for line in lines).strip()


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


class ArrayOfEvents:
    """Event-stream frames in, one JSON array out, piece by piece: what Gemini streams to clients
    that do not ask for ``alt=sse``.
    """

    content_type = b"application/json; charset=UTF-8"

    def __init__(self) -> None:
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        """The array as far as ``data``, whole frames, takes it."""
        made = b""
        for payload in payloads(data):
            made += (b",\r\n" if self._begun else b"[") + payload
            self._begun = True
        return made

    def finish(self) -> bytes:
        """Its end."""
        return b"]" if self._begun else b"[]"
