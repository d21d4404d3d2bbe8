"""What the contract promises, as properties of both implementations, and naive oracles that know
none of their machinery.

The oracles look at a whole text at once, so they cover what does not depend on calls between
chunks: sections 1, 2, 3, 7 (but `arm()` and `disarm()`), 8 and 9. The properties cover the rest.
"""

from __future__ import annotations

import codecs
import itertools
from types import ModuleType
from typing import Any

import pytest
from corpus import Call
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import ALPHABETS, TROUBLE, cuttings, pieces, scopes, stop_lists, texts

TIES = ("longest", "first")
CALLS = st.sampled_from([Call("arm"), Call("disarm")])

# -- oracles
# -----------------------------------------------------------------------------------------------------------


def first_match(
    text: str, stops: list[str], tie: str, min_chars: int = 0
) -> tuple[int, int] | None:
    """Section 1 (and 7, for streams that arm by themselves): index and start of the match in a
    whole text.
    """
    for end in range(min_chars + 1, len(text) + 1):
        ending = [index for index, stop in enumerate(stops) if text[:end].endswith(stop)]
        if ending:
            order = {
                "longest": lambda index: (-len(stops[index]), index),
                "first": lambda index: index,
            }[tie]
            index = min(ending, key=order)
            return index, end - len(stops[index])
    return None


def held(text: str, stops: list[str], unreachable: tuple[int, ...]) -> str:
    """Section 2: the longest suffix that is a proper prefix of a reachable stop."""
    prefixes = {
        stop[:length]
        for index, stop in enumerate(stops)
        if index not in unreachable
        for length in range(1, len(stop))
    }
    return max(
        (text[start:] for start in range(len(text)) if text[start:] in prefixes),
        key=len,
        default="",
    )


def never_the_match(stops: list[str], tie: str) -> tuple[int, ...]:
    """Section 1: a stop that is not the match of the text that it is itself, is not the match of
    any.
    """
    return tuple(
        index for index, stop in enumerate(stops) if first_match(stop, stops, tie) != (index, 0)
    )


def awake_parts(
    text: str, regions: list[tuple[str, str]], *, asleep: bool
) -> list[tuple[int, str]]:
    """Section 8, if no stop ends with an opener: the parts in which stops are looked for, with
    their offsets.
    """
    parts = []
    at = 0
    closer = regions[0][1]
    while True:
        if asleep:
            found = text.find(closer, at)
            if found < 0:
                return parts
            at = found + len(closer)
        openers = [
            (text.find(opener, at) + len(opener), closer)
            for opener, closer in regions
            if opener in text[at:]
        ]
        if not openers:
            return [*parts, (at, text[at:])]
        end, closer = min(openers)
        parts.append((at, text[at:end]))
        at, asleep = end, True


def occurrences(text: str, markers: list[str]) -> list[tuple[int, int]]:
    """Section 9: where the markers are, that are never cut in two."""
    found: list[tuple[int, int]] = []
    for end in range(1, len(text) + 1):
        behind = found[-1][1] if found else 0
        ending = [marker for marker in markers if text[behind:end].endswith(marker)]
        if ending:
            found.append((end - max(map(len, ending)), end))
    return found


LETTERS = st.sampled_from(
    [alphabet for alphabet in ALPHABETS if not any("\ud800" <= c <= "\udfff" for c in alphabet)]
)


@st.composite
def stops_and_text(draw: st.DrawFn) -> tuple[list[str], str]:
    letters = draw(LETTERS)
    stops = draw(stop_lists(letters))
    return stops, draw(texts(pieces(letters, stops, {}), max_pieces=10))


@given(stops_and_text(), st.sampled_from(TIES), st.integers(0, 6), st.data())
def test_the_match_is_that_of_the_whole_text(
    impl: ModuleType, case: tuple[list[str], str], tie: str, min_chars: int, data: st.DataObject
) -> None:
    stops, text = case
    expected = first_match(text, stops, tie, min_chars)
    stream = impl.StopSet(stops, tie=tie).stream(min_chars=min_chars)
    emitted = "".join(stream.feed(chunk)[0] for chunk in data.draw(cuttings(text))) + stream.flush()
    match = stream.match and (stream.match.index, stream.match.start)
    assert (emitted, match) == (text if expected is None else text[: expected[1]], expected)


