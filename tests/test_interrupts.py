"""Ctrl-C ends a call that takes long, however its text is cut, and leaves the stream as it was."""

from __future__ import annotations

import ctypes
import functools
import operator
from collections.abc import Callable

import pytest

import holdback

pytestmark = pytest.mark.thread_unsafe  # signals are for the main thread


def interrupt(call: Callable[..., object], *arguments: object) -> None:
    """Ctrl-C comes in the middle of a call: no Python code runs between the signal and the call."""
    calls = [ctypes.pythonapi.PyErr_SetInterrupt, functools.partial(call, *arguments)]
    done: list[object] = []
    with pytest.raises(KeyboardInterrupt):
        done.extend(map(functools.partial.__call__, map(functools.partial, calls)))
    assert len(done) == 1, "the call never came to its end"


CHUNKS = ["a" * 300_000] * 8  # each is far shorter than what is read without a look at signals


@pytest.mark.parametrize("letter", ["a", "\u8a9e", "\U0001f600"])
def test_ctrl_c_ends_a_call_between_two_chunks(letter: str) -> None:
    stops = holdback.StopSet(["ab", "\u8a9eb", "\U0001f600b"])
    long = [chunk.replace("a", letter) for chunk in CHUNKS]
    stream = stops.stream()
    chunks = iter(long)
    interrupt(stream.feed_many, chunks)
    assert operator.length_hint(chunks) > 0, "it ends before the last chunk"
    assert stream.held == "", "and nothing of the block was read"
    assert stream.feed_many(long) == ("".join(long)[:-1], None)

    streams = [stops.stream() for _ in long]
    interrupt(holdback.feed_batch, streams, long)
    assert {stream.held for stream in streams} == {""}, "no stream of the call is changed"
    assert holdback.feed_batch(streams, long) == ([chunk[:-1] for chunk in long], [])

    for texts in (long, tuple(long)):
        interrupt(stops.truncate_many, texts)
    rest = iter(long)
    interrupt(stops.truncate_many, rest)
    assert operator.length_hint(rest) > 0
    assert stops.truncate_many(long)[0] == long


def test_ctrl_c_ends_one_long_chunk() -> None:
    stops = holdback.StopSet(["ab"])
    for long in ("a" * (3 << 20), b"a" * (3 << 20), "\u8a9e" * (3 << 20)):
        stream = stops.stream()
        interrupt(stream.feed, long)
        assert stream.held == "", "it is as it was"
        assert stream.feed("ab")[1] is not None
    raw = stops.byte_stream()
    interrupt(raw.feed, b"a" * (3 << 20))
    assert raw.held == b""
