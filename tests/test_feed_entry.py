"""The hand-written entry of `feed` against the generated method, which takes the slow way for every
chunk.

Under the stable ABI there is one way only, and nothing to compare.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdback

pytestmark = pytest.mark.skipif(
    not hasattr(holdback.StopStream, "_feed_generated"),
    reason="this build has the generated method only",
)

# Every storage CPython has for text, at its borders, and halves of surrogate pairs.
LETTERS = "ab\n\x7f\x80\xff\u0100\u8a9e\ud7ff\ud83d\ude00\uffff\U00010000\U0001f600"
words = st.text(alphabet=LETTERS, min_size=1, max_size=4)
stop_lists = st.lists(
    words.filter(lambda word: not any("\ud800" <= c <= "\udfff" for c in word)), max_size=5
)
chunks = st.lists(
    st.text(alphabet=LETTERS, max_size=6) | st.binary(max_size=4) | st.none(), max_size=12
)


def outcome(call: Any, chunk: Any) -> Any:
    try:
        return call(chunk)
    except (TypeError, ValueError) as error:
        return type(error), str(error)


@given(
    stop_lists,
    chunks,
    st.sampled_from(["replace", "strict"]),
    st.sampled_from([None, [("ab", "\n")]]),
)
def test_both_ways_give_the_same(
    stops: list[str], pieces: list[Any], errors: Any, regions: Any
) -> None:
    try:
        fast = holdback.StopSet(stops).stream(errors=errors, ignore_inside=regions)
    except ValueError:
        return  # a marker that is a stop too
    slow = fast.copy()
    for piece in pieces:
        got, wanted = outcome(fast.feed, piece), outcome(slow._feed_generated, piece)  # type: ignore[attr-defined]
        assert got == wanted
        assert fast.held == slow.held
        if (
            isinstance(got[0], str) and got[0] is not piece
        ):  # a str that was used may carry its UTF-8 too
            # A str in a wider form than its characters need would compare unequal to the same text.
            assert sys.getsizeof(got[0]) == sys.getsizeof("".join(list(got[0])))
            assert hash(got[0]) == hash("".join(list(got[0])))


@pytest.mark.parametrize("text", ["plain", "\xe9t\xe9", "\u8a9e\u5f59", "\U0001f600!"])
def test_text_that_needs_no_cut_is_the_very_object(text: str) -> None:
    stream = holdback.StopSet(["</s>", "\n\n"]).stream()
    emit, match = stream.feed(text)
    assert emit is text
    assert match is None


def test_no_reference_is_lost_or_kept() -> None:
    stream = holdback.StopSet(["END"]).stream()
    number = len(sys.argv)  # not constants, which some versions never count
    chunk, held = f"some text {number}", f"{number} E"
    before = sys.getrefcount(chunk), sys.getrefcount(held), sys.getrefcount(None)
    for _ in range(10_000):
        stream.feed(chunk)
        stream.feed(held)
    after = sys.getrefcount(chunk), sys.getrefcount(held), sys.getrefcount(None)
    # None belongs to everybody, so its count may move a little by itself.
    assert after[:2] == before[:2]
    assert abs(after[2] - before[2]) < 1000


def test_it_reads_like_a_method() -> None:
    import inspect

    assert str(inspect.signature(holdback.StopStream.feed)) == "(self, chunk, /)"
    with pytest.raises(TypeError, match="StopStream"):
        holdback.StopStream.feed(object(), "text")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        holdback.StopSet().stream().feed()  # type: ignore[call-arg]
