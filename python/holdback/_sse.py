"""Event streams and lines of JSON, read back frame by frame, and Gemini's other way of streaming,
one long JSON array: taken apart into frames, so that they can be cut, and put together again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdback.wire import WireError

_MARKS = re.compile(rb'["{}\[\]]')
_STRING_END = re.compile(rb'["\\]')
_BETWEEN = b" \t\r\n,"

MAX_EVENT_BYTES = 16 << 20
"""Of one element of the array."""


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


class EventsOfArray:
    r"""A JSON array of objects in, cut anywhere; event-stream frames out, one for each object.

    Line ends between the tokens of an object become blanks: a frame is one line.

    >>> events = EventsOfArray()
    >>> events.feed(b'[{"a":\n"x]"},\r\n{"b"'), events.feed(b":[2]}]")
    (b'data: {"a": "x]"}\n\n', b'data: {"b":[2]}\n\n')
    """

    def __init__(self) -> None:
        self._begun = self._over = False
        self._object = bytearray()
        self._depth = 0
        self._in_string = self._escaped = False

    def feed(self, data: bytes) -> bytes:
        """The frames of the objects that are complete. Raises `WireError` for another value."""
        out, at = list[bytes](), 0
        while at < len(data):
            if self._depth == 0:
                at = self._skip(data, at)
                if at >= len(data):
                    break
                self._depth, begin = 1, at
                at += 1
                self._object += data[begin:at]
            begin, at = at, self._walk(data, at)
            self._object += data[begin:at]
            if len(self._object) > MAX_EVENT_BYTES:
                raise WireError(f"an event is longer than {MAX_EVENT_BYTES} bytes")
            if self._depth == 0:
                event = bytes(self._object).replace(b"\r", b" ").replace(b"\n", b" ")
                out.append(b"data: " + event + b"\n\n")
                self._object.clear()
        return b"".join(out)

    def finish(self) -> None:
        """The array is over. Raises `WireError` if it is not."""
        if not self._over:
            raise WireError("the array of events ends too early")

    def _skip(self, data: bytes, at: int) -> int:
        """Where the next object begins; the end of `data` if it does not in here."""
        rest = data[at:].lstrip(_BETWEEN)
        at = len(data) - len(rest)
        if not rest:
            return at
        if rest[:1] == b"[" and not self._begun:
            self._begun = True
            return self._skip(data, at + 1)
        if rest[:1] == b"]" and self._begun and not self._over:
            self._over = True
            return self._skip(data, at + 1)
        if rest[:1] != b"{" or not self._begun or self._over:
            raise WireError("an array of events holds something that is no object")
        return at

    def _walk(self, data: bytes, at: int) -> int:
        """The end of the object that is open, or of `data`."""
        while at < len(data):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            found = (_STRING_END if self._in_string else _MARKS).search(data, at)
            if found is None:
                return len(data)
            mark, at = found.group(), found.end()
            if mark == b"\\":
                self._escaped = True
            elif mark == b'"':
                self._in_string = not self._in_string
            elif mark in (b"{", b"["):
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == 0:
                    return at
        return at
