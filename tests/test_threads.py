"""docs/threads.md, sentence by sentence: the number in a test's name is the number of its sentence
there.

A race cannot be made to happen on purpose; it can be tried until it happens. Such a test has a
deadline that only a hang, or a race that has become impossible, can miss. With a GIL some of these
only prove that nothing is broken; on a free-threaded Python they prove what they say."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import holdback

pytestmark = pytest.mark.thread_unsafe  # these start their own threads

DEADLINE = 60.0
THREADS = 8
STOPS = ["###END", "</answer>", "END!", "。。"]
LONG = (
    "some text that never stops " * 40_000
)  # a million characters: long enough to be read without the GIL


def run_in_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    """Start ``count`` threads at the same moment; raise what any of them raised, or fail if one
    hangs.
    """
    barrier = threading.Barrier(count)
    errors: list[BaseException] = []

    def body(number: int) -> None:
        try:
            barrier.wait(DEADLINE)
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=body, args=(number,), daemon=True) for number in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]


def pieces(text: str, random_source: random.Random) -> Iterator[str]:
    """The text, cut at random."""
    while text:
        size = random_source.randint(1, 5)
        yield text[:size]
        text = text[size:]


def texts() -> list[str]:
    """Texts that begin stops all the time and end with one."""
    source = random.Random(7)
    parts = [*STOPS, "##", "</ans", "END", "。", "x", "日本"]
    return ["".join(source.choices(parts[4:], k=200)) + source.choice(parts[:4]) for _ in range(20)]


def streamed(stops: holdback.StopSet, text: str, seed: int) -> tuple[str, str | None, int | None]:
    stream = stops.stream()
    out = []
    for piece in pieces(text, random.Random(seed)):
        emit, match = stream.feed(piece)
        out.append(emit)
        if match:
            return "".join(out), match.stop, match.start
    return "".join(out) + stream.flush(), None, None


def test_1_a_set_is_shared_by_many_threads() -> None:
    stops = holdback.StopSet(STOPS)
    expected = [streamed(stops, text, 0) for text in texts()]

    def work(number: int) -> None:
        for text, wanted in zip(texts(), expected, strict=True):
            assert streamed(stops, text, number) == wanted
            assert stops.truncate(text)[0] == wanted[0]
            assert stops == holdback.StopSet(STOPS)

    run_in_threads(work)


def test_2_compile_is_called_by_many_threads() -> None:
    def work(number: int) -> None:
        for turn in range(300):
            # Some lists all threads ask for, some only this one, more than the cache keeps.
            wanted = [f"shared {turn % 7}"] if turn % 2 else [f"own {number} {turn}"]
            assert holdback.compile(wanted).stops == tuple(wanted)

    run_in_threads(work)


def test_3_a_match_is_shared_by_many_threads() -> None:
    match = holdback.StopSet(STOPS).truncate("text END! more")[1]
    assert match

    def work(_number: int) -> None:
        for _ in range(300):
            assert (match.stop, match.start, match.end) == ("END!", 5, 9)
            assert hash(match) == hash(pickle.loads(pickle.dumps(match)))

    run_in_threads(work)


def test_4_a_stream_moves_from_thread_to_thread() -> None:
    stops = holdback.StopSet(STOPS)
    for seed, text in enumerate(texts()):
        stream = stops.stream()
        out = []
        with ThreadPoolExecutor(THREADS) as pool:
            for piece in pieces(text, random.Random(seed)):
                emit, match = pool.submit(stream.feed, piece).result(
                    DEADLINE
                )  # any of the threads takes it
                out.append(emit)
                if match:
                    break
        assert "".join(out) == streamed(stops, text, 0)[0]


def meet(
    stream: holdback.StopStream[Any], intrude: Callable[[], object], enough: int = 3
) -> tuple[int, int]:
    """Feed long chunks in one thread and ``intrude`` in this one until they have met often enough.

    Returns how many long chunks and how many intrusions went through.
    """
    stop = threading.Event()
    fed = [0]

    def feeding() -> None:
        while not stop.is_set():
            try:
                _, match = stream.feed(LONG)
            except (RuntimeError, ValueError):
                continue  # it was this thread that came second, or came to a stream that had been flushed
            assert match is None
            fed[0] += 1

    feeder = threading.Thread(target=feeding, daemon=True)
    feeder.start()
    met = went_through = 0
    deadline = time.monotonic() + DEADLINE
    while met < enough and time.monotonic() < deadline:
        try:
            intrude()
        except RuntimeError as error:
            met += "another thread" in str(error)
        else:
            went_through += 1
    stop.set()
    feeder.join(DEADLINE)
    assert not feeder.is_alive(), "the feeding thread hangs"
    assert met >= enough, "the two threads never met: a long chunk no longer lets others run"
    return fed[0], went_through


def test_5_and_8_two_threads_in_one_stream_get_an_error_and_do_no_damage() -> None:
    stream = holdback.StopSet(["###END"]).stream()
    long, short = meet(stream, lambda: stream.feed("text ###EN, "))
    # Every call that went through counts, once; a call that was refused left no trace.
    emit, match = stream.feed("###END")
    assert emit == ""
    assert match
    assert match.start == long * len(LONG) + short * len("text ###EN, ")
    assert match.end_chunk == long + short


@pytest.mark.parametrize(
    "intrude",
    [
        lambda stream: stream.feed("x"),
        lambda stream: stream.feed_many(["x", "y"]),
        lambda stream: stream.copy(),
        lambda stream: stream.held,
        lambda stream: stream.reset(),
        lambda stream: pickle.dumps(stream),
    ],
    ids=["feed", "feed_many", "copy", "held", "reset", "pickle"],
)
def test_6_every_way_in_is_guarded(intrude: Callable[[holdback.StopStream[str]], object]) -> None:
    stream = holdback.StopSet(["###END"]).stream()
    meet(stream, lambda: intrude(stream), enough=1)
    stream.reset()
    assert stream.feed("a###END")[0] == "a"


def test_6_a_flush_is_guarded() -> None:
    stream = holdback.StopSet(["###END"]).stream()

    def intrude() -> None:
        with contextlib.suppress(RuntimeError):
            stream.reset()
        time.sleep(0)  # lets the feeding thread in
        stream.flush()

    meet(stream, intrude, enough=1)
    stream.reset()
    assert stream.feed("a###END")[0] == "a"


def test_7_an_iterator_has_one_caller_at_a_time() -> None:
    stops = holdback.StopSet(["###END"])
    cut = stops.cut(LONG for _ in range(1_000_000))
    seen = threading.Event()

    def work(_number: int) -> None:
        deadline = time.monotonic() + DEADLINE
        while not seen.is_set() and time.monotonic() < deadline:
            try:
                assert next(cut) == LONG
            except StopIteration:
                return  # the error closed it for the other thread
            except (RuntimeError, ValueError) as error:
                # Ours, or Python's own for a generator that is already running.
                if "another thread" in str(error) or "already executing" in str(error):
                    seen.set()

    run_in_threads(work, count=2)
    assert seen.is_set()


def test_9_importing_it_leaves_the_gil_off() -> None:
    enabled = getattr(sys, "_is_gil_enabled", lambda: True)
    free_threaded = "free-threading" in sys.version
    assert enabled() is not free_threaded


FORK = """
import os, holdback
stream = holdback.StopSet(["STOP"]).stream()
assert stream.feed("text ST") == ("text ", None)
child = os.fork()
emit, match = stream.feed("OP" if child == 0 else "ART")
good = match is not None if child == 0 else emit == "START"
if child == 0:
    os._exit(0 if good else 1)
assert good and os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_10_a_process_forks_with_a_stream_in_mid_flight() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=DEADLINE)


def finish(stream: holdback.StopStream[str]) -> tuple[str, str]:
    emit, match = stream.feed("OP and more")
    assert match
    return emit, match.stop


def test_11_a_stream_moves_to_another_process() -> None:
    stream = holdback.StopSet(["STOP"]).stream()
    assert stream.feed("text ST") == ("text ", None)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply_async(finish, (stream,)).get(DEADLINE) == ("", "STOP")


def test_12_tasks_of_one_loop_use_streams_freely() -> None:
    stops = holdback.StopSet(STOPS)

    async def respond(text: str, seed: int) -> str:
        stream = stops.stream()
        out = []
        for piece in pieces(text, random.Random(seed)):
            await asyncio.sleep(0)
            emit, match = stream.feed(piece)
            out.append(emit)
            if match:
                break
        return "".join(out)

    async def serve() -> list[str]:
        return await asyncio.gather(*(respond(text, seed) for seed, text in enumerate(texts())))

    assert asyncio.run(serve()) == [streamed(stops, text, 0)[0] for text in texts()]
