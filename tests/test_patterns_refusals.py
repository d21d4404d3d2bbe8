"""Section 11.5 and 11.6: what is refused, by which error, and patterns as values; both implementations."""

from __future__ import annotations

import pickle
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def there(impl: ModuleType) -> None:
    if not hasattr(impl, "Pattern"):
        pytest.skip("holdback.Pattern does not exist yet")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"pattern": 5}, "int"),
        ({"pattern": None}, "None"),
        ({"pattern": ["a"]}, "list"),
        ({"pattern": "a", "ignore_case": 1}, "ignore_case"),
        ({"pattern": "a", "name": b"x"}, "name"),
        ({"pattern": "a", "max_hold": "5"}, "max_hold"),
        ({"pattern": "a", "max_hold": 1.5}, "max_hold"),
        ({"pattern": "a", "max_hold": True}, "max_hold"),
    ],
)
def test_types(impl: ModuleType, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        impl.Pattern(**arguments)


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        (r"(a)\1", 3), (r"x(a)y\1", 5), (r"a(?=b)", 1), (r"a(?!b)", 1), (r"(?<=b)a", 0), (r"xy(?<!b)a", 2),
        (r"a\B", 1), (r"\Aa", 0), (r"a\z", 1), (r"\b{start}a", 0), (r"a\b{end}", 1), (r"\<a", 0), (r"a\>", 1),
        (r"a{1001}", 1), (r"é{2,1001}", 1), (r"日本a{1001,}", 3), (r"(?:ab){0,5000}c", 6), (rb"\xffa{1001}", 5), (b"\xff\xffa{1001}", 3),
        (r"a(?-m:^)b", None), (r"a(?-m)$", None), (r"(?R)a$", None), (r"(?-u:\b)a", None),
        ("a(b", None), ("a)b", None), ("[a", None), ("*a", None), (r"a{2,1}", None), ("a\\", None), (r"[b-a]", None),
        ("(?P<n>a", None), ("(" * 250 + "a" + ")" * 250, None),
    ],
)  # fmt: skip
def test_what_cannot_be_compiled(impl: ModuleType, pattern: Any, position: int | None) -> None:
    with pytest.raises(ValueError) as caught:
        impl.Pattern(pattern)
    if len(pattern) < 50:
        assert repr(pattern) in str(caught.value)
    if position is not None:
        assert str(caught.value).rstrip(".").endswith(f"position {position}") or (
            f"position {position}" in str(caught.value).replace(",", " ").replace(":", " ")
        )


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "a*",
        "a?",
        "a{0,3}",
        r"\b",
        "^",
        "$",
        "^$",
        r"(?:\b|a)",
        "a|",
        "(?:a|b*)",
        "x?$",
        r"(?:^\b)*",
        b"",
        b"a*",
    ],
    ids=repr,
)
def test_what_could_match_the_empty_text(impl: ModuleType, pattern: Any) -> None:
    with pytest.raises(ValueError, match="empty"):
        impl.Pattern(pattern)


@pytest.mark.parametrize("value", [-1, 1_048_577])
def test_max_hold_has_limits(impl: ModuleType, value: int) -> None:
    with pytest.raises(ValueError, match="max_hold"):
        impl.Pattern("a", max_hold=value)
    assert impl.Pattern("a", max_hold=0).max_hold == 0
    assert impl.Pattern("a", max_hold=1_048_576).max_hold == 1_048_576


def test_lone_surrogates(impl: ModuleType) -> None:
    for arguments in ({"pattern": "a\ud800"}, {"pattern": "a", "name": "\udfff"}):
        with pytest.raises(ValueError, match=r"surrogate|encode"):
            impl.Pattern(**arguments)


def test_what_is_deep_enough(impl: ModuleType) -> None:
    stops = impl.StopSet([impl.Pattern("(" * 50 + "a" + ")" * 50)])
    assert stops.truncate("xay")[0] == "x"


def test_without_a_bound(impl: ModuleType) -> None:
    stops = impl.StopSet(["z", impl.Pattern("a.*b"), impl.Pattern("x+y", max_hold=3)])
    assert stops.bounds == (0, None, 3)
    for call in (
        stops.stream,
        stops.byte_stream,
        lambda: stops.truncate("x"),
        lambda: stops.cut([]),
    ):
        with pytest.raises(ValueError, match="max_hold") as caught:
            call()
        assert repr("a.*b") in str(caught.value)
        assert "1" in str(caught.value)
        assert "include" in str(caught.value)
    with pytest.raises(ValueError, match="max_hold"):
        stops.stream(include_stop=["z"])
    assert stops.stream(include_stop=True).feed("xa b")[1].stop == "a b"
    assert stops.stream(include_stop=[impl.Pattern("a.*b")]).feed("xa b")[0] == "xa b"


