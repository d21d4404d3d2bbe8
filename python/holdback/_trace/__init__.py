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

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdback import StopMatch, StopSet

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from holdback._core import _StreamOptions


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
    """The region in which stops are ignored after this chunk, as opener and closer."""
    bytes_waiting: bool = False
    """Whether an unfinished character waits for its other bytes."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps of one stream, and the match if there was one."""

    stops: tuple[str, ...]
    steps: tuple[Step, ...]
    match: StopMatch[str] | None
    unread: int = 0
    """Chunks after the match that were not looked at; only counted when the chunks were a list."""

    @property
    def emitted(self) -> str:
        """Everything that was sent on."""
        return "".join(step.emit for step in self.steps)

    @property
    def most_held(self) -> int:
        """The most characters that were held at once."""
        return max((len(step.held) for step in self.steps), default=0)

    def __str__(self) -> str:
        from .table import table

        return table(self, width=100)

    def print(self) -> None:
        """Print the table to standard output: by rich if it is installed, plain otherwise, as wide
        as the terminal.
        """
        from .terminal import show

        show(self)

    def to_html(self, *, title: str = "holdback trace") -> str:
        """One page without scripts and without anything from outside."""
        from .html import page

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
    chunks: Iterable[str | bytes],
    stops: StopSet | str | Iterable[str] | None,
    **options: Unpack[_StreamOptions],
) -> Trace:
    """Feed `chunks` to a stream of `stops` and write down every step; `options` are those of
    `StopSet.stream`.

    Ends at the match, or with a flush after the last chunk. One `str` or `bytes` is one chunk.
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
