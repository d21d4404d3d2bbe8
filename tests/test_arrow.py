"""Columns in Arrow memory through the PyCapsule interface: the same as the texts one by one, and
nothing read that is not there.

Producer and consumer are ctypes (`arrow_c`). Beside the real packages the same is tested in
`tests/integrations`."""

from __future__ import annotations

import ctypes
import functools
import gc
import re
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from arrow_c import (
    FORMATS,
    ArrayColumn,
    Piece,
    Producer,
    Stream,
    StreamColumn,
    Taken,
    new_capsule,
    piece,
    rows_of,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import ALPHABETS, is_text, pieces, scopes, stop_lists, texts

from holdback import StopSet
from holdback._core import ArrowStrings

STOPS = StopSet(["###", "。終", "STOP"])
ROWS = ["a###b", None, "", "日本。終わり", "no stop, but a long text", None, "cST", "STOP" * 9]
KEPT = ["a", None, "", "日本", "no stop, but a long text", None, "cST", ""]
LONG = 16 << 10  # bytes from which the column is read without the GIL, and of a piece of a long row


def column_of(rows: list[Any], kind: str, cuts: list[int] | None = None, **layout: Any) -> Producer:
    """The rows as one array, or as the arrays that `cuts` make of them."""
    if cuts is None:
        return ArrayColumn([piece(rows, kind, **layout)], kind)
    ends = sorted(min(cut, len(rows)) for cut in cuts)
    parts = [rows[start:end] for start, end in zip([0, *ends], [*ends, len(rows)], strict=True)]
    return StreamColumn([piece(part, kind, **layout) for part in parts], kind)


def one_by_one(
    stops: StopSet, rows: list[str | None], options: dict[str, Any]
) -> tuple[list[Any], list[Any]]:
    pairs = [(None, None) if row is None else stops.truncate(row, **options) for row in rows]
    return [text for text, _ in pairs], [match for _, match in pairs]


def contradiction(stops: StopSet, options: dict[str, Any]) -> str | None:
    """What is wrong with these options for this set."""
    try:
        stops.stream(**options)
    except ValueError as error:
        return str(error)
    return None


@st.composite
def problems(draw: st.DrawFn) -> tuple[StopSet, list[str | None], dict[str, Any]]:
    letters = "".join(filter(is_text, draw(st.sampled_from(ALPHABETS)))) or "a"
    stops = draw(stop_lists(letters))
    options = draw(scopes(letters, stops))
    parts = pieces(letters, stops, options)
    options.pop("atomic", None)
    if stops:
        options["include_stop"] = draw(st.booleans() | st.lists(st.sampled_from(stops), max_size=2))
    rows = draw(st.lists(st.none() | texts(parts), max_size=20))
    return StopSet(stops, tie=draw(st.sampled_from(["longest", "first"]))), rows, options


@given(
    problem=problems(),
    kind=st.sampled_from(FORMATS),
    cuts=st.none() | st.lists(st.integers(0, 20), max_size=3),
    before=st.integers(0, 9),
    tell_nulls=st.booleans(),
)
def test_a_column_is_its_texts_one_by_one(
    problem: Any, kind: str, cuts: list[int] | None, before: int, tell_nulls: bool
) -> None:
    stops, rows, options = problem
    column = column_of(rows, kind, cuts, before=before, tell_nulls=tell_nulls)
    wrong = contradiction(stops, options)
    if wrong:
        with pytest.raises(ValueError, match=re.escape(wrong)):
            stops.truncate_many(column, **options)
    else:
        kept, matches = stops.truncate_many(column, **options)
        assert (rows_of(kept), matches) == one_by_one(stops, rows, options)
        assert len(kept) == len(rows)
    assert column.all_released_once


@pytest.mark.parametrize(
    "options", [{}, {"include_stop": True}, {"include_stop": ["STOP"]}, {"min_chars": 3}]
)
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("letter", ["a", "é", "日", "😀"])
@pytest.mark.parametrize("beside", range(-5, 3))
def test_long_rows_are_one_chunk_wherever_the_stop_stands(
    letter: str, kind: str, beside: int, options: dict[str, Any]
) -> None:
    """Inside, such a row is read in pieces; the stop lies across the end of one, or beside it."""
    filling = letter * ((LONG + beside) // len(letter.encode()))
    rows: list[str | None] = [
        filling + "STOP" + "日" * 9,
        filling * 2 + "S",
        None,
        "TOP" + filling + "ST" + filling,
    ]
    ours, matches = STOPS.truncate_many(column_of(rows, kind, before=1), **options)
    assert (rows_of(ours), matches) == one_by_one(STOPS, rows, options)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("count", [LONG - 1, LONG, 3 * LONG])
def test_long_columns_are_read_without_the_gil(kind: str, count: int) -> None:
    rows = (ROWS * (count // len(ROWS) + 1))[:count]
    kept = (KEPT * (count // len(ROWS) + 1))[:count]
    ours, matches = STOPS.truncate_many(column_of(rows, kind, cuts=[count // 3]))
    assert rows_of(ours) == kept
    assert [match is not None for match in matches] == [
        a != b for a, b in zip(rows, kept, strict=True)
    ]


@pytest.mark.parametrize("kind", FORMATS)
def test_an_empty_column(kind: str) -> None:
    for column in (
        column_of([], kind),
        column_of([], kind, cuts=[]),
        StreamColumn([], kind),
        ArrayColumn([Piece(0, [None, None, None])], kind),  # without rows, no buffer is needed
        ArrayColumn([Piece(0, [None, None, None], offset=5, null_count=-1)], kind),
    ):
        kept, matches = STOPS.truncate_many(column)
        assert (rows_of(kept), matches, len(kept)) == ([], [], 0)
        assert column.all_released_once


def test_the_column_outlives_all_that_it_was_made_from() -> None:
    stops = StopSet(["###", "。終", "STOP"])
    source = column_of(ROWS, "vu", before=2)
    kept, matches = stops.truncate_many(source)
    released = source.all_released_once  # and overwritten
    del source, stops
    gc.collect()
    assert released
    assert rows_of(kept) == KEPT
    assert matches[0].rest == "b"
    taken = Taken(kept)
    del kept
    gc.collect()
    assert taken.read() == KEPT
    taken.release()


def test_any_number_of_consumers_share_one_memory() -> None:
    kept, _ = STOPS.truncate_many(column_of(ROWS, "u"))
    first, second = Taken(kept), Taken(kept)
    assert first.array.buffers[2] == second.array.buffers[2]
    first.release()
    assert second.read() == KEPT
    second.release()
    kept.__arrow_c_array__()  # capsules that nobody takes from release what they hold
    kept.__arrow_c_schema__()
    assert rows_of(kept) == KEPT


@pytest.mark.parametrize("asked", ["u", "U", "vu", "i", "+s", ""])
def test_a_type_may_be_asked_for(asked: str) -> None:
    kept, _ = STOPS.truncate_many(column_of(ROWS, "U"))
    other = column_of(ROWS, asked if asked in FORMATS else "u")
    other.format = asked
    schema, _ = other.__arrow_c_array__()
    taken = Taken(kept, schema)
    assert taken.format == ("u" if asked == "u" else "U")
    del kept
    gc.collect()
    assert taken.read() == KEPT
    taken.release()
    assert other.releases == {0: 1}


def test_what_is_asked_for_must_be_a_type() -> None:
    kept, _ = STOPS.truncate_many(column_of(ROWS, "U"))
    with pytest.raises(TypeError, match="named arrow_schema is needed, not int"):
        kept.__arrow_c_array__(5)


def test_a_column_goes_in_again() -> None:
    kept, _ = STOPS.truncate_many(column_of(ROWS, "u"), include_stop=True)
    again, matches = STOPS.truncate_many(kept)
    assert rows_of(again) == KEPT
    assert [match is not None for match in matches] == [
        row not in (None, short) for row, short in zip(ROWS, KEPT, strict=True)
    ]


def test_how_it_shows() -> None:
    kept, _ = STOPS.truncate_many(column_of(ROWS, "u"))
    assert isinstance(kept, ArrowStrings)
    assert repr(kept) == "<ArrowStrings: 8 rows, 2 null>"
    with pytest.raises(TypeError):
        ArrowStrings()  # type: ignore[call-arg]  # that it cannot be made is what is tested


def test_a_list_stays_a_list() -> None:
    class Texts(list):  # type: ignore[type-arg]  # of whatever: a list that is not exactly one
        pass

    for many in (["a###b"], ("a###b",), iter(["a###b"]), Texts(["a###b"])):
        assert STOPS.truncate_many(many)[0] == ["a"]


def test_many_threads_may_cut_one_column() -> None:
    source, _ = StopSet(None).truncate_many(column_of(ROWS * 5000, "u"))
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda: results.append(rows_of(STOPS.truncate_many(source)[0])))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [KEPT * 5000] * 4


# --- what is wrong with a column
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("i", "'i'"),
        ("z", "'z'"),
        ("vz", "'vz'"),
        ("+s", "a struct: pass one column"),
        ("", "''"),
        ("é" * 99, "é'"),
    ],
)
def test_another_type_is_named(kind: str, told: str) -> None:
    for column in (column_of(ROWS, "u"), column_of(ROWS, "u", cuts=[2])):
        column.format = kind
        with pytest.raises(TypeError, match="Arrow column of strings") as raised:
            STOPS.truncate_many(column)
        assert told in str(raised.value)
        assert len(str(raised.value)) < 160
        assert column.all_released_once


def test_a_dictionary_is_not_read_as_its_indices() -> None:
    column = column_of(ROWS, "u")
    column.dictionary = True
    with pytest.raises(TypeError, match="with a dictionary"):
        STOPS.truncate_many(column)
    assert column.all_released_once


def ends(*numbers: int, letter: str = "i") -> bytes:
    return struct.pack(f"={len(numbers)}{letter}", *numbers)


def view(length: int, buffer: int = 0, offset: int = 0) -> bytes:
    return struct.pack("=i4sii", length, b"text", buffer, offset)


HUGE = 2**63 - 1
CORRUPT = {
    "negative length": ("u", Piece(-1, [None, ends(0), b""]), "its length is -1"),
    "negative offset": ("u", Piece(1, [None, ends(0, 1), b"a"], offset=-1), "its offset -1"),
    "length beyond memory": ("U", Piece(HUGE, [None, ends(0), b""]), "its length is"),
    "offset beyond memory": ("vu", Piece(1, [None, view(1), b""], offset=HUGE), "its offset"),
    "length and offset beyond memory": ("u", Piece(2**58, [None, ends(0), b""], offset=2**58 + 2**57), "its length is"),
    "null count": ("u", Piece(1, [None, ends(0, 1), b"a"], null_count=-2), "null count is -2"),
    "more nulls than rows": ("u", Piece(1, [b"\0", ends(0, 1), b"a"], null_count=2), "null count is 2"),
    "nulls nowhere": ("u", Piece(1, [None, ends(0, 1), b"a"], null_count=1), "1 nulls and no buffer"),
    "children": ("u", Piece(1, [None, ends(0, 1), b"a"], n_children=1), "no children"),
    "dictionary": ("u", Piece(1, [None, ends(0, 1), b"a"], dictionary=True), "no dictionary"),
    "no buffers at all": ("u", Piece(1, [None, ends(0, 1), b"a"], no_buffers=True), "it has 3 buffers"),
    "two buffers": ("u", Piece(1, [None, ends(0, 1)]), "it has 2 buffers"),
    "four buffers": ("U", Piece(1, [None, ends(0, 1), b"a", b""]), "it has 4 buffers"),
    "fewer than no buffers": ("vu", Piece(1, [None, view(1), b""], n_buffers=-1), "it has -1 buffers"),
    "more buffers than an index can say": ("vu", Piece(1, [None, view(1), b""], n_buffers=HUGE), "buffers"),
    "no offsets": ("u", Piece(1, [None, None, b"a"]), "no offsets"),
    "no data": ("u", Piece(1, [None, ends(0, 1), None]), "no data"),
    "negative last offset": ("u", Piece(1, [None, ends(0, -1), b"a"]), "its last offset is -1"),
    "last offset beyond memory": ("U", Piece(1, [None, ends(0, -(2**63), letter="q"), b"a"]), "its last offset is"),
    "negative first offset": ("u", Piece(1, [None, ends(-1, 1), b"a"]), "row 0: it goes from -1 to 1"),
    "offsets that go back": ("u", Piece(2, [None, ends(0, 3, 1), b"abc"]), "row 0: it goes from 0 to 3"),
    "offsets that go back inside": ("U", Piece(3, [None, ends(0, 3, 1, 4, letter="q"), b"abcd"]), "row 1: it goes from 3 to 1"),
    "no views": ("vu", Piece(1, [None, None, b"a", ends(1, letter="q")]), "no views"),
    "no lengths": ("vu", Piece(1, [None, view(1), b"a", None]), "how long its buffers are"),
    "negative length of a buffer": ("vu", Piece(1, [None, view(1), b"a", ends(-1, letter="q")]), "buffer 0 is of length -1"),
    "a buffer of nothing": ("vu", Piece(1, [None, view(1), None, ends(9, letter="q")]), "buffer 0 is of length 9"),
    "negative view": ("vu", Piece(1, [None, view(-1), b"a", ends(1, letter="q")]), "row 0: its length is -1"),
    "view of no buffer": ("vu", Piece(1, [None, view(20, 1), b"a" * 20, ends(20, letter="q")]), "20 bytes at 0 of buffer 1"),
    "view of buffer -1": ("vu", Piece(1, [None, view(20, -1), b"a" * 20, ends(20, letter="q")]), "of buffer -1"),
    "view without buffers": ("vu", Piece(1, [None, view(20), b""]), "20 bytes at 0 of buffer 0"),
    "view before its buffer": ("vu", Piece(1, [None, view(20, 0, -1), b"a" * 20, ends(20, letter="q")]), "at -1 of"),
    "view that ends behind it": ("vu", Piece(1, [None, view(20, 0, 1), b"a" * 20, ends(20, letter="q")]), "20 bytes at 1"),
    "view that begins behind it": ("vu", Piece(1, [None, view(13, 0, 21), b"a" * 20, ends(20, letter="q")]), "13 bytes at 21"),
    "not UTF-8": ("u", Piece(2, [None, ends(0, 1, 3), b"aa\xff"]), "row 1 of the Arrow column is not UTF-8: see its byte 1"),
    "half a character in a view": ("vu", piece(["a", b"b\xe2\x82"], "vu"), "row 1 of the Arrow column is not UTF-8"),
    "half a surrogate pair": ("U", piece(["\ud83d".encode("utf-8", "surrogatepass")], "U"), "row 0 of the Arrow column"),
    "not UTF-8 behind the stop": ("u", piece([b"a###\xff"], "u"), "see its byte 4"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "told", "message"), CORRUPT.values(), ids=CORRUPT)
def test_a_corrupt_column_is_an_error_that_says_what(kind: str, told: Piece, message: str) -> None:
    good = piece(ROWS, kind)
    for column in (ArrayColumn([told], kind), StreamColumn([told, good], kind)):
        with pytest.raises(ValueError) as raised:
            STOPS.truncate_many(column)
        assert message in str(raised.value)
        assert column.all_released_once


def test_a_row_is_numbered_in_the_whole_column() -> None:
    column = StreamColumn([piece(ROWS, "u"), piece(["a", b"\xff"], "u")], "u")
    with pytest.raises(ValueError, match=f"row {len(ROWS) + 1} "):
        STOPS.truncate_many(column)


@given(
    kind=st.sampled_from(FORMATS),
    length=st.integers(0, 4),
    offset=st.integers(0, 4),
    numbers=st.lists(st.integers(-2, 40), min_size=40, max_size=40),
    valid=st.none() | st.binary(min_size=1, max_size=1),
)
def test_whatever_the_numbers_say_there_are_rows_or_an_error(
    kind: str, length: int, offset: int, numbers: list[int], valid: bytes | None
) -> None:
    """The buffers are as long as the array says; what stands in them is anything."""
    data = b"a" * 40
    if kind == "vu":
        buffers = [valid, ends(*numbers), data[:20], data, ends(20, 40, letter="q")]
    else:
        buffers = [valid, ends(*numbers, letter="i" if kind == "u" else "q"), data]
    column = ArrayColumn([Piece(length, buffers, offset, -1)], kind)
    try:
        kept, _ = STOPS.truncate_many(column)
    except ValueError:
        pass
    else:
        assert len(rows_of(kept)) == length
    assert column.all_released_once


def test_a_column_is_taken_once() -> None:
    column = column_of(ROWS, "u")
    capsules = column.__arrow_c_array__()

    class Again:
        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            return capsules

    assert rows_of(STOPS.truncate_many(Again())[0]) == KEPT
    with pytest.raises(ValueError, match="was released before"):
        STOPS.truncate_many(Again())
    assert column.all_released_once


def test_what_is_no_capsule_or_another_one_is_refused() -> None:
    class Wrong:
        def __init__(self, result: Any) -> None:
            self.result = result

        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            return self.result

    class WrongStream(Wrong):
        __arrow_c_array__ = None  # type: ignore[assignment]

        def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
            return self.result

    other = new_capsule(ctypes.addressof(Stream()), b"another", None)
    for result in ((other, other), (None, None), "ab", 5, (other,), None):
        with pytest.raises((TypeError, ValueError)):
            STOPS.truncate_many(Wrong(result))
    column = column_of(ROWS, "u")
    schema, _ = column.__arrow_c_array__()
    with pytest.raises(TypeError, match="capsule named arrow_array is needed, not int"):
        STOPS.truncate_many(Wrong((schema, 5)))
    assert column.releases[0] == 1
    with pytest.raises(TypeError):
        STOPS.truncate_many(WrongStream(other))


def test_what_a_producer_raises_comes_through() -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
            raise RuntimeError("no column today")

    with pytest.raises(RuntimeError, match="no column today"):
        STOPS.truncate_many(Broken())


def test_a_set_without_text_streams_takes_no_column() -> None:
    column = column_of(ROWS, "u")
    with pytest.raises(TypeError, match="stop 0"):
        StopSet([b"a"]).truncate_many(column)
    assert column.all_released_once


@pytest.mark.parametrize(
    ("fail", "error", "message"),
    [
        ({"get_schema": (22, b"no such column")}, ValueError, "no such column"),
        ({"get_next": (5, b"disk on fire")}, OSError, "disk on fire"),
        ({"get_next": (22, None)}, ValueError, "no reason given"),
        ({"get_next": (22, b"?"), "no get_last_error": (0, None)}, ValueError, "no reason given"),
        ({"no get_schema": (0, None)}, ValueError, "no get_schema"),
        ({"no get_next": (0, None)}, ValueError, "no get_next"),
        ({"released schema": (0, None)}, ValueError, "schema that was released"),
    ],
)
def test_a_stream_that_fails(fail: Any, error: type[Exception], message: str) -> None:
    column = StreamColumn([piece(ROWS, "u")], "u")
    column.fail = fail
    with pytest.raises(error, match=message) as raised:
        STOPS.truncate_many(column)
    assert column.all_released_once
    if isinstance(raised.value, OSError):
        assert raised.value.errno == 5


# --- resources
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.thread_unsafe
def test_ctrl_c_ends_a_long_column() -> None:
    """A signal that came before the call is noticed inside it: no Python code runs between the two."""
    one = b"a" * (1 << 20)
    long = Piece(70, [None, view(len(one)) * 70, one, ends(len(one), letter="q")])
    column, _ = StopSet(None).truncate_many(ArrayColumn([long], "vu"))
    calls = [
        functools.partial(ctypes.pythonapi.PyErr_SetInterrupt),
        functools.partial(STOPS.truncate_many, column),
    ]
    done: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        done.extend(map(functools.partial.__call__, calls))
    assert len(done) == 1  # the second one never came to its end
    assert STOPS.truncate_many(column)[1] == [None] * 70


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
def test_views_of_more_than_memory_are_an_error() -> None:
    """Four thousand rows that are the same megabyte."""
    program = """
import resource, arrow_c, test_arrow
from holdback import StopSet
column = arrow_c.ArrayColumn(
    [arrow_c.Piece(4096, [None, test_arrow.view(1 << 20) * 4096, b"a" * (1 << 20), test_arrow.ends(1 << 20, letter="q")])], "vu"
)
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
try:
    StopSet("b").truncate_many(column)
except MemoryError as error:
    print(error, column.all_released_once)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        check=True,
    )
    assert done.stdout == "no room for the texts of this Arrow column True\n"


@pytest.mark.thread_unsafe
@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads the resident size from /proc"
)
def test_memory_comes_back() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    source, _ = StopSet(None).truncate_many(
        column_of(["x" * 1000 + "###" + "y" * 9] * 1000 + [None], "u")
    )
    kept = None
    for turn in range(80):
        if turn == 20:
            before = resident()
        kept, _ = STOPS.truncate_many(source)
        Taken(kept).release()
        kept.__arrow_c_array__()
    assert resident() - before < 30 << 20  # a megabyte leaked each time would be 60


@given(st.lists(st.none() | st.text("aé日😀\0", max_size=4), max_size=20), st.data())
def test_the_column_that_comes_back_is_a_sequence(rows, data):
    column, _ = StopSet(None).truncate_many(column_of(rows, "u"))
    assert isinstance(column, ArrowStrings)
    assert list(column) == column.to_pylist() == [*column] == rows
    begin, end, step = (data.draw(st.none() | st.integers(-25, 25)) for _ in range(3))
    assert column[begin : end : step or 1] == rows[begin : end : step or 1]
    for row in range(-len(rows), len(rows)):
        assert column[row] == rows[row]
    for row in (len(rows), -len(rows) - 1, 1 << 70, -(1 << 70)):
        with pytest.raises((IndexError, OverflowError)):
            column[row]
    with pytest.raises(TypeError):
        column["a"]
    assert (None in column) == (None in rows)


def test_an_iterator_outlives_its_column_and_ends_once():
    rows = iter(STOPS.truncate_many(column_of(ROWS, "U"))[0])
    gc.collect()
    assert list(rows) == KEPT
    assert list(rows) == []


def test_an_array_of_objects_needs_a_copy():
    column, _ = STOPS.truncate_many(column_of(ROWS, "u"))
    with pytest.raises(ValueError, match="copy=False"):
        column.__array__(copy=False)
