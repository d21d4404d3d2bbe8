"""Where stops stand in requests: what is put is what is found, and nothing else in the body
changes.
"""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback.dialects import DIALECTS as SPECS
from holdback.stop_fields import find_stops, put_stops
from holdback.wire import DIALECTS, Dialect

PLACES = [(dialect, field) for dialect, spec in SPECS.items() for field in spec.stop_fields]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
words = st.sampled_from(
    sorted({key for _, field in PLACES for key in field} | {"n", "prompt", "echo", "stream"})
)
bodies = st.dictionaries(words, json_values, max_size=5)
stop_lists = st.lists(st.text(max_size=3), max_size=4)


def at(body: Any, field: tuple[str, ...]) -> Any:
    for key in field:
        body = body.get(key) if isinstance(body, dict) else None
    return body


@given(place=st.sampled_from(PLACES), body=bodies, stops=stop_lists)
def test_what_is_put_is_found_and_nothing_else_changes(
    place: tuple[Dialect, tuple[str, ...]], body: dict[str, Any], stops: list[str]
) -> None:
    dialect, field = place
    before = copy.deepcopy(body)
    try:
        changed = put_stops(body, field, stops)
    except ValueError:
        assert body == before
        assert not isinstance(body.get(field[0]), dict)
        return
    assert at(body, field) == (stops or None)  # never an empty list
    assert changed == (body != before or bool(stops))  # a null goes, too
    for tree in (
        body,
        before,
    ):  # what is left without that field, and without the object that was made for it
        put_stops(tree, field, [])
        if not tree.get(field[0]):
            tree.pop(field[0], None)
    assert body == before
    if stops and field == SPECS[dialect].stop_fields[0]:
        put_stops(body, field, stops)
        assert find_stops(dialect, body) == (field, stops)


@given(dialect=st.sampled_from(DIALECTS), body=bodies)
def test_any_body_is_read_without_a_surprise(dialect: Dialect, body: dict[str, Any]) -> None:
    """A list of stops or `ValueError`, whatever the JSON."""
    with contextlib.suppress(ValueError):
        field, stops = find_stops(dialect, body)
        assert field in SPECS[dialect].stop_fields
        assert all(isinstance(stop, str) for stop in stops)
    spec = SPECS[dialect]
    assert spec.choices(body) >= 1
    assert spec.echoed(body) in (None, *range(4))
    assert spec.wants_stream("/", body) in (True, False)
    assert spec.has_stream_form(body) in (True, False)
    path, _ = spec.ask_for_stream(spec.paths[0], "", asked := copy.deepcopy(body), True)
    assert spec.wants_stream(path, asked)


@pytest.mark.parametrize("field", SPECS["gemini"].stop_fields)
def test_gemini_may_be_written_with_underscores(field: tuple[str, ...]) -> None:
    assert find_stops("gemini", {field[0]: {field[1]: ["a"]}}) == (field, ["a"])
