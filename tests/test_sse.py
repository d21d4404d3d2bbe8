"""Frames read back, and Gemini's array of events: apart and together again, however it is cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback._sse import ArrayOfEvents, EventsOfArray, payloads
from holdback.wire import WireError

texts = st.text(st.sampled_from('ab{}[]",:\\é\n\u2028\x85 '), max_size=8)
values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)


@given(
    events=st.lists(objects, max_size=4),
    indent=st.sampled_from([None, 0, 2]),
    ascii_only=st.booleans(),
    size=st.integers(1, 40),
)
def test_an_array_comes_apart_and_together_again(
    events: list[Any], indent: int | None, ascii_only: bool, size: int
) -> None:
    raw = json.dumps(events, indent=indent, ensure_ascii=ascii_only).encode()
    apart, together, frames, array = EventsOfArray(), ArrayOfEvents(), b"", b""
    for place in range(0, len(raw), size):
        made = apart.feed(raw[place : place + size])
        frames += made
        array += together.feed(made)
    apart.finish()
    array += together.finish()
    assert [json.loads(payload) for payload in payloads(frames)] == events
    assert json.loads(array) == events


@pytest.mark.parametrize("raw", [b"", b"[", b'[{"a":1}', b'[{"a":"]', b'[{"a":[1]}, '])
def test_an_array_that_ends_too_early(raw: bytes) -> None:
    events = EventsOfArray()
    events.feed(raw)
    with pytest.raises(WireError, match="too early"):
        events.finish()


@pytest.mark.parametrize("raw", [b"[1]", b'["a"]', b"[[]]", b'{"a":1}', b"[] x", b"[]]", b"[][]"])
def test_what_is_no_array_of_objects(raw: bytes) -> None:
    with pytest.raises(WireError, match="no object"):
        EventsOfArray().feed(raw)


def test_an_event_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdback._sse.MAX_EVENT_BYTES", 100)
    events = EventsOfArray()
    events.feed(b'[{"a":"' + b"x" * 90)
    with pytest.raises(WireError, match="longer than 100"):
        events.feed(b"x" * 9)
