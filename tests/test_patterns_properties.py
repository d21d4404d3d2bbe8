"""What section 11 promises, as properties of both implementations."""

from __future__ import annotations

import copy
import pickle
import re
from types import ModuleType
from typing import Any

import pytest
from corpus import made
from hypothesis import assume, given
from hypothesis import strategies as st
from pattern_strategies import ALPHABETS, pattern_stops
from strategies import cuttings

TIES = st.sampled_from(["longest", "first"])


@pytest.fixture(autouse=True)
def there(impl: ModuleType) -> None:
    if not hasattr(impl, "Pattern"):
        pytest.skip("holdback.Pattern does not exist yet")


@st.composite
def stops_and_text(draw: st.DrawFn) -> tuple[list[Any], str]:
    letters = draw(st.sampled_from(ALPHABETS))
    return draw(pattern_stops(letters)), draw(st.text(letters, max_size=10))


def stream_of(impl: ModuleType, stops: list[Any], **options: Any) -> Any:
    """A stream, if these stops may have one."""
    tie = options.pop("tie", "longest")
    compiled = impl.StopSet([made(impl, stop) for stop in stops], tie=tie)
    assume(options.get("include_stop") or None not in compiled.bounds)
    return compiled.stream(**options)


def outcome(stream: Any, chunks: list[Any]) -> tuple[Any, ...]:
    emitted = "".join(stream.feed(chunk)[0] for chunk in chunks) + stream.flush()
    match = stream.match
    return emitted, match and (match.stop, match.index, match.start, match.end, match.cut)


@given(stops_and_text(), TIES, st.booleans(), st.integers(0, 4), st.data())
def test_every_cut_gives_the_same(
    impl: ModuleType,
    case: tuple[list[Any], str],
    tie: str,
    include: bool,
    min_chars: int,
    data: st.DataObject,
) -> None:
    stops, text = case
    make = stream_of(impl, stops, tie=tie, include_stop=include, min_chars=min_chars)
    whole = outcome(make.copy(), [text])
    assert outcome(make.copy(), list(text)) == whole
    assert outcome(make.copy(), data.draw(cuttings(text))) == whole
    assert outcome(make, [bytes([byte]) for byte in text.encode()]) == whole


@given(stops_and_text(), TIES, st.booleans(), st.data())
def test_nothing_is_lost_and_nothing_of_the_match_is_emitted(
    impl: ModuleType, case: tuple[list[Any], str], tie: str, include: bool, data: st.DataObject
) -> None:
    stops, text = case
    stream = stream_of(impl, stops, tie=tie, include_stop=include)
    emitted = ""
    for chunk in data.draw(cuttings(text)):
        emitted += stream.feed(chunk)[0]
        if stream.match is None:
            assert text.startswith(emitted + stream.held)
    emitted += stream.flush()
    match = stream.match
    if match is None:
        assert emitted == text
        return
    assert emitted == text[: match.cut]
    if include:
        assert match.cut == match.end
    elif match.pattern is None or match.pattern.max_hold in (None, 1000):
        assert match.cut == match.start
    else:
        assert match.start <= match.cut <= match.end
    assert match.stop == text[match.start : match.end]
    assert match.pattern == (stream.stops.stops[match.index] if match.pattern else None)


@given(stops_and_text(), TIES)
def test_the_match_is_a_word_of_its_stop(
    impl: ModuleType, case: tuple[list[Any], str], tie: str
) -> None:
    """As `re` reads the pattern, where it stands; and no other stop has a word that ends earlier."""
    stops, text = case
    patterns = [stop if isinstance(stop, dict) else {"pattern": re.escape(stop)} for stop in stops]
    stream = stream_of(impl, stops, tie=tie)
    stream.feed(text)
    stream.flush()
    end = len(text) + 1 if stream.match is None else stream.match.end
    found = [
        (index, start, stop)
        for stop in range(1, min(end, len(text)) + 1)
        for index, pattern in enumerate(patterns)
        for start in range(stop)
        if is_word(pattern, text, start, stop)
    ]
    if stream.match is None:
        assert not found
        return
    match = stream.match
    assert (match.index, match.start, match.end) in found
    assert [one for one in found if one[2] < end - 1] == []


def is_word(pattern: dict[str, Any], text: str, start: int, end: int) -> bool:
    flags = re.IGNORECASE if pattern.get("ignore_case") else 0
    behind = len(text) - end
    source = rf"(?m:{pattern['pattern']})(?=[\s\S]{{{behind}}}\Z)"
    return re.compile(source, flags).match(text, start) is not None


@given(stops_and_text(), TIES)
def test_max_hold_changes_only_what_was_sent(
    impl: ModuleType, case: tuple[list[Any], str], tie: str
) -> None:
    stops, text = case
    held_long = [{**stop, "max_hold": 1000} if isinstance(stop, dict) else stop for stop in stops]
    ours, long = (stream_of(impl, some, tie=tie) for some in (stops, held_long))
    for letter in text:
        _, match = ours.feed(letter)
        _, other = long.feed(letter)
        assert (match is None) == (other is None)
        assert long.held.endswith(ours.held)
    ours.flush()
    long.flush()
    for name in ("index", "start", "end", "start_chunk", "end_chunk", "rest"):
        assert getattr(ours.match, name, None) == getattr(long.match, name, None)


@given(stops_and_text(), TIES, st.data())
def test_copies_and_pickles_go_on_alike(
    impl: ModuleType, case: tuple[list[Any], str], tie: str, data: st.DataObject
) -> None:
    stops, text = case
    at = data.draw(st.integers(0, len(text)))
    stream = stream_of(impl, stops, tie=tie)
    stream.feed(text[:at])
    others = [stream.copy(), copy.copy(stream), pickle.loads(pickle.dumps(stream))]
    want = stream.feed(text[at:]), stream.held, stream.flush(), stream.match
    for other in others:
        assert (other.feed(text[at:]), other.held, other.flush(), other.match) == want


@given(stops_and_text())
def test_no_more_is_held_than_bounds_say(impl: ModuleType, case: tuple[list[Any], str]) -> None:
    stops, text = case
    stream = stream_of(impl, stops)
    most = max(stream.stops.bounds)
    for letter in text:
        stream.feed(letter)
        assert len(stream.held) <= most


@given(stops_and_text(), st.data())
def test_arming_by_hand_loses_nothing(
    impl: ModuleType, case: tuple[list[Any], str], data: st.DataObject
) -> None:
    """No match while disarmed but one that had ended before; what goes out is the text up to the cut."""
    stops, text = case
    stream = stream_of(impl, stops)
    emitted, disarmed_at = "", None
    for read, letter in enumerate(text):
        call = data.draw(st.sampled_from(["arm", "disarm", None, None]))
        if call:
            getattr(stream, call)()
            disarmed_at = None if call == "arm" else read if disarmed_at is None else disarmed_at
        emitted += stream.feed(letter)[0]
        if stream.match:
            break
        assert emitted + stream.held == text[: read + 1]
    emitted += stream.flush()
    match = stream.match
    assert emitted == (text if match is None else text[: match.cut])
    if match is not None and disarmed_at is not None:
        assert match.end <= disarmed_at
