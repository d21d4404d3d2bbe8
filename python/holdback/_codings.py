"""Compressed bodies, decoded as they come and within limits: `content-encoding` of requests and of
answers.

`gzip`, `deflate`, `br`, `zstd`, their aliases, and lists of them (the last one listed was applied
last). What cannot be decoded is a `CodingError` that names the coding; nothing passes half decoded.

>>> import gzip
>>> decode("gzip", gzip.compress(b"text"), limit=100)
b'text'
>>> decode("gzip, x-gzip", gzip.compress(gzip.compress(b"text")), limit=100)
b'text'
>>> codings_of(" GZip ,identity"), codings_of("")
(('gzip',), ())

Memory is bounded whatever comes: a decoder gives out pieces of `PIECE` bytes and takes no more from
the one before it until they are taken, and windows larger than 16 MiB are refused.
"""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Protocol

PIECE = 64 << 10
"""Bytes of a decoded piece at the most; brotli's may be a little longer."""

MAX_CODINGS = 4
"""Codings of one body; each multiplies what a small body can grow to."""

MAX_MEMBERS = 1024
"""Members of gzip or frames of zstd in one body: each costs more than the bytes it is made of."""

MAX_BETWEEN = 64 << 20
"""Bytes that one call may make between two codings of a list: they may all come to nothing."""

_ALIASES = {"x-gzip": "gzip", "x-deflate": "deflate", "x-zstd": "zstd", "zstandard": "zstd"}


class CodingError(ValueError):
    """A body that cannot be decoded. The message says why, for whoever sent it."""

    def __init__(self, coding: str, message: str) -> None:
        super().__init__(message)
        self.coding = coding
        """As the header names it, shortened."""


class UnknownCodingError(CodingError):
    """A coding that is not decoded here: unknown, its package not installed, or one too many."""


class BrokenCodingError(CodingError):
    """Bytes that are not what the header says they are, or that end too early."""


class DecodedTooLongError(CodingError):
    """More bytes than the limit, once decoded."""


