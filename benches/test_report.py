"""The page says what the newest results say, and every part of it can be made."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from benches import budget, chart, report

RESULT = next(report.newest(), None)
EMPTY = {
    "date": "2000-01-01",
    "cpu": "none",
    "cores": 1,
    "load": [0],
    "load_after": [0],
    "system": "",
    "commit": "",
    "versions": {},
    "suites": {},
    "core": {},
}


def test_the_page_has_every_section_once() -> None:
    found = report.SECTION.findall(report.PAGE.read_text("utf-8"))
    assert sorted(name for _, name, _ in found) == sorted(report.SECTIONS)


@pytest.mark.parametrize("section", list(report.SECTIONS))
def test_a_section_of_a_partial_run_says_what_is_missing(section: str) -> None:
    """`make bench` may have run some suites only."""
    assert "nan" not in report.SECTIONS[section](EMPTY)


def test_a_figure_that_was_not_measured_is_not_met() -> None:
    assert {row.verdict for row in budget.rows({})} == {""}


@pytest.mark.skipif(RESULT is None, reason="no results are kept in this checkout")
def test_the_page_shows_the_newest_result() -> None:
    assert RESULT is not None
    result = json.loads(RESULT.read_text("utf-8"))
    page = report.PAGE.read_text("utf-8")
    assert report.filled(page, result) == page, "run `make bench-report`"
    drawn = chart.draw(result["suites"])
    assert drawn == report.CHART.read_text("utf-8"), "run `make bench-report`"
    ET.fromstring(drawn)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.5, "0.5 ns"),
        (44.04, "44 ns"),
        (1234.0, "1.23 us"),
        (2.5e7, "25 ms"),
        (3e9, "3 s"),
        (None, "-"),
    ],
)
def test_times_are_short_and_have_a_unit(value: float | None, shown: str) -> None:
    assert report.ns(value) == shown