@given(stops_and_text(), st.sampled_from(TIES))
def test_hold_back_is_that_of_the_whole_text(
    impl: ModuleType, case: tuple[list[str], str], tie: str
) -> None:
    stops, text = case
    compiled = impl.StopSet(stops, tie=tie)
    assert compiled.unreachable == never_the_match(stops, tie)
    stream = compiled.stream()
    for end, letter in enumerate(text, 1):
        _, match = stream.feed(letter)
        assert stream.held == ("" if match else held(text[:end], stops, compiled.unreachable))


@pytest.mark.parametrize("tie", TIES)
def test_every_small_set_on_every_small_text(tie: str) -> None:
    """The reference alone (Rust tests do the same, larger, for the core): the ground that it stands
    on is searched whole.
    """
    from holdback import reference

    words = [
        "".join(word) for length in (1, 2, 3) for word in itertools.product("ab", repeat=length)
    ]
    texts = ["".join(text) for text in itertools.product("ab", repeat=5)]
    count = 0
    for stops in itertools.chain(
        [[]], ([word] for word in words), itertools.permutations(words, 2)
    ):
        stops = list(stops)
        compiled = reference.StopSet(stops, tie=tie)
        assert compiled.unreachable == never_the_match(stops, tie)
        for text in texts:
            stream = compiled.stream()
            for end, letter in enumerate(text, 1):
                _, match = stream.feed(letter)
                if match:
                    assert (match.index, match.start) == first_match(text[:end], stops, tie)
                    break
                assert first_match(text[:end], stops, tie) is None
                assert stream.held == held(text[:end], stops, compiled.unreachable)
            count += 1
    assert count == (1 + 14 + 14 * 13) * 32


@given(st.data())
def test_regions_are_what_lies_between_the_markers(impl: ModuleType, data: st.DataObject) -> None:
    """Stops are looked for in each part between markers by itself."""
    regions = data.draw(
        st.sampled_from(
            [[("[", "]")], [("<a>", "</a>")], [("<<", ">>"), ("[a", "a]")], [("ab", "ba")]]
        )
    )
    markers = [marker for pair in regions for marker in pair]
    stops = data.draw(stop_lists("a<x"))
    assume(not any(marker in stop or stop in marker for stop in stops for marker in markers))
    text = data.draw(texts(pieces("ax", stops, {"ignore_inside": regions}), max_pieces=10))
    asleep = data.draw(st.booleans())
    expected = None
    for at, part in awake_parts(text, regions, asleep=asleep):
        found = first_match(part, stops, "longest")
        if found:
            expected = found[0], at + found[1]
            break
    stream = impl.StopSet(stops).stream(ignore_inside=regions, start_inside=asleep)
    emitted = play(stream, data.draw(cuttings(text))) + stream.flush()
    assert (stream.match and (stream.match.index, stream.match.start)) == expected
    assert emitted == (text if expected is None else text[: expected[1]])


@given(st.data())
def test_bytes_are_decoded_as_python_does(impl: ModuleType, data: st.DataObject) -> None:
    text = "".join(
        data.draw(st.lists(st.sampled_from(["a", "é", "€", "😀", "\ufffd"]), max_size=4))
    )
    raw = text.encode() + b"".join(
        data.draw(st.lists(st.sampled_from([*TROUBLE, b"a", b"\xe2\x82\xac"]), max_size=5))
    )
    at = data.draw(st.integers(0, len(raw)))
    raw = raw[at:] + raw[:at]
    stream = impl.StopSet().stream()
    emitted = "".join(stream.feed(chunk)[0] for chunk in data.draw(cuttings(raw))) + stream.flush()
    assert emitted == raw.decode("utf-8", "replace")
    assert emitted == codecs.getincrementaldecoder("utf-8")("replace").decode(raw, True)


@given(st.text("a😀\ud83d\ude00\udfff", max_size=8), st.data())
def test_surrogates_are_joined_or_replaced(
    impl: ModuleType, text: str, data: st.DataObject
) -> None:
    stream = impl.StopSet().stream()
    emitted = "".join(stream.feed(chunk)[0] for chunk in data.draw(cuttings(text))) + stream.flush()
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert emitted == "".join(
        "\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in joined
    )
    assert emitted.encode().decode() == emitted


