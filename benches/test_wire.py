"""The wire: what it costs to send a provider's events through a cutter, beside parsing and writing
their JSON.

The peers do the least that a gateway in Python has to do to look at the text, and cut nothing:
`json`, and `orjson` where it is installed. They are given the JSON alone, without the framing."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import holdback
from benches.measure import OURS, Go, Timer
from holdback.wire import Cutter

EVENT = (
    b'data: {"id":"chatcmpl-sample0001","object":"chat.completion.chunk","created":1790000000,"model":"gpt-4.1-mini",'
    b'"service_tier":"default","system_fingerprint":"fp_sample","choices":[{"index":0,"delta":{"%s":"%s"},'
    b'"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"%s"}\n\n'
)
WORDS = [b" the", b" capital", b" of", b" France", b" is", b" Paris", b".", b" It"]
PADS = [b"x", b"xK", b"xK3", b""]


def events(count: int, field: bytes) -> list[bytes]:
    return [EVENT % (field, WORDS[at % 8], PADS[at % 4]) for at in range(count)]


def stops(count: int) -> holdback.StopSet:
    return holdback.StopSet([f"\n\nHuman {number}:" for number in range(count)])


def feed_each(feed: Callable[[bytes], object], parts: list[bytes]) -> None:
    for part in parts:
        feed(part)


def peers(parts: list[bytes]) -> dict[str, Callable[[], Go]]:
    texts = [part[6:-2] for part in parts]
    found: dict[str, Any] = {"json": lambda text: json.dumps(json.loads(text)).encode()}
    try:
        orjson = importlib.import_module("orjson")
    except ImportError:
        pass
    else:
        found["orjson"] = lambda text: orjson.dumps(orjson.loads(text))
    return {name: partial(partial, feed_each, work, texts) for name, work in found.items()}


@pytest.mark.parametrize("size", [4, 12, 1000])
def test_an_event_a_call(timer: Timer, size: int) -> None:
    """What a gateway pays for each event of a stream that is not cut: its text matched, its bytes
    copied.
    """
    parts = events(timer.size(100, 4), b"content")
    known = stops(size)

    def side() -> Go:
        return partial(feed_each, Cutter("openai.chat", known).feed, parts)

    timer.tell(
        workload=f"wire, one event a call, {size} stops", stops=size, bytes=len(b"".join(parts))
    )
    timer.compare({OURS: side, **peers(parts)}, per=len(parts), unit="ns/event", rounds=300)


@pytest.mark.parametrize("field", [b"content", b"reasoning_content"], ids=["matched", "passed"])
def test_events_in_blocks(timer: Timer, field: bytes) -> None:
    """Many events in one read, as a fast upstream sends them: with text to be matched, and without."""
    parts = events(timer.size(100, 4), field)
    block, known = b"".join(parts), stops(12)

    def side() -> Go:
        return partial(Cutter("openai.chat", known).feed, block)

    timer.tell(workload=f"wire, blocks, {field.decode()}", bytes=len(block))
    timer.compare({OURS: side, **peers(parts)}, per=len(parts), unit="ns/event", rounds=300)
