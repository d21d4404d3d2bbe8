"""`trace`: the steps add up to the stream, the table is aligned, the page is whole and safe."""

from __future__ import annotations

import io
import json
import sys
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback import StopSet, trace
from holdback._trace.table import HEADS, rows, table

CHUNKS = ["It is 42.</", "p> </ans", "wer> bye", "unread"]

texts = st.text("ab<\n é中\u202e\x07&·\\", max_size=5)
chunk_lists = st.lists(st.one_of(texts, texts.map(str.encode), st.binary(max_size=3)), max_size=6)
stop_lists = st.lists(st.text("ab<\n", min_size=1, max_size=3), max_size=3)
options = st.fixed_dictionaries(
    {}, optional={"include_stop": st.booleans(), "atomic": st.just(["<<<"])}
)


@given(chunk_lists, stop_lists, options)
def test_the_steps_are_those_of_the_stream(chunks, stops, scope):
    stream = StopSet(stops).stream(**scope)
    traced = trace(chunks, stops, **scope)
    emitted = ""
    for step in traced.steps:
        if step.chunk is None:
            emit = stream.flush()
        else:
            emit, _ = stream.feed(step.chunk)
            assert step.held == stream.held
        assert (step.emit, step.sent) == (emit, len(emitted))
        emitted += emit
    assert traced.emitted == emitted
    assert traced.match == stream.match
    assert len([step for step in traced.steps if step.chunk is not None]) + traced.unread == len(
        chunks
    )
    for step in traced.steps:
        assert all(traced.stops[index].startswith(step.held) for index in step.waits_for)


@given(chunk_lists, stop_lists, st.integers(20, 120))
def test_the_table_is_aligned_and_on_as_many_lines_as_steps(chunks, stops, width):
    traced = trace(chunks, stops)
    lines = table(traced, width=width).split("\n")
    assert len(lines) == len(traced.steps) + 1
    assert all(line.isprintable() for line in lines)
    assert max(map(columns, lines)) <= max(width, len("chunk") + 8 + 4 * 8)
    assert all(cell == cell.strip("\n") for row in rows(traced) for cell in row)


def columns(text: str) -> int:
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def test_the_columns_of_wide_characters_line_up():
    head, wide, narrow = str(trace(["中文", "ab"], ["<"])).split("\n")
    assert head.index("sent on") == narrow.rindex("ab") == columns(wide[: wide.rindex("中文")])


def test_a_step_says_what_it_waits_for():
    traced = trace(CHUNKS, ["</answer>", "</ansel>", "###"])
    assert [step.waits_for for step in traced.steps] == [(0, 1), (0, 1), ()]
    assert traced.most_held == 5
    assert traced.unread == 1
    assert traced.match.stop == "</answer>"


def test_a_stop_that_can_never_be_the_match_is_not_waited_for():
    assert trace(["a"], ["ab", "abc"]).steps[0].waits_for == (0,)


def test_scopes_are_shown():
    traced = trace(
        ["<think>x", "</thi", "nk>", "END"],
        ["END"],
        ignore_inside=[("<think>", "</think>")],
        atomic="regions",
    )
    assert [row[3:] for row in rows(traced)] == [
        ("", "inside <think>"),
        ("</thi", "a marker, inside <think>"),
        ("", ""),
        ("", "stop 0 END at 16"),
    ]


def test_half_a_character_is_shown_as_bytes():
    assert [row[1:] for row in rows(trace(["é".encode()[:1], "é".encode()[1:]], ["x"]))] == [
        (r"\xc3", "", "", "the rest of a character"),
        (r"\xa9", "é", "", ""),
    ]


def test_the_flush_is_a_step_when_it_brings_something():
    assert [row[0] for row in rows(trace(["a<"], ["<b"]))] == ["0", "end"]
    assert [row[0] for row in rows(trace(["a"], ["<b"]))] == ["0"]


def test_one_text_is_one_chunk_and_a_generator_will_do():
    assert len(trace("a b", ["x"]).steps) == 1
    assert len(trace((c for c in "abc"), ["x"]).steps) == 3


def test_errors_are_those_of_the_stream():
    with pytest.raises(TypeError, match="int"):
        trace([5], ["x"])


def test_it_goes_through_json():
    told = json.loads(json.dumps(trace([b"a\xff", *CHUNKS], ["</answer>"]).as_dict()))
    assert told["match"] == {"index": 0, "stop": "</answer>", "start": 16, "end": 25}
    assert told["steps"][0]["chunk"] == "a\\xff"


def test_printing_is_plain_when_nobody_watches(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "44")
    trace(CHUNKS, ["</answer>"]).print()
    assert capsys.readouterr().out == table(trace(CHUNKS, ["</answer>"]), width=44) + "\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_printing_on_a_terminal_says_the_same_with_rich_and_without(monkeypatch):
    traced = trace(CHUNKS, ["</answer>"])
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    for missing in (False, True):
        if missing:
            monkeypatch.setitem(sys.modules, "rich.console", None)
        else:
            pytest.importorskip("rich", reason="rich is optional")
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        traced.print()
        said = terminal.getvalue()
        for row in rows(traced):
            assert all(cell in said for cell in row)


class Page(HTMLParser):
    """Checks that tags are balanced; collects tags, attributes and text."""

    VOID = frozenset({"meta"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += data


@given(chunk_lists, stop_lists, st.booleans())
def test_the_page_is_whole_and_its_text_is_there(chunks, stops, include):
    traced = trace(chunks, stops, include_stop=include)
    page = traced.to_html()
    assert page.isprintable() or set(page) - {c for c in page if c.isprintable()} == {"\n"}
    text = Page(page).text
    assert all(cell in text for row in rows(traced) for cell in row[1:2])


def test_the_page_cannot_be_talked_into_anything():
    hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u202e"
    page = trace([hostile, hostile + "</a>" + hostile], ["</a>", hostile[:5] + "!"]).to_html(
        title=hostile
    )
    parsed = Page(page)
    assert parsed.tags <= {"html", "head", "meta", "title", "style", "body", "main", "section", "div", "span", "p"} | {
        "h1", "h2", "ul", "ol", "li", "i", "b", "code", "bdi",
    }  # fmt: skip
    assert not [
        name for name in parsed.attributes if name.startswith("on") or name in ("src", "href")
    ]
    assert "\u202e" not in page
    assert "default-src 'none'" in page


def test_bars_lie_inside_the_track():
    page = trace(CHUNKS, ["</answer>"]).to_html()
    for style in page.split('style="left:')[1:]:
        left, width = style.split('"')[0].split("%;width:")
        assert 0 <= float(left) <= float(left) + float(width.rstrip("%")) <= 100.001


def test_it_saves_itself(tmp_path):
    path = trace(CHUNKS, ["</answer>"]).save(tmp_path / "trace.html")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_notebook_shows_the_page():
    assert trace(CHUNKS, ["</answer>"])._repr_html_().startswith("<iframe")


def test_the_heads_are_those_of_the_rows():
    assert all(len(row) == len(HEADS) for row in rows(trace(CHUNKS, ["</answer>"])))


def test_an_argument_of_the_wrong_type_is_named() -> None:
    with pytest.raises(
        TypeError, match="chunks must be an iterable of str or bytes-like, not NoneType"
    ):
        trace(None, ["a"])  # type: ignore[arg-type]
