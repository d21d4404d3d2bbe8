"""Bytes of an answer through a cutter, for the adapters that see bytes: close the source at the
match, lose nothing when it breaks.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import TYPE_CHECKING

from holdback.wire import Cutter, WireError

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterable,
        AsyncIterator,
        Awaitable,
        Callable,
        Iterable,
        Iterator,
    )


def cut_bytes(
    chunks: Iterable[bytes], cutter: Cutter, close: Callable[[], object]
) -> Iterator[bytes]:
    """What may be sent on. At the match `close` is called before the last bytes are yielded, so
    that no client can delay it.

    When the source raises, what was held is yielded first. `close` is also called when the caller
    closes this generator.
    """
    try:
        for chunk in chunks:
            out = cutter.feed(chunk)
            if over(cutter):
                close()
                yield out
                return
            if out:
                yield out
        if rest := cutter.finish():
            yield rest
    except Exception as error:
        yield rest_of(cutter, error)
        raise
    finally:
        close()
        if isinstance(chunks, Generator):
            chunks.close()


async def acut_bytes(
    chunks: AsyncIterable[bytes], cutter: Cutter, close: Callable[[], Awaitable[object]]
) -> AsyncIterator[bytes]:
    """The asynchronous twin of :func:`cut_bytes`."""
    try:
        async for chunk in chunks:
            out = cutter.feed(chunk)
            if over(cutter):
                await close()
                yield out
                return
            if out:
                yield out
        if rest := cutter.finish():
            yield rest
    except Exception as error:
        yield rest_of(cutter, error)
        raise
    finally:
        await close()
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


def over(cutter: Cutter) -> bool:
    """The answer was ended here, so what the upstream still sends is of no use.

    Its own end would be read to the last byte.
    """
    return cutter.ended and bool(cutter.matches)


def rest_of(cutter: Cutter, error: Exception) -> bytes:
    """What is held when the input breaks off, perhaps inside a frame, or when the cutter itself
    cannot go on.
    """
    if isinstance(error, WireError):
        return error.output
    try:
        return cutter.finish()
    except WireError as broken:
        return broken.output
