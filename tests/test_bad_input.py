"""Section 5 of the contract, row by row: always a clear error, never a lost stream."""

from __future__ import annotations

import array
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest


def error(call: Any, *arguments: Any, **options: Any) -> str:
    """The type of what a call raises, with its message."""
    with pytest.raises((TypeError, ValueError)) as raised:
        call(*arguments, **options)
    return f"{type(raised.value).__name__}: {raised.value}"


def says(message: str, kind: str, *parts: str) -> None:
    assert message.startswith(f"{kind}: ")
    assert [part for part in parts if part not in message] == []


# -- stops
# -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stops", [None, [], (), "absent"])
def test_no_stops_match_nothing_and_hold_nothing(impl: ModuleType, stops: Any) -> None:
    compiled = impl.StopSet() if stops == "absent" else impl.StopSet(stops)
    assert (len(compiled), compiled.stops, compiled.unreachable) == (0, (), ())
    stream = compiled.stream()
    text = "Any text\n"
    emitted, match = stream.feed(text)
    assert (emitted, match, stream.held, stream.flush()) == (text, None, "", "")


def test_one_str_or_bytes_is_one_stop(impl: ModuleType) -> None:
    assert impl.StopSet("END").stops == ("END",)
    assert impl.StopSet(b"END").stops == (b"END",)
    assert impl.StopSet("END").truncate("E N D")[1] is None


def test_any_iterable_of_stops(impl: ModuleType) -> None:
    assert impl.StopSet(stop for stop in ("a", "b")).stops == ("a", "b")
    assert impl.StopSet({"a": 1, "b": 2}).stops == ("a", "b")


@pytest.mark.parametrize(
    ("stops", "kind", "parts"),
    [
        ([""], "ValueError", ["0"]),
        ("", "ValueError", ["0"]),
        (["a", b"b", b""], "ValueError", ["2"]),
        (["a", 5], "TypeError", ["1", "int"]),
        ([None], "TypeError", ["0", "NoneType"]),
        (["a", "b", bytearray(b"c")], "TypeError", ["2", "bytearray"]),
        (["a", ["b"]], "TypeError", ["1", "list"]),
        (["a", "b\ud800c"], "ValueError", ["1"]),
        (["\udc00"], "ValueError", ["0"]),
        (5, "TypeError", ["int"]),
    ],
)
def test_bad_stops(impl: ModuleType, stops: Any, kind: str, parts: list[str]) -> None:
    for make in (impl.StopSet, impl.compile):
        says(error(make, stops), kind, *parts)


def test_an_iterable_that_fails_fails_the_set(impl: ModuleType) -> None:
    def stops() -> Iterator[str]:
        yield "a"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        impl.StopSet(stops())


def test_limits(impl: ModuleType) -> None:
    says(error(impl.StopSet, ["a", "b", "c"], max_stops=2), "ValueError", "3", "2")
    says(error(impl.StopSet, ["aaaa", "€€"], max_bytes=9), "ValueError", "10", "9")
    assert len(impl.StopSet(["a", "b", "c"], max_stops=3)) == 3
    assert len(impl.StopSet(["aaaa", "€€"], max_bytes=10)) == 2


@pytest.mark.parametrize("name", ["max_stops", "max_bytes"])
def test_limits_that_are_none(impl: ModuleType, name: str) -> None:
    for make in (impl.StopSet, impl.compile):
        says(error(make, ["a"], **{name: -1}), "ValueError", name, "-1")
        says(error(make, ["a"], **{name: "5"}), "TypeError", name, "str")
        says(error(make, ["a"], **{name: True}), "TypeError", name, "bool")


@pytest.mark.parametrize("options", [{"tie": "last"}, {"tie": ""}])
def test_bad_options_of_a_set(impl: ModuleType, options: Any) -> None:
    says(error(impl.StopSet, ["a"], **options), "ValueError", "tie", repr(options["tie"])[1:-1])


def test_a_text_stream_of_bytes_stops(impl: ModuleType) -> None:
    compiled = impl.StopSet(["a", b"b"])
    says(error(compiled.stream), "TypeError", "1")
    says(error(compiled.truncate, "text"), "TypeError", "1")
    says(error(compiled.cut, ["text"]), "TypeError", "1")
    assert compiled.byte_stream().feed(b"xb")[0] == b"x"


