"""A progress bar on standard error: one line that is drawn over itself, on a terminal only."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType

BAR, REDRAW = 24, 0.1  # characters; seconds


class Progress:
    """Shows how much of `total` bytes is done, how fast, and how long the rest will take; nothing
    if there is no terminal.

    Args:
        total: bytes to do in all.
        done: bytes that were done before, by an earlier run; they say nothing about the speed of this one.
    """

    def __init__(self, total: int, done: int = 0) -> None:
        self.total, self.before, self.done = total, done, done
        self.rows = 0
        self.began = time.monotonic()
        self.drawn = 0.0
        self.shown = sys.stderr is not None and sys.stderr.isatty()

    def advance(self, size: int, rows: int) -> None:
        """So many more bytes and rows are done."""
        self.done += size
        self.rows += rows
        now = time.monotonic()
        if self.shown and now - self.drawn >= REDRAW:
            self.drawn = now
            self._draw(self.line(now - self.began))

    def line(self, seconds: float) -> str:
        """What is shown after so many seconds."""
        part = min(1.0, self.done / self.total) if self.total else 1.0
        bar = "#" * int(part * BAR)
        line = f"[{bar:-<{BAR}}] {part:4.0%}  {self.rows:,} rows"
        fresh = self.done - self.before
        if seconds > 0 and fresh:
            left = (self.total - self.done) * seconds / fresh
            line += (
                f"  {fresh / seconds / 1e6:,.1f} MB/s  {int(left) // 60}:{int(left) % 60:02} left"
            )
        return line

    def _draw(self, line: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r{line[:width]:<{width}}")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _at: TracebackType | None,
    ) -> None:
        if self.shown and self.drawn:
            self._draw("")
            sys.stderr.write("\r")
            sys.stderr.flush()
