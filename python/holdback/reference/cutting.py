"""Section 10: cut an iterator, and close it when the answer is complete."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .stream import StopMatch, StopStream


class _Cutting:
    def __init__(self, stream: StopStream, source: Any, iterator: Any) -> None:
        self._stream = stream
        self._source = source
        self._iterator = iterator
        self._over = False
        self._last: Any = None  # the text in front of the match, if closing the source raised

    @property
    def match(self) -> StopMatch | None:
        """The stop that ended the text, once it has."""
        return self._stream.match

    @property
    def held(self) -> Any:
        """Text that was seen and is not yielded (yet)."""
        return self._stream.held

    def _closing(self, *names: str) -> Any:
        """Call the first of these methods that the source has, or else the iterator that it gave."""
        for owner in (self._source, self._iterator):
            for name in names:
                if hasattr(owner, name):
                    return getattr(owner, name)()
        return None


class Cut(_Cutting):
    """The emitted text of an iterable of chunks, as an iterator.

    >>> from holdback.reference import StopSet
    >>> cut = StopSet(["END"]).cut(["one E", "N", "D two"])
    >>> list(cut), cut.match.start
    (['one '], 4)
    """

    def __init__(self, stream: StopStream, source: Iterable[Any]) -> None:
        super().__init__(stream, source, iter(source))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self._over:
            try:
                try:
                    chunk = next(self._iterator)
                except StopIteration:
                    emitted, match = self._stream.flush(), self._stream.match
                    self._over = True  # it has come to its end by itself: there is nothing to close but on a match
                else:
                    emitted, match = self._stream.feed(chunk)
            except BaseException:
                with contextlib.suppress(Exception):
                    self._close_source()
                raise
            if match is not None:
                self._last = emitted
                self._close_source()
                break
            if emitted:
                return emitted
        emitted, self._last = self._last, None
        if emitted:
            return emitted
        raise StopIteration

    def close(self) -> None:
        """Stop early: close the source. Held text stays in ``held``."""
        if not self._over:
            self._close_source()

    def __enter__(self) -> Cut:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _close_source(self) -> None:
        self._over = True
        self._closing("close")


class AsyncCut(_Cutting):
    """The emitted text of an asynchronous iterable of chunks, as an asynchronous iterator."""

    def __init__(self, stream: StopStream, source: AsyncIterable[Any]) -> None:
        super().__init__(stream, source, aiter(source))

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        while not self._over:
            try:
                try:
                    chunk = await anext(self._iterator)
                except StopAsyncIteration:
                    emitted, match = self._stream.flush(), self._stream.match
                    self._over = True
                else:
                    emitted, match = self._stream.feed(chunk)
            except GeneratorExit:
                raise  # nothing can be awaited now
            except BaseException:
                with contextlib.suppress(Exception):
                    await self._close_source()
                raise
            if match is not None:
                self._last = emitted
                await self._close_source()
                break
            if emitted:
                return emitted
        emitted, self._last = self._last, None
        if emitted:
            return emitted
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Stop early: close the source. Held text stays in ``held``."""
        if not self._over:
            await self._close_source()

    async def __aenter__(self) -> AsyncCut:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _close_source(self) -> None:
        self._over = True
        closing = self._closing("aclose", "close")
        if inspect.isawaitable(closing):
            await closing
