"""`trace(chunks, stops)`: chunk by chunk, what arrived, what went out, what is held and for which
stop.

The first thing to look at when a stream stutters or a stop fires late. The result prints as a table
and renders as one HTML page (`Trace.to_html`, `Trace.save`); in a notebook it shows itself.

>>> print(trace(["It is 42.</", "p> </ans", "wer> bye"], ["</answer>"]))
chunk  arrived      sent on    held   for
    0  It is 42.</  It is 42.  </     0 </answer>
    1  p> </ans     </p>·      </ans  0 </answer>
    2  wer> bye                       stop 0 </answer> at 14, not sent: ·bye
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import StopMatch, StopSet
from .likeness import visible


@dataclass(frozen=True, slots=True)
class Step:
    """What one chunk did.

    `offset` is where its text begins and `sent` how much had gone out before it, in characters.
    """

    chunk: str | bytes | None
    """What arrived; `None` for the flush at the end."""
    emit: str
    held: str
    waits_for: tuple[int, ...]
    """The stops that begin with the held text, by index: what it waits for. Empty when only a
    marker is awaited.
    """
    offset: int
    sent: int
    region: tuple[str, str] | None = None
    """The region in which the stream is asleep after this chunk."""
    bytes_waiting: bool = False
    """Whether an unfinished character waits for its other bytes."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps of one stream, and the match if there was one."""

    stops: tuple[str, ...]
    steps: tuple[Step, ...]
    match: StopMatch[str] | None
    unread: int = 0
    """Chunks behind the match that were not looked at; only counted when the chunks were a list."""

    @property
    def emitted(self) -> str:
        """Everything that was sent on."""
        return "".join(step.emit for step in self.steps)

    @property
    def most_held(self) -> int:
        """The most characters that were held at once."""
        return max((len(step.held) for step in self.steps), default=0)

    def __str__(self) -> str:
        return table(self, width=100)

    def print(self) -> None:
        """Print the table to standard output: by rich if it is installed, plain otherwise, as wide
        as the terminal.
        """
        from .tracing_terminal import show

        show(self)

    def to_html(self, *, title: str = "holdback trace") -> str:
        """One page without scripts and without anything from outside."""
        from .tracing_html import page

        return page(self, title=title)

    def save(self, path: str | Path) -> Path:
        """Write `to_html()` to a file and return its path."""
        target = Path(path)
        target.write_text(self.to_html(), encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        from html import escape

        return f'<iframe style="width:100%;height:32em;border:0" srcdoc="{escape(self.to_html())}"></iframe>'

    def as_dict(self) -> dict[str, Any]:
        """For JSON. Chunks of bytes are shown as text, with escapes where they are not."""
        match = self.match
        steps = []
        for step in self.steps:
            fields = asdict(step)
            if isinstance(step.chunk, bytes):
                fields["chunk"] = step.chunk.decode("utf-8", "backslashreplace")
            steps.append(fields)
        fired = None
        if match is not None:
            fired = {
                "index": match.index,
                "stop": match.stop,
                "start": match.start,
                "end": match.end,
            }
        return {
            "stops": list(self.stops),
            "steps": steps,
            "match": fired,
            "emitted": self.emitted,
            "unread": self.unread,
        }


def trace(
    chunks: Iterable[str | bytes], stops: StopSet | str | Iterable[str] | None, **options: Any
) -> Trace:
    """Feed `chunks` to a stream of `stops` and write down every step; `options` are those of
    `StopSet.stream`.

    Ends at the match, or with a flush behind the last chunk. One `str` or `bytes` is one chunk.
    Errors are those of the stream.
    """
    compiled = stops if isinstance(stops, StopSet) else StopSet(stops)
    stream = compiled.stream(**options)
    if not isinstance(chunks, Iterable):
        raise TypeError(
            f"chunks must be an iterable of str or bytes-like, not {type(chunks).__name__}"
        )
    listed = [chunks] if isinstance(chunks, (str, bytes)) else chunks
    names = tuple(str(stop) for stop in compiled.stops)
    steps: list[Step] = []
    arrived = sent = read = 0
    for chunk in listed:
        read += 1
        emit, match = stream.feed(chunk)
        held = stream.held
        steps.append(_step(chunk, emit, held, names, compiled, arrived, sent, stream))
        sent += len(emit)
        arrived = sent + len(held)
        if match is not None:
            break
    else:
        rest = stream.flush()
        if rest or stream.match is not None:
            steps.append(_step(None, rest, "", names, compiled, arrived, sent, stream))
    unread = max(len(listed) - read, 0) if isinstance(listed, (list, tuple)) else 0
    return Trace(names, tuple(steps), stream.match, unread)


def _step(
    chunk: str | bytes | None,
    emit: str,
    held: str,
    names: tuple[str, ...],
    compiled: StopSet,
    offset: int,
    sent: int,
    stream: Any,
) -> Step:
    waits = tuple(
        index for index, stop in enumerate(names) if held and stop != held and stop.startswith(held)
    )
    unreachable = set(compiled.unreachable)
    waits = tuple(index for index in waits if index not in unreachable) or waits
    region = getattr(stream, "region", None)
    if isinstance(chunk, str) or chunk is None:
        kept: str | bytes | None = chunk
        waiting = False
    else:
        kept = bytes(chunk)
        waiting = _unfinished(kept)
    return Step(kept, emit, held, waits, offset, sent, region, waiting)


def _unfinished(chunk: bytes) -> bool:
    """Whether the chunk ends inside a character."""
    for back in range(1, min(4, len(chunk)) + 1):
        byte = chunk[-back]
        if byte >= 0xC0:
            return back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
        if byte < 0x80:
            return False
    return False


# --- the table
# -----------------------------------------------------------------------------------------------------

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
        behind = f", not sent: {shown(rest)}" if rest else ""
        return f"stop {match.index} {shown(str(match.stop))} at {match.start}{behind}"
    said = []
    if step.held:
        said += [f"{index} {shown(trace.stops[index])}" for index in step.waits_for[:3]] or [
            "a marker"
        ]
        if len(step.waits_for) > 3:
            said.append(f"{len(step.waits_for) - 3} more")
    if step.bytes_waiting:
        said.append("the rest of a character")
    if step.region is not None:
        said.append(f"asleep in {shown(step.region[0])}")
    return ", ".join(said)


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
