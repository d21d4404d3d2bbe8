"""Section 3: from chunks to characters.

A decoder turns chunks into pairs ``(character, end)``. ``end`` says how much of the chunk that is
being read, in its own units (characters of a ``str``, bytes), lies in front of what follows the
character: ``chunk[end:]`` is the ``rest`` of a stop that ends with it (section 4). It is 0 for a
character whose last piece came in an earlier chunk.

Characters are made one at a time, when they are asked for: what stands behind the end of a stream
is never decoded, so it cannot be invalid.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator


class TextDecoder:
    """``str`` and UTF-8, cut anywhere, to characters.

    ``errors`` is ``"replace"`` or ``"strict"``.
    """

    def __init__(self, errors: str) -> None:
        self.errors = errors
        # An incomplete UTF-8 sequence (bytes), one high surrogate (str), or nothing.
        self.waiting: bytes | str = b""

    def read(self, chunk: str | bytes) -> Iterator[tuple[str, int]]:
        """Make the characters that this chunk completes."""
        # "The kind of chunk decides what may wait."
        if self.waiting and type(self.waiting) is not type(chunk):
            yield from self.finish()
        if isinstance(chunk, str):
            yield from self._read_str(chunk)
        else:
            yield from self._read_bytes(chunk)

    def finish(self) -> Iterator[tuple[str, int]]:
        """Nothing completes what waits: it becomes what ``errors`` says."""
        waiting, self.waiting = self.waiting, b""
        if isinstance(waiting, str):
            yield self._alone(waiting), 0
        else:
            for character in codecs.getincrementaldecoder("utf-8")(self.errors).decode(
                waiting, True
            ):
                yield character, 0

    def _read_bytes(self, chunk: bytes) -> Iterator[tuple[str, int]]:
        # Python's own incremental decoder is the rule. It gets one byte at a time, so that each
        # character is seen to come out with the byte that decides it. That byte is the last one of
        # the character, or the first one behind it (when it shows that the bytes in front of it are
        # no character, or that it is the start of the next one).
        decoder = codecs.getincrementaldecoder("utf-8")(self.errors)
        for position in range(len(chunk)):
            decoder.setstate((bytes(self.waiting), 0))  # type: ignore[arg-type]  # bytes while bytes wait
            characters = decoder.decode(chunk[position : position + 1])
            self.waiting = decoder.getstate()[0]
            if b"\xed\xa0" <= self.waiting <= b"\xed\xbf":
                # Two bytes of an encoded surrogate. CPython waits for the third, because its error
                # handler "surrogatepass" may want it. But no third byte makes a character of them:
                # they are decided.
                characters += decoder.decode(b"", True)
                self.waiting = b""
            for number, character in enumerate(characters):
                if number < len(characters) - 1 or self.waiting:
                    yield character, position
                else:
                    yield character, position + 1

    def _read_str(self, chunk: str) -> Iterator[tuple[str, int]]:
        for position, unit in enumerate(chunk):
            high, self.waiting = self.waiting, b""
            if isinstance(high, str) and "\udc00" <= unit <= "\udfff":
                yield _join(high, unit), position + 1
                continue
            if isinstance(high, str):
                yield self._alone(high), position
            if "\ud800" <= unit <= "\udbff":
                self.waiting = unit
            elif "\udc00" <= unit <= "\udfff":
                yield self._alone(unit), position + 1
            else:
                yield unit, position + 1

    def _alone(self, surrogate: str) -> str:
        if self.errors == "strict":
            surrogate.encode("utf-8")  # raises UnicodeEncodeError
        return "\ufffd"


class RawDecoder:
    """``byte_stream()``: no decoding.

    A byte is written as the character of its number, so that the rest of the reference knows only
    one kind of text.
    """

    waiting = b""

    def read(self, chunk: bytes) -> Iterator[tuple[str, int]]:
        """Make a character of each byte."""
        for position, byte in enumerate(chunk):
            yield chr(byte), position + 1

    def finish(self) -> Iterator[tuple[str, int]]:
        """Nothing ever waits."""
        return iter(())


def _join(high: str, low: str) -> str:
    return (high + low).encode("utf-16", "surrogatepass").decode("utf-16")