# -- options of streams
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "parts"),
    [
        ({"errors": "ignore"}, "ValueError", ["errors", "ignore"]),
        ({"include_stop": ["STOP", "nope"]}, "ValueError", ["nope"]),
        ({"include_stop": "nope"}, "ValueError", ["nope"]),
        ({"include_stop": [""]}, "ValueError", []),
        ({"include_stop": 5}, "TypeError", ["include_stop", "int"]),
        ({"include_stop": ["STOP", 5]}, "TypeError", ["include_stop", "int"]),
        ({"start_inside": 5, "ignore_inside": [("a", "b")]}, "TypeError", ["start_inside", "int"]),
        ({"ignore_inside": ["ab"]}, "TypeError", ["0"]),
        ({"ignore_inside": [("a", "b"), ("c", "d", "e")]}, "TypeError", ["1"]),
        ({"ignore_inside": [("a", 5)]}, "TypeError", ["int"]),
        ({"ignore_inside": [("a", "\ud800")]}, "ValueError", []),
        ({"min_chars": -1}, "ValueError", ["-1"]),
        ({"errors": 5}, "TypeError", ["errors"]),
        ({"ignore_inside": [("", "b")]}, "ValueError", []),
        ({"ignore_inside": [("a", "")]}, "ValueError", []),
        ({"ignore_inside": [("a|", "a|")]}, "ValueError", ["a|"]),
        ({"ignore_inside": [("<a>", "</x>"), ("<b>", "</x>")]}, "ValueError", ["</x>"]),
        ({"ignore_inside": [("<a", "<a>")]}, "ValueError", ["<a", "<a>"]),
        ({"ignore_inside": [("[[", "]]"), ("x[[x", "y")]}, "ValueError", ["[[", "x[[x"]),
        ({"ignore_inside": [("STOP", "b")]}, "ValueError", ["STOP"]),
        ({"ignore_inside": [("b", "STOP")]}, "ValueError", ["STOP"]),
        ({"start_inside": True}, "ValueError", ["start_inside"]),
        ({"atomic": ["a", ""]}, "ValueError", []),
        ({"atomic": ""}, "ValueError", []),
        ({"atomic": [5]}, "TypeError", ["int"]),
        ({"min_chars": "5"}, "TypeError", []),
    ],
)
def test_bad_options_of_a_stream(
    impl: ModuleType, options: Any, kind: str, parts: list[str]
) -> None:
    compiled = impl.StopSet(["STOP"])
    says(error(compiled.stream, **options), kind, *parts)
    says(error(compiled.cut, ["text"], **options), kind, *parts)
    if "errors" not in options:
        says(error(compiled.byte_stream, **options), kind, *parts)


def test_bytes_markers_are_for_byte_streams(impl: ModuleType) -> None:
    compiled = impl.StopSet(["STOP"])
    for options in ({"atomic": [b"a"]}, {"ignore_inside": [("a", b"b")]}):
        says(error(compiled.stream, **options), "TypeError", "bytes")
        assert compiled.byte_stream(**options).feed(b"x") == (b"x", None)


def test_none_is_the_default_of_each_option(impl: ModuleType) -> None:
    compiled = impl.StopSet(["ab"], tie=None, max_stops=None, max_bytes=None)
    options = dict.fromkeys(
        ("include_stop", "errors", "min_chars", "ignore_inside", "start_inside", "atomic")
    )
    assert compiled.stream(**options).feed("xab")[0] == "x"


def test_a_byte_stream_has_no_errors_option(impl: ModuleType) -> None:
    says(error(impl.StopSet("a").byte_stream, errors="strict"), "TypeError", "errors")


def test_markers_that_touch_but_do_not_contain_each_other_are_good(impl: ModuleType) -> None:
    stream = impl.StopSet(["STOP", "<think"]).stream(
        ignore_inside=[("<think>", "</think>"), ("ab", "ba")], atomic=["STOP", "<think>", "<think>"]
    )
    assert stream.region is None


# -- chunks
# ------------------------------------------------------------------------------------------------------------


def streams(impl: ModuleType) -> list[tuple[Any, Any, Any]]:
    """Streams that hold something, with a piece of their kind, and with what is no chunk for them."""
    text = impl.StopSet(["abcd"]).stream()
    raw = impl.StopSet(["abcd"]).byte_stream()
    text.feed("xab")
    raw.feed(b"xab")
    return [
        (text, "cd!", 5),
        (text, "cd!", None),
        (text, "cd!", ["cd"]),
        (raw, b"cd!", "cd"),
        (raw, b"cd!", 5),
    ]


