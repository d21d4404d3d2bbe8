"""Relaying an answer through a cutter: both kinds, from sources that end well, break off, or send
what cannot be read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback._relay import arelay, relay
from holdback.wire import Cutter, WireError

STOPS = ["END", "Obs:"]


def line(text: str, *, done: bool = False) -> bytes:
    return json.dumps({"response": text, "done": done}).encode() + b"\n"


class BrokenError(Exception):
    """What a source raises."""


class Source:
    """Pieces, and a journal of what was asked for and when it was closed."""

    def __init__(self, pieces: list[bytes], error: Exception | None = None) -> None:
        self.pieces, self.error, self.journal = pieces, error, list[str]()

    def close(self) -> None:
        self.journal.append("closed")

    def plain(self) -> Iterator[bytes]:
        try:
            for piece in self.pieces:
                self.journal.append("read")
                yield piece
            if self.error:
                raise self.error
        finally:
            self.journal.append("over")

    async def asynchronous(self) -> AsyncIterator[bytes]:
        for piece in self.plain():
            yield piece


def by_relay(source: Source, cutter: Cutter) -> tuple[list[bytes], Exception | None]:
    out = []
    try:
        for piece in relay(source.plain(), cutter, source.close):
            source.journal.append("out")
            out.append(piece)
    except (BrokenError, WireError) as error:
        return out, error
    return out, None


def by_arelay(source: Source, cutter: Cutter) -> tuple[list[bytes], Exception | None]:
    async def run() -> tuple[list[bytes], Exception | None]:
        out = []
        try:
            async for piece in arelay(source.asynchronous(), cutter, source.close):
                source.journal.append("out")
                out.append(piece)
        except (BrokenError, WireError) as error:
            return out, error
        return out, None

    return asyncio.run(run())


BOTH = pytest.mark.parametrize("way", [by_relay, by_arelay])
Way = Callable[[Source, Cutter], tuple[list[bytes], Any]]


@BOTH
def test_the_source_is_closed_before_the_last_bytes_go_out(way: Way) -> None:
    source = Source([line("a EN"), line("D b"), line("never")])
    out, error = way(source, Cutter("ollama.generate", STOPS))
    assert error is None
    assert [json.loads(piece)["response"] for piece in out] == ["a ", ""]
    assert source.journal.count("read") == 2
    assert source.journal[:5] == ["read", "out", "read", "closed", "out"]
    assert "over" in source.journal


@BOTH
def test_what_was_held_comes_before_the_sources_own_error(way: Way) -> None:
    source = Source([line("a EN")], BrokenError("gone"))
    out, error = way(source, Cutter("ollama.generate", STOPS))
    assert isinstance(error, BrokenError)
    assert "".join(json.loads(piece)["response"] for piece in out) == "a EN"
    assert "closed" in source.journal


@BOTH
def test_what_cannot_be_read_is_raised_after_what_can(way: Way) -> None:
    source = Source([line("a EN") + b'{"response":"x\n', line("never")])
    out, error = way(source, Cutter("ollama.generate", STOPS))
    assert isinstance(error, WireError)
    assert "".join(json.loads(row)["response"] for row in b"".join(out).splitlines()) == "a EN"
    assert source.journal.count("read") == 1
    assert "closed" in source.journal


@given(
    texts=st.lists(st.sampled_from(["a", "E", "N", "D", "END", "Obs", ":", ""]), max_size=9),
    broken=st.booleans(),
    size=st.integers(1, 60),
)
def test_both_kinds_do_the_same(texts: list[str], broken: bool, size: int) -> None:
    raw = b"".join(map(line, texts)) + (b"" if broken else line("", done=True))
    pieces = [raw[place : place + size] for place in range(0, len(raw), size)]
    error = BrokenError() if broken else None
    plain, other = Source(pieces, error), Source(pieces, error)
    first = by_relay(plain, Cutter("ollama.generate", STOPS))
    second = by_arelay(other, Cutter("ollama.generate", STOPS))
    assert (first[0], type(first[1])) == (second[0], type(second[1]))
    assert b"" not in first[0]
    text = "".join(json.loads(row)["response"] for row in b"".join(first[0]).splitlines())
    whole = "".join(texts)
    ends = [place for place in (whole.find(stop) for stop in STOPS) if place >= 0]
    assert text == (whole[: min(ends)] if ends else whole)


def test_a_caller_that_leaves_closes_the_source() -> None:
    source = Source([line("a"), line("b")])
    pieces = relay(source.plain(), Cutter("ollama.generate", STOPS), source.close)
    next(pieces)
    pieces.close()
    assert source.journal == ["read", "closed", "over"]
