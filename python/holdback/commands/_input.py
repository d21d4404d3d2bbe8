"""What a command reads: all of a small input, or a stream of bytes, unpacked if it is packed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from holdback.cli import USAGE, CommandError

PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "lzma",
    b"\x28\xb5\x2f\xfd": "zstd",
}
"""How compressed files begin, which no JSON line does."""

TOOLS = {"gzip": "zcat", "bz2": "bzcat", "lzma": "xzcat", "zstd": "zstdcat"}
"""What unpacks them in a pipe."""


def read_input(name: str) -> bytes:
    """The bytes of a file, or of standard input for `-`."""
    try:
        if name == "-":
            return _standard_input().read()
        return Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror}", USAGE) from error


def open_unpacked(name: str) -> AbstractContextManager[IO[bytes]]:
    """A file, or standard input for `-`, to be read line by line; gzip, bzip2, xz and (from Python
    3.14 on) Zstandard are unpacked on the way.

    Raises:
        CommandError: for a file that cannot be opened, or is packed in a way that is not known here.
    """
    if name == "-":
        stream = _standard_input()
        return _unpacked(stream, name, nullcontext(stream))
    try:
        stream = Path(name).open("rb")  # noqa: SIM115 (the caller closes it)
    except OSError as error:
        raise CommandError(f"cannot open {name}: {error.strerror}", USAGE) from error
    return _unpacked(stream, name, stream)


def batches(source: IO[bytes], name: str, size: int) -> Iterator[list[bytes]]:
    """The lines of `source`, some `size` bytes of them at a time.

    Raises:
        CommandError: if what was to be unpacked is damaged.
    """
    while True:
        try:
            batch = source.readlines(size)
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            if isinstance(error, _unpacking_errors()):
                raise CommandError(f"{name} is damaged: {error}") from error
            raise
        if not batch:
            return
        yield batch


def _unpacking_errors() -> tuple[type[Exception], ...]:
    import lzma
    import zlib

    return (OSError, EOFError, zlib.error, lzma.LZMAError)


def packing_of(begin: bytes) -> str | None:
    """The module that unpacks what begins like this; `None` if it is not packed."""
    return next((module for sign, module in PACKED.items() if begin.startswith(sign)), None)


def _standard_input() -> BufferedReader:
    if sys.stdin is None:  # closed by the shell
        raise CommandError("cannot read standard input: it is closed", USAGE)
    return cast("BufferedReader", sys.stdin.buffer)


def _unpacked(
    stream: BufferedReader, name: str, plain: AbstractContextManager[IO[bytes]]
) -> AbstractContextManager[IO[bytes]]:
    packing = packing_of(stream.peek(8))
    if packing is None:
        return plain
    import importlib

    try:
        module = importlib.import_module(packing if packing != "zstd" else "compression.zstd")
    except ImportError as error:
        raise CommandError(needs_pipe(name, packing), USAGE) from error
    opened: AbstractContextManager[IO[bytes]] = module.open(stream, "rb")
    return opened


def needs_pipe(name: str, packing: str) -> str:
    """What to say about a packed file that cannot be read here."""
    return f"{name} is compressed: unpack it into a pipe, as in `{TOOLS[packing]} {name} | holdback truncate ...`"