def test_a_chunk_of_another_type(impl: ModuleType) -> None:
    for stream, good, bad in streams(impl):
        stream = stream.copy()
        says(error(stream.feed, bad), "TypeError", type(bad).__name__)
        assert stream.held in ("ab", b"ab")
        match = stream.feed(good)[1]
        assert (match.start, match.end_chunk, match.rest) == (1, 1, good[2:])


def test_after_a_match_only_the_type_of_a_chunk_is_checked(impl: ModuleType) -> None:
    stream = impl.StopSet(["a"]).stream(errors="strict")
    _, match = stream.feed("a")
    assert stream.feed(b"\xff") == ("", match)
    assert stream.feed("\ud800") == ("", match)
    says(error(stream.feed, 5), "TypeError", "int")
    assert stream.feed_many([5]) == ("", match)
    assert (stream.flush(), stream.feed("more"), stream.match) == ("", ("", match), match)


def test_after_flush_nothing_can_be_fed(impl: ModuleType) -> None:
    stream = impl.StopSet(["ab"]).stream()
    stream.feed("xa")
    assert (stream.flush(), stream.flush(), stream.held) == ("a", "", "")
    says(error(stream.feed, "b"), "ValueError", "flush")
    says(error(stream.feed_many, ["b"]), "ValueError", "flush")
    says(error(impl.feed_batch, [stream], ["b"]), "ValueError", "flush")
    stream.reset()
    match = stream.feed("xab")[1]
    assert (match.start, match.end_chunk) == (1, 0)


def test_bytes_like_objects_are_chunks_and_are_copied(impl: ModuleType) -> None:
    for make in (
        bytes,
        bytearray,
        memoryview,
        lambda data: array.array("B", data),
        lambda data: memoryview(data)[:],
    ):
        text, raw = impl.StopSet(["END"]).stream(), impl.StopSet(["END"]).byte_stream()
        for stream, before in ((text, "x"), (raw, b"x")):
            emitted, match = stream.feed(make(b"xENDrest"))
            assert (emitted, match.rest, type(match.rest)) == (before, b"rest", bytes)
    changed = bytearray(b"xEN")
    stream = impl.StopSet(["END"]).stream()
    stream.feed(changed)
    changed[:] = b"???"
    assert stream.feed(b"D")[1].start == 1


def test_feed_many_takes_an_iterable_of_chunks(impl: ModuleType) -> None:
    stream = impl.StopSet(["ab"]).stream()
    for single in ("ab", b"ab"):
        says(error(stream.feed_many, single), "TypeError", "feed_many", type(single).__name__)
    says(error(stream.feed_many, 5), "TypeError", "int")
    assert stream.feed_many(iter(["x", b"a"])) == ("x", None)
    assert stream.feed_many(("", "b"))[1].end_chunk == 3


@pytest.mark.parametrize("bad", [5, None, b"\xff", "\udc00"])
def test_a_bad_chunk_inside_a_block_changes_nothing(impl: ModuleType, bad: Any) -> None:
    stream = impl.StopSet(["abc"]).stream(errors="strict")
    stream.feed("xa")
    with pytest.raises((TypeError, UnicodeError)):
        stream.feed_many(["b", "x", bad, "c"])
    assert stream.held == "a"
    with pytest.raises(ZeroDivisionError):
        stream.feed_many(chunk if chunk else 1 / 0 for chunk in ["b", "x", ""])
    assert stream.held == "a"
    emitted, match = stream.feed_many(["b", "c", bad])
    assert (emitted, match.start, match.start_chunk, match.end_chunk) == ("", 1, 0, 2)


def test_a_block_is_not_looked_at_behind_the_end(impl: ModuleType) -> None:
    def chunks() -> Iterator[Any]:
        yield "a."
        raise AssertionError("looked at")

    assert impl.StopSet(["."]).stream().feed_many(chunks())[0] == "a"


