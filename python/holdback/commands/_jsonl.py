"""JSON lines for `holdback truncate`: blocks of whole lines, and lines in which only the texts
change.

A line whose texts have nothing to cut leaves as the bytes that came in. In any other line only the
strings that are cut are written anew; all other bytes stay, so numbers keep their digits and
unknown fields their spelling.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from holdback.commands import _json_path

_BOM = "\ufeff"

Cutting: TypeAlias = Callable[[list[str]], tuple[list[str], list[Any]]]
"""Texts in; what is left of each, and its stop or `None`."""


class BadRowError(ValueError):
    """A line that cannot be read.

    `offset` says where it begins, in bytes from the beginning of what was read.
    """

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass
class Tally:
    """What was done, in numbers that add up over blocks."""

    rows: int = 0
    texts: int = 0
    cut: int = 0
    bad: int = 0
    characters: int = 0  # cut off, the stops included
    stops: dict[str, int] = field(default_factory=dict)  # which stop fired how often

    def add(self, other: Tally) -> None:
        """Add the numbers of another block."""
        self.rows += other.rows
        self.texts += other.texts
        self.cut += other.cut
        self.bad += other.bad
        self.characters += other.characters
        for stop, times in other.stops.items():
            self.stops[stop] = self.stops.get(stop, 0) + times

    def fired(self, stop: str) -> None:
        """Count a text that was cut at `stop`."""
        self.cut += 1
        self.stops[stop] = self.stops.get(stop, 0) + 1


def plan_blocks(path: Path, size: int) -> list[tuple[int, int]]:
    """The blocks of a file, as (begin, end) in bytes: a block owns the lines that begin in it."""
    total = path.stat().st_size
    return [(begin, min(begin + size, total)) for begin in range(0, total, size)]


def read_block(source: BinaryIO, begin: int, end: int) -> tuple[int, list[bytes]]:
    """Where the first line that begins in a block begins, and all of these lines, their ends
    included.
    """
    start = begin
    if begin:
        source.seek(
            begin - 1
        )  # one byte earlier: if that is a line's end, a line begins exactly at `begin`
        start = begin - 1 + len(source.readline())
    if start >= end:
        return start, []
    source.seek(start)
    data = source.read(end - start)
    if not data.endswith(b"\n"):
        data += source.readline()
    return start, data.split(b"\n") if not data.endswith(b"\n") else data[:-1].split(b"\n")


@dataclass(frozen=True)
class Fields:
    """Which fields a row has for us."""

    column: str
    stop_column: str | None = None

    def path(self, row: dict[str, Any]) -> _json_path.Path:
        """The way to the texts: a field of this very name before one further inside."""
        return (self.column,) if self.column in row else _json_path.parse(self.column)


class Lines:
    """Cuts rows of JSON, block by block."""

    def __init__(self, fields: Fields, cutting: Cutting, *, keep_bad: bool) -> None:
        self.fields = fields
        self.cutting = cutting
        self.keep_bad = keep_bad

    def edit(self, lines: list[bytes], offset: int, tally: Tally) -> Iterator[bytes]:
        """The lines (without their ends), cut.

        Args:
            lines: whole lines, without their ends.
            offset: where the first one begins, for errors.
            tally: takes the counts.

        Raises:
            BadRowError: for the first line that is not a JSON object with texts in the column, unless bad rows are kept.
        """
        rows: list[_Row | bytes] = []
        texts: list[str] = []
        for line in lines:
            if line.strip():
                try:
                    row = _Row(line, self.fields, texts)
                except (ValueError, RecursionError) as error:
                    if not self.keep_bad:
                        raise BadRowError(str(error), offset) from error
                    tally.bad += 1
                    rows.append(line)
                else:
                    rows.append(row)
                tally.rows += 1
            else:
                rows.append(line)
            offset += len(line) + 1
        kept, stops = self.cutting(texts)
        tally.texts += len(texts)
        for text, short, stop in zip(texts, kept, stops, strict=True):
            if stop is not None:
                tally.fired(stop)
                tally.characters += len(text) - len(short)
        for row_or_line in rows:
            yield (
                row_or_line if isinstance(row_or_line, bytes) else row_or_line.written(kept, stops)
            )


class _Row:
    """One line: its value, and which of the block's texts are its own."""

    __slots__ = ("begin", "end", "fields", "line", "path", "row", "text", "value")

    def __init__(self, line: bytes, fields: Fields, texts: list[str]) -> None:
        self.line, self.fields = line, fields
        self.text = line.decode()
        try:
            self.row = json.loads(self.text.removeprefix(_BOM))
        except ValueError as error:
            raise ValueError(f"not JSON: {error}") from error
        if not isinstance(self.row, dict):
            raise ValueError("not a JSON object")  # noqa: TRY004  (of the data, not of the call)
        self.path = fields.path(self.row)
        self.value = _json_path.value_at(self.row, self.path)
        self.begin = len(texts)
        try:
            _gather(self.value, texts, fields.column)
        except ValueError:
            del texts[self.begin :]
            raise
        self.end = len(texts)

    def written(self, kept: list[str], stops: list[Any]) -> bytes:
        fired = stops[self.begin : self.end]
        cut = any(stop is not None for stop in fired)
        named = self.fields.stop_column
        if not cut and named is None:
            return self.line
        edits = []
        if cut:
            short = _shaped(self.value, iter(kept[self.begin : self.end]), str_of=_head)
            edits.append((*_json_path.span_at(self.text, self.path), _dump(short, self.text)))
        if named is not None:
            report = _dump(_shaped(self.value, iter(fired), str_of=_other), self.text)
            brace = self.text.rindex("}")
            at = (
                (*_json_path.span_at(self.text, (named,)), report)
                if named in self.row
                else (brace, brace, f", {_dump(named, self.text)}: {report}")
            )
            edits.append(at)
        text = self.text
        for begin, end, new in sorted(edits, reverse=True):
            text = text[:begin] + new + text[end:]
        return text.encode()


def _gather(value: Any, texts: list[str], name: str) -> None:
    """Append the texts of a field: a string, null, or a list of such."""
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, list):
        for item in value:
            _gather(item, texts, name)
    elif value is not None:
        raise ValueError(
            f"field {name!r} holds {json.dumps(value)[:40]}, not a string or a list of strings"
        )


def _shaped(value: Any, items: Iterator[Any], *, str_of: Callable[[str, Any], Any]) -> Any:
    """The same shape with each string replaced."""
    if isinstance(value, list):
        return [_shaped(item, items, str_of=str_of) for item in value]
    return None if value is None else str_of(value, next(items))


def _head(text: str, kept: str) -> str:
    return text[: len(kept)]


def _other(_text: str, stop: Any) -> Any:
    return stop


def _dump(value: Any, line: str) -> str:
    """The value as JSON, in ASCII if the line is; also if it has a lone surrogate, which only an
    escape can write.
    """
    if not line.isascii():
        written = json.dumps(value, ensure_ascii=False)
        if not any("\ud800" <= character <= "\udfff" for character in written):
            return written
    return json.dumps(value)