def test_kinds_of_streams(impl: ModuleType) -> None:
    with pytest.raises(TypeError, match=r"0.*byte_stream"):
        impl.StopSet([impl.Pattern(b"a")]).stream()
    with pytest.raises(ValueError, match="1"):
        impl.StopSet(["x", impl.Pattern(r"\ba")]).byte_stream()
    assert impl.StopSet([impl.Pattern(rb"\ba")]).byte_stream().feed(b" ab")[0] == b" "
    assert impl.StopSet([impl.Pattern("^a$")]).byte_stream().feed(b"\na\n")[0] == b"\n"


@pytest.mark.parametrize("option", ["ignore_inside", "atomic"])
def test_a_pattern_is_no_marker(impl: ModuleType, option: str) -> None:
    pattern = impl.Pattern("<a>")
    value = [(pattern, "</a>")] if option == "ignore_inside" else [pattern]
    with pytest.raises(TypeError):
        impl.StopSet(["x"]).stream(**{option: value})


def test_include_stop_names_patterns(impl: ModuleType) -> None:
    pattern = impl.Pattern(r"\d!", name="n")
    stops = impl.StopSet([pattern, "x"])
    assert stops.stream(include_stop=[pattern]).feed("a1!")[0] == "a1!"
    assert stops.stream(include_stop=pattern).feed("a1!")[0] == "a1!"
    for wrong in (impl.Pattern(r"\d!"), impl.Pattern("x"), r"\d!"):
        with pytest.raises(ValueError, match="include_stop"):
            stops.stream(include_stop=[wrong])


def test_limits_of_a_set(impl: ModuleType) -> None:
    patterns = [impl.Pattern("abc"), impl.Pattern("é")]
    with pytest.raises(ValueError, match="4"):
        impl.StopSet(patterns, max_bytes=4)
    assert len(impl.StopSet(patterns, max_bytes=5)) == 2
    with pytest.raises(ValueError, match="1"):
        impl.StopSet(patterns, max_stops=1)
    for value in ("5", 1.5):
        with pytest.raises(TypeError):
            impl.StopSet(patterns, max_states=value)
    with pytest.raises((TypeError, ValueError, OverflowError)):
        impl.StopSet(patterns, max_states=-1)


def test_too_many_positions(impl: ModuleType) -> None:
    with pytest.raises(ValueError):
        impl.StopSet([impl.Pattern("(?:a{1000}){1000}")]).stream()


def test_values(impl: ModuleType) -> None:
    one = impl.Pattern("a+", ignore_case=True, name="n", max_hold=7)
    assert (one.pattern, one.ignore_case, one.name, one.max_hold) == ("a+", True, "n", 7)
    assert one == impl.Pattern("a+", ignore_case=True, name="n", max_hold=7)
    assert hash(one) == hash(impl.Pattern("a+", ignore_case=True, name="n", max_hold=7))
    others = [
        impl.Pattern("a", ignore_case=True, name="n", max_hold=7),
        impl.Pattern("a+", name="n", max_hold=7),
        impl.Pattern("a+", ignore_case=True, max_hold=7),
        impl.Pattern("a+", ignore_case=True, name="n"),
        impl.Pattern(b"a+", ignore_case=True, name="n", max_hold=7),
        "a+",
    ]
    assert one not in others
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == "Pattern('a+', ignore_case=True, name='n', max_hold=7)"
    assert repr(impl.Pattern(b"a", max_hold=0)) == "Pattern(b'a', max_hold=0)"
    with pytest.raises(AttributeError):
        one.name = "x"


def test_sets_of_patterns(impl: ModuleType) -> None:
    pattern = impl.Pattern("a|b")
    stops = impl.StopSet(pattern)
    assert list(stops) == [pattern]
    assert stops.stops == (pattern,)
    assert pattern in stops
    assert "a" not in stops
    assert "a|b" not in stops
    assert stops == impl.StopSet([impl.Pattern("a|b")])
    assert stops != impl.StopSet(["a|b"])
    assert hash(stops) == hash(impl.StopSet([impl.Pattern("a|b")]))
    assert impl.compile([pattern]) == stops
    match = stops.truncate("xby")[1]
    assert (match.pattern, match.stop, match.cut) == (pattern, "b", 1)
    assert repr(match) == (
        "StopMatch(stop='b', index=0, start=1, end=2, start_chunk=0, end_chunk=0, rest='y', "
        "cut=1, pattern=Pattern('a|b'))"
    )
    again = pickle.loads(pickle.dumps(match))
    assert again == match
    assert hash(again) == hash(match)


def test_matches_made_by_hand(impl: ModuleType) -> None:
    one = impl.StopMatch("b", 0, 1, 2, 0, 0, "y")
    assert (one.cut, one.pattern) == (1, None)
    assert "pattern" not in repr(one)
    two = impl.StopMatch("b", 0, 1, 2, 0, 0, "y", 2)
    assert two.cut == 2
    assert one != two
    assert impl.StopSet(["b"]).truncate("xby")[1] == one
    assert impl.StopSet(["b"]).truncate("xby", include_stop=True)[1] == two
