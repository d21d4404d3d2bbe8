"""An answer on its way through a cutter: what may be sent on is sent, the source is closed at the
match, and nothing is lost when something breaks.

Shared by all that stand between an upstream and its client: the gateway and the adapters for httpx,
ASGI and LiteLLM. Whoever pulls (`relay`, `arelay`) gets an iterator; an ASGI middleware, which is
pushed to, uses `has_all` and `rest_of` by themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Generator,
    Iterable,
)
from typing import Protocol

from holdback.wire import WireError, WireMatch


class Cutting(Protocol):
    """What cuts one answer: a `holdback.wire.Cutter`, or something around one."""

    @property
    def ended(self) -> bool:
        """The end of the answer has been given out."""
        ...

    @property
    def matches(self) -> tuple[WireMatch, ...]:
        """The stops found so far."""
        ...

    def feed(self, data: bytes, /) -> bytes:
        """Take a piece; give what may be sent on. Raises `WireError`."""
        ...

    def finish(self) -> bytes:
        """The answer is over; give what is left. Raises `WireError`."""
        ...


def has_all(cutting: Cutting) -> bool:
    """The answer was ended by a stop, so what the upstream still sends is generated in vain.

    An end of its own is read to the last byte: its usage figures may follow.
    """
    return cutting.ended and bool(cutting.matches)


def rest_of(cutting: Cutting) -> bytes:
    """What is held when the source breaks off, perhaps inside a frame. It is text that the upstream
    did send.
    """
    try:
        return cutting.finish()
    except WireError as error:
        return error.output


def relay(
    chunks: Iterable[bytes], cutting: Cutting, close: Callable[[], object]
) -> Generator[bytes]:
    """Yield what may be sent on, never an empty piece.

    Args:
        chunks: the answer, cut anywhere. A generator is closed in the end.
        cutting: what cuts it.
        close: hangs up on the source. It is called at the match, before the last bytes are yielded,
            so that no client can delay it, and once more in the end, also when the caller closes
            this generator.

    Raises:
        WireError: what came cannot be cut. All that may be sent on has been yielded then.
        Exception: whatever the source raised, after what was held has been yielded.
    """
    try:
        for chunk in chunks:
            out = cutting.feed(chunk)
            if has_all(cutting):
                close()
                if out:
                    yield out
                return
            if out:
                yield out
        if rest := cutting.finish():
            yield rest
    except WireError as error:
        if error.output:
            yield error.output
        raise
    except Exception:
        if rest := rest_of(cutting):
            yield rest
        raise
    finally:
        close()
        if isinstance(chunks, Generator):
            chunks.close()


async def arelay(
    chunks: AsyncIterable[bytes], cutting: Cutting, close: Callable[[], object]
) -> AsyncGenerator[bytes]:
    """The asynchronous twin of `relay`; `close` may be either kind of function."""
    try:
        async for chunk in chunks:
            out = cutting.feed(chunk)
            if has_all(cutting):
                await _called(close)
                if out:
                    yield out
                return
            if out:
                yield out
        if rest := cutting.finish():
            yield rest
    except WireError as error:
        if error.output:
            yield error.output
        raise
    except Exception:
        if rest := rest_of(cutting):
            yield rest
        raise
    finally:
        await _called(close)
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


async def _called(close: Callable[[], object]) -> None:
    if inspect.isawaitable(result := close()):
        await result
