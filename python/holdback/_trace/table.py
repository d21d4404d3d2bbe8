"""A trace as text: one row a step, its cells aligned, long ones without their middle.

The page and the terminal take their cells from here, so that all three show the same.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from holdback._folding import visible

if TYPE_CHECKING:
    from . import Step, Trace

HEADS = ("chunk", "arrived", "sent on", "held", "for")


def rows(trace: Trace) -> Iterator[tuple[str, str, str, str, str]]:
    """The cells of the table, one row a step: visible text, with `·` for a space at an edge, where
    it would not be seen.
    """
    for number, step in enumerate(trace.steps):
        last = number == len(trace.steps) - 1
        name = "end" if step.chunk is None else str(number)
        yield (
            name,
            shown_chunk(step),
            shown(step.emit),
            shown(step.held),
            _why(trace, step, last=last),
        )


def shown(text: str) -> str:
    """Text with visible escapes, and `·` for the spaces at its edges."""
    return _with_dots(text, visible)


def shown_chunk(step: Step) -> str:
    """What arrived, the same way; bytes that are not whole characters as escapes."""
    if step.chunk is None:
        return "(no more text)"
    if isinstance(step.chunk, str):
        return shown(step.chunk)
    return _with_dots(step.chunk.decode("utf-8", "surrogateescape"), _visible_bytes)


def _with_dots(text: str, show: Callable[[str], str]) -> str:
    core = text.strip(" ")
    if not core:
        return "·" * len(text)
    left, right = len(text) - len(text.lstrip(" ")), len(text) - len(text.rstrip(" "))
    return "·" * left + show(core) + "·" * right


def _visible_bytes(text: str) -> str:
    """Decoded bytes, those that were no character (half surrogates, by `surrogateescape`) as the
    bytes they are.
    """
    return "".join(
        f"\\x{ord(character) - 0xDC00:02x}"
        if "\udc80" <= character <= "\udcff"
        else visible(character)
        for character in text
    )


def _why(trace: Trace, step: Step, *, last: bool) -> str:
    match = trace.match
    if match is not None and last:
        rest = (
            match.rest
            if isinstance(match.rest, str)
            else bytes(match.rest).decode(errors="replace")
        )
        unsent = f", not sent: {shown(rest)}" if rest else ""
        return f"stop {match.index} {shown(str(match.stop))} at {match.start}{unsent}"
    reasons = []
    if step.held:
        reasons += [f"{index} {shown(trace.stops[index])}" for index in step.waits_for[:3]] or [
            "a marker"
        ]
        if len(step.waits_for) > 3:
            reasons.append(f"{len(step.waits_for) - 3} more")
    if step.bytes_waiting:
        reasons.append("the rest of a character")
    if step.region is not None:
        reasons.append(f"inside {shown(step.region[0])}")
    return ", ".join(reasons)


def table(trace: Trace, *, width: int) -> str:
    """The plain table, at most `width` columns wide: long cells lose their middle."""
    cells = [HEADS, *rows(trace)]
    natural = [max(_columns(row[at]) for row in cells) for at in range(len(HEADS))]
    room = max(width - natural[0] - 2 * (len(HEADS) - 1), 4 * 8)
    widths = [natural[0], *_shared(natural[1:], room)]
    lines = []
    for number, row in enumerate(cells):
        fitted = [_fit(cell, size) for cell, size in zip(row, widths, strict=True)]
        padded = [
            fitted[0].rjust(widths[0]) if number else fitted[0].ljust(widths[0]),
            *(
                cell + " " * (size - _columns(cell))
                for cell, size in zip(fitted[1:], widths[1:], strict=True)
            ),
        ]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _shared(natural: list[int], room: int) -> list[int]:
    """Widths that fit into `room`: narrow columns keep theirs, the wide ones share what is left."""
    widths = list(natural)
    while sum(widths) > room:
        widest = max(widths)
        second = max((size for size in widths if size < widest), default=0)
        count = widths.count(widest)
        fair = max((room - sum(size for size in widths if size < widest)) // count, second, 1)
        if fair >= widest:
            fair = widest - 1
        widths = [fair if size == widest else size for size in widths]
        if fair <= 1:
            break
    return widths


def _fit(cell: str, width: int) -> str:
    if _columns(cell) <= width:
        return cell
    left, right = "", ""
    budget = width - 1
    for character in cell:
        if _columns(left + character) > (budget + 1) // 2:
            break
        left += character
    for character in reversed(cell):
        if _columns(left) + _columns(character + right) > budget:
            break
        right = character + right
    return f"{left}…{right}"


def _columns(text: str) -> int:
    """Terminal columns: East Asian wide characters take two, combining marks none."""
    return sum(
        0
        if unicodedata.combining(character)
        else 2
        if unicodedata.east_asian_width(character) in "WF"
        else 1
        for character in text
    )
