"""Cutting an iterator of chunks: what may be sent on, and a source that is closed as soon as a stop
has fired.

A plain `break` out of an SDK's stream leaves its connection open and the model generating.
`Cut` and `AsyncCut` close their source on a match, when they are closed early, and when the
source raises: by `aclose()` if it has one, else by `close()`, awaited if the result is
awaitable.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterable,
        AsyncIterator,
        Awaitable,
        Callable,
        Iterable,
        Iterator,
    )

    from holdback._core import StopMatch, StopStream

Text = TypeVar("Text", bound=str | bytes)


class _Cutting(Generic[Text]):
    """What both kinds share: the stream, and the facts a caller asks for afterwards."""

    def __init__(self, stream: StopStream[Text], chunks: Any, /) -> None:
        self._stream = stream
        self._source = chunks
        self._done = False
        # The text in front of a match, until it is yielded: an error of the source's `close` must
        # not lose it.
        self._owed: Text | None = None
        self._entered = threading.Lock()

    def _enter(self) -> None:
        """One call at a time: a second one, from another thread or from inside the source, changes
        nothing.
        """
        if not self._entered.acquire(blocking=False):
            raise RuntimeError(
                "this cut is in use by another call, of another thread or around this one"
            )

    @property
    def match(self) -> StopMatch[Text] | None:
        """The stop that ended the text, or `None` (so far)."""
        return self._stream.match

    @property
    def held(self) -> Text:
        """Text that was read but not yielded."""
        return self._stream.held


class Cut(_Cutting[Text]):
    """An iterator over the text that may be sent on; see `holdback.StopSet.cut`."""

    def __init__(self, stream: StopStream[Text], chunks: Iterable[str | bytes], /) -> None:
        super().__init__(stream, chunks)
        self._chunks = iter(chunks)

    def __iter__(self) -> Iterator[Text]:
        return self

    def __next__(self) -> Text:
        self._enter()
        try:
            return self._next()
        finally:
            self._entered.release()

    def _next(self) -> Text:
        while not self._done:
            try:
                chunk = next(self._chunks)
                emit, match = self._stream.feed(chunk)
            except StopIteration:
                self._done = True  # by itself: there is nothing to close
                emit = self._stream.flush()
            except BaseException:
                with contextlib.suppress(Exception):  # the first error is the one that explains
                    self._close()
                raise
            else:
                if match is not None:
                    self._owed = emit
                    self._close()
                    break
            if emit:
                return emit
        owed, self._owed = self._owed, None
        if owed:
            return owed
        raise StopIteration

    def close(self) -> None:
        """Ends the iteration and closes the source, if it can be closed.

        A second call does nothing.
        """
        self._enter()
        try:
            if not self._done:
                self._close()
        finally:
            self._entered.release()

    def _close(self) -> None:
        self._done = True
        close = _closing(self._source, self._chunks, "close")
        if close is not None:
            try:
                close()
            except StopIteration as error:
                raise _not_the_end(error) from error

    def __enter__(self) -> Cut[Text]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class AsyncCut(_Cutting[Text]):
    """An asynchronous iterator over the text that may be sent on; see
    `holdback.StopSet.acut`.
    """

    def __init__(self, stream: StopStream[Text], chunks: AsyncIterable[str | bytes], /) -> None:
        super().__init__(stream, chunks)
        self._chunks = aiter(chunks)

    def __aiter__(self) -> AsyncIterator[Text]:
        return self

    async def __anext__(self) -> Text:
        self._enter()
        try:
            return await self._next()
        finally:
            self._entered.release()

    async def _next(self) -> Text:
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
                    await self._close()
                raise
            else:
                if match is not None:
                    self._owed = emit
                    await self._close()
                    break
            if emit:
                return emit
        owed, self._owed = self._owed, None
        if owed:
            return owed
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends the iteration and closes the source, if it can be closed.

        A second call does nothing.
        """
        self._enter()
        try:
            if not self._done:
                await self._close()
        finally:
            self._entered.release()

    async def _close(self) -> None:
        self._done = True
        close = _closing(self._source, self._chunks, "aclose", "close")
        if close is not None:
            try:
                result: Awaitable[object] | object = close()
                if inspect.isawaitable(result):
                    await result
            except (StopIteration, StopAsyncIteration) as error:
                raise _not_the_end(error) from error

    async def __aenter__(self) -> AsyncCut[Text]:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


def _not_the_end(error: BaseException) -> RuntimeError:
    """Out of the source's `close`, the end of an iteration must not look like the end of the
    text.
    """
    return RuntimeError(f"closing the source raised {type(error).__name__}")


def _closing(source: Any, iterator: Any, *names: str) -> Callable[[], Any] | None:
    """The first method by one of `names` of what may own the connection: the source, then the
    iterator it gave.
    """
    for owner in (source, iterator):
        for name in names:
            close: Callable[[], Any] | None = getattr(owner, name, None)
            if close is not None:
                return close
    return None
