"""Batch step: an engine has a chunk for each of its 256 streams; and a column of finished texts,
for work offline.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import holdback
from benches import workloads
from benches.measure import OURS, Go, Timer, drive
from benches.peers import Peer
from benches.peers.ours import Holdback

STREAMS = 256


def steps_of(text: str, steps: int) -> list[list[str]]:
    """Chunks of four characters, by step and stream; each stream has a part of the text to itself."""
    chunks = workloads.every(4)(text)
    return [chunks[at : STREAMS * steps : steps] for at in range(steps)]


def test_a_step_of_256_streams(timer: Timer, c_floor: type[Peer]) -> None:
    """Beside one stream of the floor in a loop, the floor's own batch call, and a loop over `feed`."""
    steps = timer.size(40, 2)
    text = workloads.mixed_text(STREAMS * steps * 4)
    peers: dict[str, type[Peer]] = {OURS: Holdback, "floor": c_floor}
    shared = {name: peer.build(workloads.stops(4)) for name, peer in peers.items()}
    batch = {OURS: holdback.feed_batch, "floor": floor_batch()}

    def batches(name: str) -> Go:
        streams = [peers[name](shared[name]) for _ in range(STREAMS)]
        parts = steps_of(text, steps)

        def go() -> None:
            call = batch[name]
            for chunks in parts:
                call(streams, chunks)

        return go

    def loops(name: str) -> Go:
        feeds = [peers[name](shared[name]).feed for _ in range(STREAMS)]
        parts = steps_of(text, steps)

        def go() -> None:
            for chunks in parts:
                for feed, chunk in zip(feeds, chunks, strict=True):
                    feed(chunk)

        return go

    def one_stream() -> Go:
        return partial(drive, c_floor(shared["floor"]).feed, workloads.every(4)(text))

    one, each = (
        [Holdback(shared[OURS]) for _ in range(STREAMS)],
        [Holdback(shared[OURS]) for _ in range(STREAMS)],
    )
    for chunks in steps_of(text, steps):
        emits, ended = holdback.feed_batch(one, chunks)
        assert (emits, ended) == (
            [stream.feed(chunk)[0] for stream, chunk in zip(each, chunks, strict=True)],
            [],
        )
    timer.tell(workload="batch step, 256 streams", stops=4)
    sides: dict[str, Callable[[], Go]] = {OURS: partial(batches, OURS), "floor": one_stream}
    sides |= {
        "floor, batch": partial(batches, "floor"),
        "holdback, feed in a loop": partial(loops, OURS),
    }
    timer.compare(sides, per=STREAMS * steps, unit="ns/chunk", rounds=100)


def floor_batch() -> Callable[..., object]:
    from benches import floor

    batch: Callable[..., object] = floor.load().batch
    return batch


def test_a_column_of_texts(timer: Timer) -> None:
    """`truncate_many` beside a loop over `truncate`: answers of 2,000 characters, one in four of
    which has a stop.
    """
    stops = holdback.StopSet(workloads.stops(4))
    text, size = workloads.mixed_text(200_000), 2000

    def column() -> list[str]:
        rows = []
        for row in range(timer.size(500, 8)):
            at = row * 397 % (len(text) - size)
            rows.append(
                text[at : at + size - 100]
                + ("</s>" if row % 4 == 0 else "no s")
                + text[at : at + 96]
            )
        return rows

    def many() -> Go:
        return partial(stops.truncate_many, column())

    def loop() -> Go:
        return partial(drive, stops.truncate, column())

    emits, matches = stops.truncate_many(column())
    assert [(emit, match) for emit, match in zip(emits, matches, strict=True)] == list(
        map(stops.truncate, column())
    )
    timer.tell(workload="column of texts, 2,000 characters each", stops=4)
    timer.compare(
        {OURS: many, "truncate in a loop": loop}, per=len(emits), unit="ns/text", rounds=60
    )
