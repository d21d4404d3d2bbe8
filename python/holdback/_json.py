"""JSON where its size is not ours to choose: a few fields of a large object read and changed
without parsing the rest, and values written in UTF-8.

>>> found = Document(b'{"model": "m", "messages": [[1], [2]], "stop": ["a", "b"]}', [("stop",)])
>>> found.body
{'stop': ['a', 'b']}
>>> edits = Edits(found)
>>> edits.put(("stop",), ["a"])
>>> edits.made()
b'{"model": "m", "messages": [[1], [2]], "stop": ["a"]}'
>>> edits.remove(("stop",))
>>> edits.put(("stream",), True)
>>> edits.made()
b'{"stream":true,"model": "m", "messages": [[1], [2]]}'
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdback._core import _json_elements, _json_object
from holdback.dialects import Large

Path = tuple[str, ...]

MAX_PARSED = 256 << 10
"""Bytes of lists and objects that are parsed of one document. They may be made of brackets only,
and then cost a hundred times their size in memory and half a second for a few megabytes."""

MAX_STRING = 1 << 20
"""Bytes of a string that is read. A longer one is `Large`."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class _Object:
    start: int
    end: int
    count: int
    fields: dict[str, tuple[int, int, int]]
    """Where the key begins, where the value begins and ends."""


class Document:
    """A JSON object in UTF-8, of which some fields are read.

    Args:
        raw: its bytes.
        wanted: the fields, as keys from the outside in. A field inside one that is no object is not
            there; what stands in its place is.

    Raises:
        ValueError: it is no JSON object, is nested too deeply, or has one of these keys twice, of
            which readers differ in which one they take.
    """

    def __init__(self, raw: bytes, wanted: Iterable[Path]) -> None:
        self.raw = raw
        self.objects = dict[Path, _Object]()
        self._left = MAX_PARSED
        tree: dict[str, Any] = {}
        for path in wanted:
            place = tree
            for key in path:
                place = place.setdefault(key, {})
        start = len(_BOM) if raw.startswith(_BOM) else 0
        self.body: dict[str, Any] = self._read((), start, tree, whole=True)
        """The fields that were found; a value of a size that is not read is `Large`."""

    def _read(self, path: Path, start: int, tree: dict[str, Any], *, whole: bool) -> dict[str, Any]:
        begin, end, count, found = _json_object(self.raw, start, list(tree), whole)
        fields = {key: (at, value, stop) for key, at, value, stop in found}
        self.objects[path] = _Object(begin, end, count, fields)
        made = dict[str, Any]()
        for key, (_, value, stop) in fields.items():
            if tree[key] and self.raw[value] == ord("{"):
                made[key] = self._read((*path, key), value, tree[key], whole=False)
            else:
                made[key] = self._value(value, stop)
        return made

    def _value(self, start: int, end: int) -> Any:
        kind, size = self.raw[start : start + 1], end - start
        if kind == b'"':
            return load_json(self.raw[start:end]) if size <= MAX_STRING else Large(None)
        if kind in b"[{":
            if size > self._left:
                return Large(self._prompts(start) if kind == b"[" else None)
            self._left -= size
        return load_json(self.raw[start:end])

    def _prompts(self, start: int) -> int:
        count, numbers = _json_elements(self.raw, start, 1 << 20)
        return 1 if numbers else count


class Edits:
    """Changes to a document; its other bytes stay as they are. Of each object at most one field can
    be removed, and at most one be put if the object is not there.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._changes = dict[Path, bytes | None]()

    def put(self, path: Path, value: Any) -> None:
        """Set a field, and make the object around it if there is none.

        Raises `ValueError` if something that is no object stands where one has to be.
        """
        self._checked(path)
        self._changes[path] = dump_json(value)

    def remove(self, path: Path) -> None:
        """Take a field out, if it is there. Raises as `put`."""
        self._checked(path)
        if path[:-1] in self._document.objects:
            self._changes[path] = None

    def _checked(self, path: Path) -> None:
        body: Any = self._document.body
        for key in path[:-1]:
            body = body.get(key)
            if body is None:
                return
            if not isinstance(body, dict):
                raise ValueError(f"{key} is not a JSON object")  # noqa: TRY004 - of the data

    def made(self) -> bytes:
        """The document, changed."""
        return b"".join(self.pieces())

    def pieces(self) -> list[bytes | memoryview]:
        """The same in pieces, those that are not changed without a copy."""
        document, raw = self._document, self._document.raw
        splices = list[tuple[int, int, bytes]]()
        added = dict[Path, list[bytes]]()
        removed = set[Path]()
        for path, value in self._changes.items():
            *outer, name = path
            parent = tuple(outer)
            # Objects that are not there are made from the inside out.
            while parent not in document.objects and value is not None:
                value = b"{" + _field(name, value) + b"}"
                *outer, name = parent
                parent = tuple(outer)
            place = document.objects[parent].fields.get(name)
            if value is None:
                if place is not None:
                    splices.append((*self._with_comma(place), b""))
                    removed.add(parent)
            elif place is not None:
                splices.append((place[1], place[2], value))
            else:
                added.setdefault(parent, []).append(_field(name, value))
        for parent, fields in added.items():
            at = document.objects[parent]
            more = at.count - (parent in removed) > 0
            text = b",".join(fields) + (b"," if more else b"")
            splices.append((at.start + 1, at.start + 1, text))
        view = memoryview(raw)
        pieces, done = list[bytes | memoryview](), 0
        for start, end, text in sorted(splices):
            pieces += (view[done:start], text)
            done = end
        return [*pieces, view[done:]] if pieces else [raw]

    def _with_comma(self, place: tuple[int, int, int]) -> tuple[int, int]:
        """The span of a field with the comma after it, or before it if it is the last."""
        raw, (start, _, end) = self._document.raw, place
        after = _past_blanks(raw, end)
        if raw[after : after + 1] == b",":
            return start, _past_blanks(raw, after + 1)
        before = start
        while raw[before - 1 : before] in (b" ", b"\t", b"\r", b"\n"):
            before -= 1
        return (before - 1 if raw[before - 1 : before] == b"," else start), end


def _past_blanks(raw: bytes, at: int) -> int:
    while raw[at : at + 1] in (b" ", b"\t", b"\r", b"\n"):
        at += 1
    return at


def _field(name: str, value: bytes) -> bytes:
    return dump_json(name) + b":" + value


def load_json(data: bytes) -> Any:
    """JSON read. A number beyond the range of a float is the largest one, so that what is written
    of it is JSON again; `NaN` and `Infinity`, which are none, are kept as they came.

    Raises `ValueError` for what cannot be read.
    """
    try:
        return json.loads(data, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("the values are nested too deeply") from error


def _finite(text: str) -> float:
    value = float(text)
    return value if abs(value) < float("inf") else sys.float_info.max * (1 if value > 0 else -1)


def dump_json(value: Any) -> bytes:
    """A value as JSON in UTF-8. A lone surrogate, which UTF-8 has no form for, is an escape.

    >>> dump_json({"a": "\\u00e9\\ud83d"})
    b'{"a":"\\xc3\\xa9\\\\ud83d"}'
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Halves that came in two pieces are a character when they stand side by side.
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return whole.encode("utf-8", "backslashreplace")