@given(st.data())
def test_a_character_belongs_to_the_chunk_that_completed_it(
    impl: ModuleType, data: st.DataObject
) -> None:
    """As many characters are there after a chunk as the chunks so far decode to."""
    raw = "".join(data.draw(st.lists(st.sampled_from("aé€😀"), max_size=6))).encode()
    raw += data.draw(st.sampled_from([b"", b"\xff", b"\xe2\x82"])) + b"aa"
    chunks = data.draw(cuttings(raw))
    count = [
        len(codecs.getincrementaldecoder("utf-8")("replace").decode(b"".join(chunks[:end])))
        for end in range(len(chunks) + 1)
    ]
    text = raw.decode("utf-8", "replace")
    stop = data.draw(
        st.sampled_from(
            [
                text[start:end]
                for start in range(len(text))
                for end in range(start + 1, len(text) + 1)
            ]
        )
    )
    stream = impl.StopSet([stop]).stream()
    for chunk in chunks:
        stream.feed(chunk)
    match = stream.match
    owner = [
        next(chunk for chunk in range(len(chunks)) if count[chunk + 1] > at)
        for at in range(len(text))
    ]
    assert (match.start_chunk, match.end_chunk) == (owner[match.start], owner[match.end - 1])
    assert chunks[match.end_chunk].endswith(match.rest)
    assert (match.rest + b"".join(chunks[match.end_chunk + 1 :])).decode(
        "utf-8", "replace"
    ) == text[match.end :]


# -- properties
# --------------------------------------------------------------------------------------------------------


@st.composite
def scoped_streams(draw: st.DrawFn) -> tuple[list[str], dict[str, Any], list[Any]]:
    """Stops, options, and a text in pieces with calls of `arm` and `disarm` between them."""
    letters = draw(LETTERS)
    stops = draw(stop_lists(letters))
    options = draw(scopes(letters, stops))
    options["include_stop"] = (
        draw(st.booleans() | st.lists(st.sampled_from(stops or ["?"]), max_size=2))
        if stops
        else False
    )
    parts = pieces(letters, stops, options)
    steps: list[Any] = []
    for _ in range(draw(st.integers(1, 4))):
        steps += draw(st.lists(CALLS, max_size=2))
        steps.append(draw(texts(parts, max_pieces=4)))
    return stops, options, steps


def opened(
    impl: ModuleType, stops: list[str], options: dict[str, Any], tie: str = "longest"
) -> Any:
    """A stream, if the options are good (that both sides agree which are is tested elsewhere)."""
    compiled = impl.StopSet(stops, tie=tie)
    try:
        return compiled.stream(**options)
    except ValueError:
        assume(False)


def play(stream: Any, steps: list[Any]) -> str:
    emitted = ""
    for step in steps:
        if isinstance(step, Call):
            getattr(stream, step.name)()
        else:
            emitted += stream.feed(step)[0]
    return emitted


def letters_of(steps: list[Any]) -> list[Any]:
    return [letter for step in steps for letter in ([step] if isinstance(step, Call) else step)]


def where(stream: Any) -> Any:
    match = stream.match
    return match and (match.stop, match.index, match.start, match.end)


@given(scoped_streams(), st.sampled_from(TIES), st.data())
def test_chunks_do_not_matter(impl: ModuleType, case: Any, tie: str, data: st.DataObject) -> None:
    stops, options, steps = case
    whole = opened(impl, stops, options, tie)
    emitted = play(whole, steps) + whole.flush()
    cut = [
        chunk
        for step in steps
        for chunk in ([step] if isinstance(step, Call) else data.draw(cuttings(step)))
    ]
    in_bytes = [
        chunk
        for step in steps
        for chunk in ([step] if isinstance(step, Call) else data.draw(cuttings(step.encode())))
    ]
    for other_steps in (cut, letters_of(steps), in_bytes):
        other = opened(impl, stops, options, tie)
        assert (play(other, other_steps) + other.flush(), where(other)) == (emitted, where(whole))


@given(scoped_streams(), st.sampled_from(TIES))
def test_nothing_is_lost_or_sent_twice(impl: ModuleType, case: Any, tie: str) -> None:
    stops, options, steps = case
    stream = opened(impl, stops, options, tie)
    text = emitted = ""
    for step in letters_of(steps):
        if isinstance(step, Call):
            getattr(stream, step.name)()
        else:
            text += step
            emitted += stream.feed(step)[0]
        if stream.match:
            break
        assert emitted + stream.held == text
    match = stream.match
    if match is None:
        assert emitted + stream.flush() == text
        return
    assert text[match.start : match.end] == match.stop == stops[match.index]
    included = options["include_stop"] is True or (
        options["include_stop"] and match.stop in options["include_stop"]
    )
    assert emitted == text[: match.end if included else match.start]
    assert (stream.feed("more"), stream.flush(), stream.held) == (("", match), "", "")


