"""The frames of a cut stream, read back: the JSON in each, and Gemini's other way of streaming, one long JSON array."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def payloads(data: bytes) -> Iterator[bytes]:
    """The payload of each frame in ``data``, which holds whole frames, as a cutter gives them: of event streams or lines of JSON.

    >>> list(payloads(b'event: x\\r\\ndata: {"a":1}\\r\\n\\r\\n: note\\n\\ndata:[DONE]\\n\\n')), list(payloads(b'{"b":2}\\n'))
    ([b'{"a":1}', b'[DONE]'], [b'{"b":2}'])
    """
    for line in data.splitlines():
        if line.startswith(b"data:"):
            yield line[5:].strip()
        elif line.startswith(b"{"):
            yield line


def objects(data: bytes) -> Iterator[dict[str, Any]]:
    """The JSON object of each frame in ``data``; what is none (``[DONE]``) is left out."""
    for payload in payloads(data):
        if payload.startswith(b"{"):
            found = json.loads(payload)
            if isinstance(found, dict):
                yield found


class ArrayOfEvents:
    """Event-stream frames in, one JSON array out, piece by piece: what Gemini streams to clients that do not ask for ``alt=sse``."""

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