class _Engine(Protocol):
    """One coding: bytes in, pieces out."""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Decode `data`."""
        ...

    @property
    def complete(self) -> bool:
        """The bytes so far may be all of the body."""
        ...


class _TooManyError(Exception):
    """More members than `MAX_MEMBERS`."""


def _counted(members: int) -> int:
    if members == MAX_MEMBERS:
        raise _TooManyError
    return members + 1


class _Zlib:
    """gzip, of one member or several, and deflate, in its wrapping or raw as some servers send it."""

    def __init__(self, coding: str) -> None:
        self._gzip = coding == "gzip"
        self._engine: Any = None
        self._members = 0
        self.errors: tuple[type[Exception], ...] = (zlib.error, _TooManyError)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._engine is None:
                if self._members:
                    data = (
                        data.lstrip(b"\0") if self._gzip else b""
                    )  # padding after the last member
                    if not data:
                        return
                self._members = _counted(self._members)
                self._engine = self._opened(data)
            piece = self._engine.decompress(data, PIECE)
            if piece:
                yield piece
            if self._engine.eof:
                data, self._engine = self._engine.unused_data, None
            else:
                data = self._engine.unconsumed_tail

    def _opened(self, data: bytes) -> Any:
        if self._gzip:
            return zlib.decompressobj(16 + zlib.MAX_WBITS)
        # In a zlib wrapping the low half of the first byte is 8; a raw stream that begins like that
        # would be a stored block with reserved bits set, which no encoder writes.
        wrapped = data[0] & 0x0F == 8 and data[0] >> 4 <= 7
        return zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)

    @property
    def complete(self) -> bool:
        return self._engine is None


class _Brotli:
    def __init__(self) -> None:
        package = _package(("brotli", "brotlicffi"), "br")
        self._engine = package.Decompressor()
        if not hasattr(self._engine, "can_accept_more_data"):  # before 1.2 there was no limit
            raise UnknownCodingError("br", _MISSING.format("br", "brotli>=1.2"))
        self._begun = False
        self.errors: tuple[type[Exception], ...] = (package.error,)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data or not self._engine.can_accept_more_data():
            self._begun = True
            piece = self._engine.process(data, output_buffer_limit=PIECE)
            data = b""
            if piece:
                yield piece
            elif not self._engine.can_accept_more_data():
                return

    @property
    def complete(self) -> bool:
        return not self._begun or bool(self._engine.is_finished())


class _Zstd:
    """Frames of zstd, with windows up to 16 MiB; the standard for HTTP allows 8."""

    def __init__(self) -> None:
        home = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
        package = _package((home,), "zstd")
        self._package = package
        self._options = {package.DecompressionParameter.window_log_max: 24}
        self._engine: Any = None
        self._members = 0
        self.errors: tuple[type[Exception], ...] = (package.ZstdError, _TooManyError)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data or not (self._engine is None or self._engine.needs_input):
            if self._engine is None:
                self._members = _counted(self._members)
                self._engine = self._package.ZstdDecompressor(options=self._options)
            piece = self._engine.decompress(data, PIECE)
            data = b""
            if piece:
                yield piece
            if self._engine.eof:
                data, self._engine = self._engine.unused_data, None

    @property
    def complete(self) -> bool:
        return self._engine is None


_MISSING = "content-encoding {0!r} needs the package {1!r}, which is not installed here"


def _package(modules: tuple[str, ...], coding: str) -> Any:
    for module in modules:
        try:
            return import_module(module)
        except ImportError:
            continue
    raise UnknownCodingError(coding, _MISSING.format(coding, modules[0]))


def _engine(coding: str) -> Any:
    if coding in ("gzip", "deflate"):
        return _Zlib(coding)
    if coding == "br":
        return _Brotli()
    if coding == "zstd":
        return _Zstd()
    shown = coding[:40]
    raise UnknownCodingError(shown, f"content-encoding {shown!r} is not understood here")


def codings_of(header: str) -> tuple[str, ...]:
    """The codings that a `content-encoding` lists, in the order in which they were applied.

    Aliases have their usual names; `identity` is none. Several headers are one, with commas.
    """
    names = (name.strip().lower() for name in header.split(","))
    return tuple(_ALIASES.get(name, name) for name in names if name not in ("", "identity"))


class Decoder:
    """Decodes one body.

    Args:
        header: its `content-encoding`.
        limit: bytes of the decoded body at the most; `None` for a stream without an end in sight.

    Raises:
        UnknownCodingError: if one of the codings is not decoded here.
    """

    def __init__(self, header: str, *, limit: int | None = None) -> None:
        names = codings_of(header)
        self.codings = names
        if len(names) > MAX_CODINGS:
            shown = ", ".join(names)[:40]
            raise UnknownCodingError(
                shown, f"content-encoding {shown!r}: at most {MAX_CODINGS} codings are decoded"
            )
        self._engines = [_engine(name) for name in reversed(names)]
        self._limit, self._size = limit, 0
        self._between = 0

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Decode the next bytes; pieces come as they are asked for, none is empty.

        All pieces of a call have to be taken before the next one.

        Raises:
            BrokenCodingError: for bytes that are not of that coding.
            DecodedTooLongError: for more than the limit.
        """
        self._between = 0
        # In slices: what an engine has not taken of its input yet is copied at each of its pieces.
        for at in range(0, len(data), PIECE):
            for piece in self._through(0, data[at : at + PIECE]):
                self._size += len(piece)
                if self._limit is not None and self._size > self._limit:
                    raise DecodedTooLongError(
                        ", ".join(self.codings), f"decoded, it is longer than {self._limit} bytes"
                    )
                yield piece

    def feed(self, data: bytes) -> bytes:
        """All pieces of `data` together. Raises as `pieces`."""
        made = io.BytesIO()  # which copies a piece at a time, and leaves the GIL between them
        for piece in self.pieces(data):
            made.write(piece)
        return made.getvalue()

    def finish(self) -> None:
        """The body is over. Raises `BrokenCodingError` if it ends too early."""
        for coding, engine in zip(reversed(self.codings), self._engines, strict=True):
            if not engine.complete:
                raise BrokenCodingError(coding, f"content-encoding {coding!r}: it ends too early")

    def _through(self, level: int, data: bytes) -> Iterator[bytes]:
        if level == len(self._engines):
            if data:
                yield data
            return
        engine = self._engines[level]
        pieces = engine.pieces(data)
        while True:
            try:
                piece = next(pieces, None)
            except engine.errors as error:
                coding = self.codings[-1 - level]
                raise BrokenCodingError(
                    coding, f"content-encoding {coding!r}: the bytes are not of that coding"
                ) from error
            if piece is None:
                return
            if level + 1 < len(self._engines):
                self._between += len(piece)
                if self._between > MAX_BETWEEN:
                    shown = ", ".join(self.codings)
                    raise DecodedTooLongError(
                        shown, f"content-encoding {shown!r}: it grows beyond {MAX_BETWEEN} bytes"
                    )
            yield from self._through(level + 1, piece)


def decode(header: str, data: bytes, *, limit: int) -> bytes:
    """A whole body, decoded. Raises the kinds of `CodingError`."""
    decoder = Decoder(header, limit=limit)
    made = decoder.feed(data)
    decoder.finish()
    return made