@given(scoped_streams(), st.sampled_from(TIES))
def test_hold_back_is_exact(impl: ModuleType, case: Any, tie: str) -> None:
    """Whatever is held, some continuation cuts into it at its first character.

    That nothing emitted is ever cut into, whatever comes, is the test above.
    """
    stops, options, steps = case
    options = {key: value for key, value in options.items() if key != "atomic"}
    stream = opened(impl, stops, options, tie)
    by_hand = False
    emitted = 0
    for step in letters_of(steps):
        if isinstance(step, Call):
            getattr(stream, step.name)()
            by_hand = step.name == "disarm"
            continue
        emitted += len(stream.feed(step)[0])
        if stream.match:
            return
        if stream.held:
            assert stream.region is None
            assert any(cuts_into(stream, stop, emitted, by_hand) for stop in stops)


def cuts_into(stream: Any, stop: str, start: int, disarmed_by_hand: bool) -> bool:
    """Is `stop`, begun by all that is held, the match when the rest of it comes?

    A stream that is disarmed by hand may be armed in front of any character of the rest.
    """
    if not stop.startswith(stream.held) or stop == stream.held:
        return False
    missing = stop[len(stream.held) :]
    for moment in range(len(missing)) if disarmed_by_hand else [None]:
        future = stream.copy()
        for position, letter in enumerate(missing):
            if position == moment:
                future.arm()
            future.feed(letter)
        if future.match and future.match.stop == stop and future.match.start == start:
            return True
    return False


@given(scoped_streams(), st.sampled_from(TIES))
def test_atomic_changes_only_the_delivery(impl: ModuleType, case: Any, tie: str) -> None:
    stops, options, steps = case
    assume("atomic" in options)
    with_it = opened(impl, stops, options, tie)
    without = opened(
        impl, stops, {key: value for key, value in options.items() if key != "atomic"}, tie
    )
    markers = options["atomic"]
    if markers == "regions":
        markers = [marker for pair in options["ignore_inside"] for marker in pair]
    text, late, early = "", "", ""
    for step in letters_of(steps):
        late, early = late + play(with_it, [step]), early + play(without, [step])
        assert early.startswith(late)
        assert where(with_it) == where(without)
        text += "" if isinstance(step, Call) else step
        if with_it.match:
            break
        assert with_it.held.endswith(without.held)
        # No marker is cut in two, whether it is complete or not.
        for start, end in occurrences(text, markers):
            assert not start < len(late) < end
        behind = max((end for _, end in occurrences(text, markers)), default=0)
        may_come = [
            marker for marker in markers if not any(other in marker[:-1] for other in markers)
        ]
        for start in range(behind, len(late)):
            assert not any(
                marker.startswith(text[start:]) and marker != text[start:] for marker in may_come
            )
    assert late + with_it.flush() == early + without.flush()


@given(scoped_streams(), st.data())
def test_copies_go_their_own_ways(impl: ModuleType, case: Any, data: st.DataObject) -> None:
    """A copy, taken anywhere, goes on like the stream; and what is fed to one of them changes
    nothing in the other.
    """
    stops, options, steps = case
    steps = letters_of(steps)
    at = data.draw(st.integers(0, len(steps)))
    stream = opened(impl, stops, options)
    first = play(stream, steps[:at])
    copy = stream.copy()
    play(copy, [Call("disarm"), *data.draw(st.permutations(steps))])
    copy.flush()
    twin = stream.copy()
    assert (
        first + play(twin, steps[at:]) + twin.flush()
        == first + play(stream, steps[at:]) + stream.flush()
    )
    straight = opened(impl, stops, options)
    assert play(straight, steps) + straight.flush() == first + play_again(
        impl, stops, options, steps, at
    )
    assert where(straight) == where(stream) == where(twin)


def play_again(
    impl: ModuleType, stops: list[str], options: dict[str, Any], steps: list[Any], at: int
) -> str:
    """What a stream gives behind step `at`, also after it was used for something else and reset."""
    stream = opened(impl, stops, options)
    play(stream, steps[at:])
    stream.reset()
    play(stream, steps[:at])
    return play(stream, steps[at:]) + stream.flush()
