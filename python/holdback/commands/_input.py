"""The whole input of a command that has to see all of it."""

from __future__ import annotations

import sys
from pathlib import Path

from holdback.cli import USAGE, CommandError


def read_input(name: str) -> bytes:
    """The bytes of a file, or of standard input for `-`."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror}", USAGE) from error
