"""A trace on a terminal: by rich where it is installed and the output is a terminal, else as a
plain table.
"""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from .table import HEADS, rows, table

if TYPE_CHECKING:
    from . import Trace


def show(trace: Trace) -> None:
    """Print `trace` to standard output, as wide as it allows."""
    width = shutil.get_terminal_size((100, 24)).columns
    if not sys.stdout.isatty() or not _by_rich(trace):
        sys.stdout.write(table(trace, width=width) + "\n")


def _by_rich(trace: Trace) -> bool:
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:  # optional, and nobody's dependency: the plain table says the same
        return False
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for head, style in zip(HEADS, ("dim", "", "green", "yellow", "dim"), strict=True):
        shown.add_column(
            head, style=style, overflow="fold", justify="right" if head == "chunk" else "left"
        )
    last = len(trace.steps) - 1
    for number, row in enumerate(rows(trace)):
        ended = number == last and trace.match is not None
        shown.add_row(
            *(Text(cell) for cell in row[:4]),
            Text(row[4], style="bold red not dim" if ended else ""),
        )
    Console().print(shown)
    return True
