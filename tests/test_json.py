"""Fields of large objects, read and changed in place: the same as parsing and writing all of it."""

from __future__ import annotations

import copy
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback._core import _json_elements
from holdback._json import MAX_PARSED, Document, Edits, load_json
from holdback.dialects import Large

KEYS = ["stop", "n", "a", "options", "é"]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab\\\"[]{},:é\n\ud83d", max_size=4)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
objects = st.dictionaries(st.sampled_from(KEYS), values, max_size=5)
layouts = st.sampled_from(
    [
        {},
        {"indent": 1},
        {"indent": "\t"},
        {"separators": (",", ":")},
        {"separators": (" , ", "\r: ")},
    ]
)
WANTED = [("stop",), ("n",), ("options", "stop"), ("options", "a", "n"), ("é",)]


def picked(tree: Any, wanted: list[tuple[str, ...]]) -> Any:
    """What a document of the tree reads."""
    made = {}
    for key, value in tree.items():
        inner = [path[1:] for path in wanted if path[0] == key]
        if not inner:
            continue
        made[key] = picked(value, inner) if isinstance(value, dict) and all(inner) else value
    return made


def put(tree: Any, path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        if tree.get(key) is None:
            tree[key] = {}
        tree = tree[key]
    tree[path[-1]] = value


def remove(tree: Any, path: tuple[str, ...]) -> None:
    for key in path[:-1]:
        tree = tree.get(key)
        if tree is None:
            return
    tree.pop(path[-1], None)


@given(
    tree=objects,
    layout=layouts,
    ascii_only=st.booleans(),
    puts=st.dictionaries(st.sampled_from(WANTED), values, max_size=3),
    removed=st.none() | st.sampled_from(WANTED),
)
def test_an_edited_document_is_the_edited_tree(
    tree: Any, layout: Any, ascii_only: bool, puts: Any, removed: tuple[str, ...] | None
) -> None:
    raw = json.dumps(tree, ensure_ascii=ascii_only, **layout).encode("utf-8", "surrogatepass")
    if not ascii_only and b"\xed\xa0\xbd" in raw:
        return  # a lone surrogate is no UTF-8: test_what_is_no_json_is_refused
    if len([path for path in puts if path[0] == "options"]) > 1:
        return  # one field of an object that has to be made
    document = Document(raw, WANTED)
    assert document.body == picked(tree, WANTED)
    edits, expected = Edits(document), copy.deepcopy(tree)
    try:
        for path, value in puts.items():
            edits.put(path, value)
        if removed is not None and removed not in puts:
            edits.remove(removed)
    except ValueError as error:
        reason = str(error)
        inside = [path for path in (*puts, removed) if path and len(path) > 1]
    else:
        reason, inside = "", []
    if reason:
        assert inside, reason
        return
    for path, value in puts.items():
        put(expected, path, value)
    if removed is not None and removed not in puts:
        remove(expected, removed)
    assert json.loads(edits.made()) == expected


def test_bytes_that_need_no_change_stay() -> None:
    raw = b' { "n" : 1e999 ,\n "stop":["a"], "x": [ 1.50, "\\u00e9\xc3\xa9" ] } '
    edits = Edits(Document(raw, [("stop",), ("n",)]))
    edits.put(("stop",), ["b"])
    assert edits.made() == raw.replace(b'["a"]', b'["b"]')
    edits.remove(("stop",))
    assert edits.made() == raw.replace(b'"stop":["a"], ', b"")
    assert Document(b"\xef\xbb\xbf" + raw, [("n",)]).body["n"] == pytest.approx(1.797e308, rel=0.01)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b'{"a":1',
        b'{"a":[}',
        b'{"stop":["\xff"]}',
        b'{"stop":1} x',
        b'{"stop":1,"stop":2}',
        b'{"stop":1,"st\\u006fp":2}',
        b'{"options":{"stop":1,"stop":2}}',
        b'{"n":NaN}',
        b'{"x":Infinity}',
        '{"stop":1}'.encode("utf-16"),
        b'{"x":' + b"[" * 600 + b"]" * 600 + b"}",
        b'{"stop":' + b'{"a":' * 600 + b"1" + b"}" * 600 + b"}",
        b"{" * 10_000_000,
    ],
    ids=range(16),
)
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        Document(raw, WANTED)


@pytest.mark.parametrize("item", [b"[]", b"{}", b'"a"', b"[[[[1]]]]"])
def test_a_large_value_is_not_built(item: bytes) -> None:
    raw = b'{"prompt":[' + b",".join([item] * (4 << 20)) + b'],"n":2}'
    tracemalloc.start()
    document = Document(raw, [("prompt",), ("n",)])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert document.body == {"prompt": Large((1 << 20) + 1), "n": 2}
    assert peak < 1 << 20


def test_what_is_parsed_has_a_budget_in_all() -> None:
    items = b"[" + b",".join([b"[]"] * (MAX_PARSED // 4)) + b"]"
    body = Document(b'{"a":%b,"stop":%b}' % (items, items), [("a",), ("stop",)]).body
    assert isinstance(body["a"], list)
    assert body["stop"] == Large(MAX_PARSED // 4)


@given(st.lists(values, max_size=5))
def test_elements_are_counted(items: list[Any]) -> None:
    numbers = all(type(item) in (int, float) for item in items)
    assert _json_elements(json.dumps(items).encode(), 0, 99) == (len(items), numbers)
    if len(items) > 1:
        assert _json_elements(json.dumps(items).encode(), 0, 0)[0] == 1


def test_numbers_without_json_are_kept_and_those_beyond_are_the_largest() -> None:
    read = load_json(b'{"a":-1e999,"b":NaN,"c":-Infinity}')
    assert json.dumps(read) == '{"a": -1.7976931348623157e+308, "b": NaN, "c": -Infinity}'