def test_a_bad_chunk_inside_a_batch_changes_no_stream(impl: ModuleType) -> None:
    compiled = impl.StopSet(["ab"])
    streams = [compiled.stream(errors="strict") for _ in range(3)]
    for bad in (5, b"\xff", "\udc00"):
        with pytest.raises((TypeError, UnicodeError)):
            impl.feed_batch(streams, ["a", "xab", bad])
        assert [(stream.held, stream.match) for stream in streams] == [("", None)] * 3
    emits, ended = impl.feed_batch(streams, ["xa", "ab", ""])
    assert (emits, [(at, match.start, match.end_chunk) for at, match in ended]) == (
        ["x", "", ""],
        [(1, 0, 0)],
    )
    emits, ended = impl.feed_batch(streams, ["b", "ab", "x"])
    assert (emits, [at for at, _ in ended]) == (["", "", "x"], [0, 1])


def test_a_batch_of_other_things(impl: ModuleType) -> None:
    stream = impl.StopSet(["ab"]).stream()
    says(error(impl.feed_batch, [stream, stream.copy()], ["a"]), "ValueError", "2", "1")
    says(error(impl.feed_batch, [stream, "stream"], ["a", "b"]), "TypeError", "str")
    assert (stream.held, impl.feed_batch([], [])) == ("", ([], []))


def test_strict_faults_leave_the_stream_as_it_was(impl: ModuleType) -> None:
    stream = impl.StopSet(["abc"]).stream(errors="strict")
    stream.feed(b"xab\xe2")
    for fault in (b"x", "", "c"):
        with pytest.raises(UnicodeDecodeError):
            stream.feed(fault)
    with pytest.raises(UnicodeDecodeError):
        stream.flush()
    assert stream.held == "ab"
    assert stream.feed(b"\x82\xac") == ("ab€", None)
    stream.feed("\ud83d")
    for fault in (b"", "x", "\ud83d"):
        with pytest.raises(UnicodeEncodeError):
            stream.feed(fault)
    with pytest.raises(UnicodeEncodeError):
        stream.flush()
    assert stream.feed("\ude00abc")[0] == "😀"
    assert (stream.match.start, stream.match.end_chunk) == (5, 3)


def test_a_stream_in_use_by_another_thread(impl: ModuleType) -> None:
    """A race that cannot be lost: the block of `feed_many` is an iterator that waits, so the stream
    stays in use.

    `test_threads.py` looks for the races that can.
    """
    stream = impl.StopSet(["ab"]).stream()
    inside, outside = threading.Event(), threading.Event()

    def chunks() -> Iterator[str]:
        yield "xa"
        inside.set()
        assert outside.wait(30)

    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(stream.feed_many(chunks())))
    thread.start()
    assert inside.wait(30)
    try:
        with pytest.raises(RuntimeError, match="another thread"):
            stream.feed("b")
    finally:
        outside.set()
        thread.join(30)
    assert (results, stream.held) == ([("x", None)], "a")
    assert stream.feed("b")[1].start == 1


# -- what comes out
# ----------------------------------------------------------------------------------------------------


def test_a_match_is_a_value(impl: ModuleType) -> None:
    first, again = (impl.StopSet(["b"]).truncate("abc")[1] for _ in range(2))
    other = impl.StopSet(["b"]).truncate("abd")[1]
    assert (first == again, hash(first) == hash(again), first != other, first == "b") == (
        True,
        True,
        True,
        False,
    )
    assert {first, again, other} == {first, other}
    for name in ("stop", "start", "rest", "index"):
        with pytest.raises(AttributeError):
            setattr(first, name, None)
    for part in ("b", "index=0", "start=1", "rest='c'"):
        assert part in repr(first)


def test_sets_are_values(impl: ModuleType) -> None:
    first = impl.StopSet(["a", "b"])
    assert first == impl.StopSet(("a", "b"))
    assert hash(first) == hash(impl.StopSet(iter(["a", "b"])))
    for other in (
        impl.StopSet(["b", "a"]),
        impl.StopSet(["a", "b"], tie="first"),
        impl.StopSet(["a", "b", "b"]),
        5,
    ):
        assert first != other
    assert ("a" in first, b"a" in first, "ab" in first, 5 in first) == (True, True, False, False)
    assert list(first) == ["a", "b"]
    with pytest.raises(AttributeError):
        first.stops = ("c",)
    assert "'a'" in repr(first)


def test_a_scope_that_is_known_is_checked_again(impl: ModuleType) -> None:
    """`start_inside` is no part of what a compiled scope is found by."""
    stops = impl.StopSet(["END"])
    stops.stream(atomic=["q"])
    with pytest.raises(ValueError, match="start_inside"):
        stops.stream(atomic=["q"], start_inside=True)
