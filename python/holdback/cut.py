"""Cutting an iterator of chunks: what may be sent on, and a source that is closed as soon as a stop has fired.

A plain ``break`` out of an SDK's stream leaves its connection open and the model generating. ``Cut`` and ``AsyncCut`` close
their source on a match, when they are closed early, and when the source raises: by ``aclose()`` if it has one, else by
``close()``, awaited if the result is awaitable.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Iterator

    from holdback._core import StopMatch, StopStream

Text = TypeVar("Text", bound=str | bytes)


class _Cutting(Generic[Text]):
    """What both kinds share: the stream, and the facts a caller asks for afterwards."""

    def __init__(self, stream: StopStream[Text], chunks: Any, /) -> None:
        self._stream = stream
        self._source = chunks
        self._done = False
        # The text in front of a match, until it is yielded: an error of the source's `close` must not lose it.
        self._owed: Text | None = None

    @property
    def match(self) -> StopMatch[Text] | None:
        """The stop that ended the text, or ``None`` (so far)."""
        return self._stream.match

    @property
    def held(self) -> Text:
        """Text that was read but not yielded."""
        return self._stream.held


class Cut(_Cutting[Text]):
    """An iterator over the text that may be sent on; see :meth:`holdback.StopSet.cut`."""

    def __init__(self, stream: StopStream[Text], chunks: Iterable[str | bytes], /) -> None:
        super().__init__(stream, chunks)
        self._chunks = iter(chunks)

    def __iter__(self) -> Iterator[Text]:
        return self

    def __next__(self) -> Text:
        while not self._done:
            try:
                chunk = next(self._chunks)
                emit, match = self._stream.feed(chunk)
            except StopIteration:
                self._done = True  # by itself: there is nothing to close
                emit = self._stream.flush()
            except BaseException:
                with contextlib.suppress(Exception):  # the first error is the one that explains
                    self.close()
                raise
            else:
                if match is not None:
                    self._owed = emit
                    self.close()
                    break
            if emit:
                return emit
        emit, self._owed = self._owed, None
        if emit:
            return emit
        raise StopIteration

    def close(self) -> None:
        """Ends the iteration and closes the source, if it can be closed. A second call does nothing."""
        if self._done:
            return
        self._done = True
        for owner in _owners(self._source, self._chunks):
            close = getattr(owner, "close", None)
            if close is not None:
                close()
                return

    def __enter__(self) -> Cut[Text]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class AsyncCut(_Cutting[Text]):
    """An asynchronous iterator over the text that may be sent on; see :meth:`holdback.StopSet.acut`."""

    def __init__(self, stream: StopStream[Text], chunks: AsyncIterable[str | bytes], /) -> None:
        super().__init__(stream, chunks)
        self._chunks = aiter(chunks)

    def __aiter__(self) -> AsyncIterator[Text]:
        return self

    async def __anext__(self) -> Text:
        while not self._done:
            try:
                chunk = await anext(self._chunks)
                emit, match = self._stream.feed(chunk)
            except StopAsyncIteration:
                self._done = True  # by itself: there is nothing to close
                emit = self._stream.flush()
            except GeneratorExit:
                raise  # nothing may be awaited now; `aclose` can still close the source
            except BaseException:
                with contextlib.suppress(Exception):  # the first error is the one that explains
                    await self.aclose()
                raise
            else:
                if match is not None:
                    self._owed = emit
                    await self.aclose()
                    break
            if emit:
                return emit
        emit, self._owed = self._owed, None
        if emit:
            return emit
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends the iteration and closes the source, if it can be closed. A second call does nothing."""
        if self._done:
            return
        self._done = True
        for owner in _owners(self._source, self._chunks):
            close = getattr(owner, "aclose", None) or getattr(owner, "close", None)
            if close is not None:
                result: Awaitable[object] | object = close()
                if inspect.isawaitable(result):
                    await result
                return

    async def __aenter__(self) -> AsyncCut[Text]:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


def _owners(source: Any, iterator: Any) -> Iterator[Any]:
    """The objects that may have the connection: the source itself, then the iterator it gave."""
    yield source
    if iterator is not source:
        yield iterator
