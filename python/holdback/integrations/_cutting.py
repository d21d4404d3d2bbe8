"""Answers that an adapter hands on, cut: as iterators that end in the protocol's own words when
they cannot be cut, and that know which stop fired.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from typing import TYPE_CHECKING, Any, overload

from holdback import StopSet
from holdback._answers import AnswerCutter
from holdback._failures import error_body, error_frame
from holdback._relay import arelay, relay
from holdback.wire import Cutter, WireError, WireMatch

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from holdback.integrations._options import AnswerOptions


def make_cutter(cutter: Callable[..., Cutter], **options: Any) -> Cutter:
    """A cutter that refuses what it cannot read, unless the options say otherwise."""
    return cutter(**{"on_malformed": "fail", "on_unread": "fail", **options})


def in_own_words(cutting: AnswerCutter, error: WireError, *, begun: bool) -> bytes:
    """What a client reads in place of an answer that cannot be cut: a frame of the stream that it
    asked for, or the body of an error.
    """
    dialect: Any = cutting.cutter.dialect
    if begun or cutting.kind == "stream":
        return error_frame(dialect, error, cutting)
    return error_body(dialect, error, cutting)


class _Answer:
    """What both kinds have."""

    def __init__(self, cutting: AnswerCutter, on_match: Callable[[WireMatch], object] | None):
        self._cutting, self._on_match = cutting, on_match
        self._reported = 0
        self.error: WireError | None = None
        """Why it could not be cut to its end; the client has had that in its own words."""

    @property
    def matches(self) -> tuple[WireMatch, ...]:
        """The stops found so far."""
        return self._cutting.matches

    @property
    def ended(self) -> bool:
        """The end of the answer has been given out."""
        return self._cutting.ended

    def _report(self) -> None:
        if self._on_match is None:
            return
        for match in self._cutting.matches[self._reported :]:
            self._reported += 1
            self._on_match(match)

    def _fail(self, error: WireError, begun: bool) -> bytes:
        self.error = error
        return in_own_words(self._cutting, error, begun=begun)


class CutStream(_Answer, Iterator[bytes]):
    """The bytes of an answer up to its first stop, with its own end.

    What cannot be cut ends in an error of the protocol, which the client reads, and is `error`.
    `close()` closes the source.
    """

    def __init__(
        self,
        chunks: Iterable[bytes],
        cutting: AnswerCutter,
        close: Callable[[], object],
        on_match: Callable[[WireMatch], object] | None = None,
        *,
        begun: bool = True,
    ) -> None:
        super().__init__(cutting, on_match)
        self._close = close
        self._pieces = self._run(chunks, close, begun)

    def _run(
        self, chunks: Iterable[bytes], close: Callable[[], object], begun: bool
    ) -> Generator[bytes]:
        try:
            for piece in relay(chunks, self._cutting, close):
                self._report()
                yield piece
        except WireError as error:
            yield self._fail(error, begun)
        finally:
            self._report()

    def __iter__(self) -> CutStream:
        return self

    def __next__(self) -> bytes:
        return next(self._pieces)

    def close(self) -> None:
        """End it, and close its source."""
        self._pieces.close()  # which closes nothing before it was begun
        self._close()


class AsyncCutStream(_Answer, AsyncIterator[bytes]):
    """The asynchronous twin of `CutStream`; `aclose()` closes the source."""

    def __init__(
        self,
        chunks: AsyncIterable[bytes],
        cutting: AnswerCutter,
        close: Callable[[], object],
        on_match: Callable[[WireMatch], object] | None = None,
        *,
        begun: bool = True,
    ) -> None:
        super().__init__(cutting, on_match)
        self._close = close
        self._pieces = self._run(chunks, close, begun)

    async def _run(
        self, chunks: AsyncIterable[bytes], close: Callable[[], object], begun: bool
    ) -> AsyncGenerator[bytes]:
        pieces = arelay(chunks, self._cutting, close)
        try:
            async for piece in pieces:
                self._report()
                yield piece
        except WireError as error:
            yield self._fail(error, begun)
        finally:
            await pieces.aclose()
            self._report()

    def __aiter__(self) -> AsyncCutStream:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """End it, and close its source."""
        await self._pieces.aclose()
        if inspect.isawaitable(closing := self._close()):
            await closing


@overload
def cut_sse(
    body: AsyncIterable[bytes] | AsyncIterable[str],
    dialect: str,
    stops: StopSet | str | Iterable[str],
    /,
    **options: Unpack[AnswerOptions],
) -> AsyncCutStream: ...


@overload
def cut_sse(
    body: Iterable[bytes] | Iterable[str],
    dialect: str,
    stops: StopSet | str | Iterable[str],
    /,
    **options: Unpack[AnswerOptions],
) -> CutStream: ...


def cut_sse(
    body: Any, dialect: str, stops: Any, /, **options: Unpack[AnswerOptions]
) -> AsyncCutStream | CutStream:
    """A provider's stream up to the first stop, with that provider's own end.

    Args:
        body: an iterable of `bytes` or `str`, asynchronous or not; what comes back is of the same
            kind. It is closed (`aclose()`, else `close()`) at the match, and when the client leaves.
            A whole answer, of a client that did not ask for a stream, is cut as one.
        dialect: whose stream it is, one of `holdback.wire.DIALECTS` (also those that are no event
            streams).
        stops: a compiled set, or the stops.
        options: those of `holdback.wire.Cutter`: `choices` (how many answers come interleaved),
            `include_stop`, ... `on_match` may also be a function, which is called with each match.

    Returns:
        An iterator that has `matches` and `ended`. What cannot be cut, or in which no text can be
        read, ends in an error of the protocol (and is its `error`), unless `on_malformed` or
        `on_unread` is `"pass"`.

    Raises:
        ValueError: for bad stops or options, at once.
    """
    on_match, cutter = _made(dialect, stops, {**options})
    cutting = AnswerCutter(cutter, streams=True, on_unread=options.get("on_unread") or "fail")
    close = getattr(body, "aclose", None) or getattr(body, "close", None) or (lambda: None)
    if hasattr(body, "__aiter__"):
        return AsyncCutStream(_aencoded(body), cutting, close, on_match)
    return CutStream(map(_encoded, body), cutting, close, on_match)


class _Response:
    """What is left of a response beside its body."""

    def __init__(self, response: Any) -> None:
        self.status_code: int = getattr(response, "status_code", None) or response.status
        given: Mapping[str, str] = response.headers
        self.label = given.get("content-type") or ""
        self.coding = given.get("content-encoding") or ""
        gone = ("content-length", "content-encoding", "transfer-encoding", "connection")
        self.headers = {name: given[name] for name in given if name.lower() not in gone}


@overload
def cut_response(
    response: bytes | bytearray | memoryview | str,
    dialect: str,
    stops: StopSet | str | Iterable[str],
    /,
    **options: Unpack[AnswerOptions],
) -> bytes: ...


@overload
def cut_response(
    response: object,
    dialect: str,
    stops: StopSet | str | Iterable[str],
    /,
    **options: Unpack[AnswerOptions],
) -> Any: ...


def cut_response(
    response: Any,
    dialect: str,
    stops: StopSet | str | Iterable[str],
    /,
    **options: Unpack[AnswerOptions],
) -> Any:
    """An answer up to the first stop, whatever it is: a stream or a body, with whatever label.

    Args:
        response: a response of httpx, httpx2 (not read yet, or read), of `requests`, or what the
            OpenAI SDK gives for `with_raw_response` and `with_streaming_response`; or the `bytes` or
            `str` of a whole answer.
        dialect: whose answer it is.
        stops: a compiled set, or the stops.
        options: as for `cut_sse`.

    Returns:
        `bytes` for a whole answer. For a response an iterator over the bytes of its answer, as from
        `cut_sse`, of the response's kind, asynchronous or not; it also has `status_code` and
        `headers`, without those that no longer hold. An error of the provider passes as it is.

    Raises:
        ValueError: for bad stops or options. `WireError`, which is one, for a whole answer that
            cannot be cut.
        TypeError: for something that is no response.
    """
    on_match, cutter = _made(dialect, stops, {**options})
    fails: Any = options.get("on_unread") or "fail"
    if isinstance(response, bytes | bytearray | memoryview | str):
        cutting = AnswerCutter(cutter, streams=False, on_unread=fails)
        stream = CutStream([_encoded(response)], cutting, lambda: None, on_match)
        made = b"".join(stream)
        if stream.error is not None:
            raise stream.error
        return made
    response = getattr(response, "http_response", response)
    if not hasattr(response, "headers"):
        raise TypeError(f"a response of httpx or requests, or bytes, not {type(response).__name__}")
    head = _Response(response)
    cutting = AnswerCutter(
        cutter, streams=True, label=head.label, coding=head.coding, on_unread=fails
    )
    if not 200 <= head.status_code < 300:
        cutting.pass_all()  # an error is the provider's own
    begun = "json" not in head.label
    chunks = _chunks_of(response)
    found: Any
    if hasattr(chunks, "__iter__"):
        found = CutStream(chunks, cutting, response.close, on_match, begun=begun)
    else:
        found = AsyncCutStream(chunks, cutting, response.aclose, on_match, begun=begun)
    found.status_code, found.headers = head.status_code, head.headers
    return found


def _chunks_of(response: Any) -> Any:
    """The bytes of a response as they came, an iterable of one kind or the other."""
    if hasattr(response, "raw"):
        return response.raw.stream(65536, decode_content=False)  # of requests, by urllib3
    return response.stream  # of httpx; its own iterators would decode, and cannot begin twice


def _made(
    dialect: str, stops: Any, options: dict[str, Any]
) -> tuple[Callable[[WireMatch], object] | None, Cutter]:
    on_match = options.get("on_match")
    called = on_match if callable(on_match) else None
    if called is not None:
        del options["on_match"]
    return called, make_cutter(lambda **more: Cutter(dialect, stops, **more), **options)


def _encoded(chunk: Any) -> bytes:
    return chunk.encode() if isinstance(chunk, str) else bytes(chunk)


async def _aencoded(chunks: Any) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield _encoded(chunk)
