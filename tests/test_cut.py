"""Section 10: cutting an iterator closes its source as soon as nothing more is wanted from it, and
never hides what was held.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from types import ModuleType
from typing import Any, TypeVar

import pytest

import holdback

Result = TypeVar("Result")


class Source:
    """Chunks that know whether they were closed. An exception among them is raised."""

    def __init__(self, *chunks: Any) -> None:
        self.chunks = iter(chunks)
        self.closed = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        chunk = next(self.chunks)
        if isinstance(chunk, BaseException):
            raise chunk
        return chunk

    def close(self) -> None:
        self.closed += 1


class AsyncSource(Source):
    """The same, asynchronous, with a `close()` that is not."""

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        await asyncio.sleep(0)
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None


class AwaitableClose(AsyncSource):
    async def close(self) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        self.closed += 1


class BothClose(AwaitableClose):
    """`aclose()` comes first, and is the only one called."""

    async def aclose(self) -> None:
        await super().close()

    async def close(self) -> None:  # type: ignore[override]
        raise AssertionError("close() was called beside aclose()")


class Response:
    """What many clients give: an object with `close()` whose iterator is another object."""

    def __init__(self, *chunks: Any) -> None:
        self.source = Source(*chunks)
        self.closed = 0

    def __iter__(self) -> Iterator[Any]:
        yield from self.source

    def close(self) -> None:
        self.closed += 1


ASYNC = [AsyncSource, AwaitableClose, BothClose]


def run(main: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(main)


async def collect(cut: Any) -> list[str]:
    return [text async for text in cut]


def test_what_is_yielded(impl: ModuleType) -> None:
    source = Source("one ", "", "<", "two</", b"end", ">three", "four")
    cut = impl.StopSet(["</end>"]).cut(source)
    assert list(cut) == ["one ", "<two"], "never an empty string"
    assert (cut.match.stop, cut.match.start, cut.match.rest, cut.held) == ("</end>", 8, "three", "")
    assert (source.closed, list(source.chunks)) == (1, ["four"])
    assert list(cut) == []


def test_the_source_is_closed_before_the_last_text_is_handed_out(impl: ModuleType) -> None:
    """A consumer that takes this text and never asks again leaves nothing open."""
    source = Source("last.", "never")
    cut = impl.StopSet(["."]).cut(source)
    assert (next(cut), source.closed, cut.match.start) == ("last", 1, 4)


def test_without_a_match_held_text_comes_at_the_end(impl: ModuleType) -> None:
    source = Source("one E", "N")
    cut = impl.StopSet(["END"]).cut(source)
    assert list(cut) == ["one ", "EN"]
    assert (cut.match, cut.held) == (None, "")


def test_the_end_of_the_source_may_complete_a_stop(impl: ModuleType) -> None:
    cut = impl.StopSet(["\ufffd"]).cut([b"a\xe2"])
    assert (list(cut), cut.match.start) == (["a"], 1)


def test_it_takes_the_options_of_a_stream(impl: ModuleType) -> None:
    compiled = impl.StopSet(["END"])
    chunks = ["<think>END</thi", "nk>END"]
    options = {"ignore_inside": [("<think>", "</think>")], "atomic": "regions"}
    assert list(compiled.cut(chunks, **options)) == ["<think>END", "</think>"]
    assert list(compiled.cut(chunks, **options, include_stop=True)) == ["<think>END", "</think>END"]
    assert list(compiled.cut(chunks, min_chars=10)) == ["<think>END</thi", "nk>"]


def test_closed_early(impl: ModuleType) -> None:
    source = Source("one E", "ND")
    cut = impl.StopSet(["END"]).cut(source)
    assert next(cut) == "one "
    cut.close()
    cut.close()
    assert (source.closed, cut.held, cut.match, list(cut)) == (1, "E", None, [])


def test_a_with_block_closes_it(impl: ModuleType) -> None:
    source, other = Source("one E", "ND"), AsyncSource("one E", "ND")
    with impl.StopSet(["END"]).cut(source) as cut:
        assert next(cut) == "one "
    assert (source.closed, cut.held) == (1, "E")

    async def main() -> None:
        async with impl.StopSet(["END"]).acut(other) as cut:
            assert await anext(cut) == "one "
        assert (other.closed, cut.held) == (1, "E")

    run(main())


@pytest.mark.parametrize("fault", [OSError("gone"), KeyboardInterrupt()])
def test_a_source_that_raises(impl: ModuleType, fault: BaseException) -> None:
    source = Source("one E", fault)
    cut = impl.StopSet(["END"]).cut(source)
    assert next(cut) == "one "
    with pytest.raises(type(fault)):
        next(cut)
    assert (source.closed, cut.held, list(cut)) == (1, "E", [])


@pytest.mark.parametrize("bad", [5, b"\xff"])
def test_a_bad_chunk(impl: ModuleType, bad: Any) -> None:
    source = Source("one E", bad, "ND")
    cut = impl.StopSet(["END"]).cut(source, errors="strict")
    assert next(cut) == "one "
    with pytest.raises((TypeError, UnicodeDecodeError)):
        next(cut)
    assert (source.closed, cut.held, list(cut)) == (1, "E", [])


def test_an_end_inside_a_character_with_strict(impl: ModuleType) -> None:
    cut = impl.StopSet(["END"]).cut([b"one E\xe2"], errors="strict")
    assert next(cut) == "one "
    with pytest.raises(UnicodeDecodeError):
        next(cut)
    assert (cut.held, list(cut)) == ("E", [])


def test_a_response_whose_iterator_is_another_object(impl: ModuleType) -> None:
    response = Response("a.b", "c")
    assert list(impl.StopSet(["."]).cut(response)) == ["a"]
    assert response.closed == 1


def test_an_object_without_close_whose_iterator_has_one(impl: ModuleType) -> None:
    closed = []

    class Chunks:
        def __iter__(self) -> Iterator[str]:
            try:
                yield from ["a.", "b"]
            finally:
                closed.append(True)

    assert list(impl.StopSet(["."]).cut(Chunks())) == ["a"]
    assert closed == [True]


def test_what_cannot_be_closed_is_not(impl: ModuleType) -> None:
    assert list(impl.StopSet(["."]).cut(["a.", "b"])) == ["a"]
    assert list(impl.StopSet(["."]).cut(iter(("a", "b")))) == ["a", "b"]


def test_what_is_no_source(impl: ModuleType) -> None:
    with pytest.raises(TypeError):
        impl.StopSet(["."]).cut(5)
    with pytest.raises(TypeError):
        impl.StopSet(["."]).acut(["a"])


# -- asynchronous
# ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ASYNC)
def test_async_match(impl: ModuleType, kind: Any) -> None:
    async def main() -> None:
        source = kind("one ", "", "two</", b"end", ">three", "four")
        cut = impl.StopSet(["</end>"]).acut(source)
        assert await collect(cut) == ["one ", "two"]
        assert (cut.match.stop, cut.match.rest, source.closed, list(source.chunks)) == (
            "</end>",
            "three",
            1,
            ["four"],
        )
        assert await collect(cut) == []

    run(main())


@pytest.mark.parametrize("kind", ASYNC)
def test_async_closed_before_the_last_text_is_handed_out(impl: ModuleType, kind: Any) -> None:
    async def main() -> None:
        source = kind("last.", "never")
        cut = impl.StopSet(["."]).acut(source)
        assert (await anext(cut), source.closed) == ("last", 1)

    run(main())


@pytest.mark.parametrize("kind", ASYNC)
def test_async_without_a_match(impl: ModuleType, kind: Any) -> None:
    async def main() -> None:
        cut = impl.StopSet(["END"]).acut(kind("one E", "N"))
        assert (await collect(cut), cut.match) == (["one ", "EN"], None)

    run(main())


@pytest.mark.parametrize("kind", ASYNC)
def test_async_closed_early(impl: ModuleType, kind: Any) -> None:
    async def main() -> None:
        source = kind("one E", "ND")
        cut = impl.StopSet(["END"]).acut(source)
        assert await anext(cut) == "one "
        await cut.aclose()
        await cut.aclose()
        assert (source.closed, cut.held, await collect(cut)) == (1, "E", [])

    run(main())


@pytest.mark.parametrize("kind", ASYNC)
@pytest.mark.parametrize("fault", [OSError("gone"), asyncio.CancelledError(), 5])
def test_async_source_that_raises_or_gives_no_chunk(
    impl: ModuleType, kind: Any, fault: Any
) -> None:
    async def main() -> None:
        source = kind("one E", fault)
        cut = impl.StopSet(["END"]).acut(source)
        assert await anext(cut) == "one "
        with pytest.raises(type(fault) if isinstance(fault, BaseException) else TypeError):
            await anext(cut)
        assert (source.closed, cut.held, await collect(cut)) == (1, "E", [])

    run(main())


def test_async_generators_are_closed(impl: ModuleType) -> None:
    closed = []

    async def chunks() -> AsyncIterator[str]:
        try:
            yield "a."
            yield "b"
        finally:
            closed.append(True)

    assert run(collect(impl.StopSet(["."]).acut(chunks()))) == ["a"]
    assert closed == [True]


class BadClose(Source):
    def close(self) -> None:
        raise OSError("the connection is gone")


def test_an_error_of_close_loses_no_text(impl: ModuleType) -> None:
    cut = impl.StopSet(["!"]).cut(BadClose("ab!c"))
    with pytest.raises(OSError, match="gone"):
        next(cut)
    assert list(cut) == ["ab"]
    assert cut.match is not None


def test_the_first_error_is_the_one_that_is_told(impl: ModuleType) -> None:
    cut = impl.StopSet(["!"]).cut(BadClose("a", KeyError("first")))
    assert next(cut) == "a"
    with pytest.raises(KeyError, match="first"):
        next(cut)


def test_a_stop_iteration_out_of_close_is_not_the_end() -> None:
    class Odd(Source):
        def close(self) -> None:
            raise StopIteration

    cut = holdback.StopSet(["!"]).cut(Odd("ab!c"))
    with pytest.raises(RuntimeError, match="StopIteration"):
        next(cut)
    assert list(cut) == ["ab"]


def test_a_second_call_inside_the_first_changes_nothing() -> None:
    seen: list[str] = []

    def chunks() -> Iterator[str]:
        yield "a"
        for call in (cut.__next__, cut.close):
            with pytest.raises(RuntimeError, match="in use"):
                call()
            seen.append("refused")
        yield "b!"

    cut = holdback.StopSet(["!"]).cut(chunks())
    assert list(cut) == ["a", "b"]
    assert seen == ["refused", "refused"]
