"""The options of a stream: what they may be, and what they mean for the reader.

Everything is turned into ``str`` here: text as it is, the bytes of a ``byte_stream()`` as
characters of the same number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from .pattern import Pattern, tree_of
from .stops import Stop, StopSet, has_patterns, listed, machine_of, same_stops, utf8
from .syntax import looks

Value = TypeVar("Value")


@dataclass(frozen=True)
class Options:
    """Checked options. ``raw`` says whether they are those of a ``byte_stream()``."""

    raw: bool
    errors: str
    stops: tuple[str | Pattern, ...]
    included: frozenset[int]
    min_chars: int
    regions_as_given: tuple[tuple[Any, Any], ...]
    regions: tuple[tuple[str, str], ...]
    start_inside: bool
    whole: tuple[str, ...]


def check(
    stops: StopSet,
    *,
    raw: bool,
    include_stop: bool | Stop | Iterable[Stop] | None = None,
    errors: str | None = None,
    min_chars: int | None = None,
    ignore_inside: Iterable[tuple[str | bytes, str | bytes]] | None = None,
    start_inside: bool | None = None,
    atomic: str | bytes | Iterable[str | bytes] | None = None,
) -> Options:
    """Check the options of ``StopSet.stream()`` (``raw``: of ``byte_stream()``) against each other
    and the stops.

    ``None`` is the default of each.
    """
    errors = _typed(str, "errors", errors, "replace")
    if errors not in ("replace", "strict"):
        raise ValueError(f'errors must be "replace" or "strict", not {errors!r}')
    min_chars = _typed(int, "min_chars", min_chars, 0)
    if min_chars < 0:
        raise ValueError(f"min_chars must not be negative, it is {min_chars}")
    start_inside = _typed(bool, "start_inside", start_inside, False)
    texts = tuple(
        _checked_pattern(stop, raw, index)
        if isinstance(stop, Pattern)
        else _as_text(stop, raw, f"stop {index}")
        for index, stop in enumerate(stops)
    )
    regions_as_given = _pairs(ignore_inside)
    regions = tuple(
        (_marker(opener, raw), _marker(closer, raw)) for opener, closer in regions_as_given
    )
    _check_regions(regions, texts)
    if start_inside and not regions:
        raise ValueError(
            "start_inside=True needs ignore_inside: there is no region to be asleep in"
        )
    if isinstance(atomic, str) and atomic == "regions":
        whole = tuple(marker for pair in regions for marker in pair)
    else:
        whole = tuple(_marker(marker, raw) for marker in listed(atomic, "atomic"))
    included = _included(stops, include_stop)
    _check_bounds(stops, included, raw)
    return Options(
        raw=raw,
        errors=errors,
        stops=texts,
        included=included,
        min_chars=min_chars,
        regions_as_given=regions_as_given,
        regions=regions,
        start_inside=start_inside,
        whole=whole,
    )


def _typed(kind: type[Value], name: str, value: Value | None, default: Value) -> Value:
    if value is None:
        return default
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {kind.__name__}, not {type(value).__name__}")
    return value


def _as_text(literal: Any, raw: bool, name: str) -> str:
    data = utf8(literal, name)
    if raw:
        return data.decode("latin-1")
    if isinstance(literal, bytes):
        raise TypeError(f"{name} is bytes: a text stream takes str only, use byte_stream()")
    return data.decode("utf-8")


def _checked_pattern(pattern: Pattern, raw: bool, index: int) -> Pattern:
    if isinstance(pattern.pattern, bytes) and not raw:
        raise TypeError(
            f"stop {index} is a pattern of bytes: a text stream takes str only, use byte_stream()"
        )
    if isinstance(pattern.pattern, str) and raw and "b" in looks(tree_of(pattern)):
        raise ValueError(
            f"stop {index} ({pattern!r}) has \\b, and a byte stream does not know what a character "
            "is: use a pattern of bytes"
        )
    return pattern


def _check_bounds(stops: StopSet, included: frozenset[int], raw: bool) -> None:
    """Section 11.3: nothing may be held without end."""
    if not has_patterns(stops):
        return
    for index, bound in enumerate(machine_of(stops, raw).bounds):
        if bound is None and index not in included:
            raise ValueError(
                f"stop {index} ({stops.stops[index]!r}) can hold back text without end: "
                "give it max_hold, or include it (include_stop)"
            )


def _marker(marker: Any, raw: bool) -> str:
    text = _as_text(marker, raw, f"marker {marker!r}")
    if not text:
        raise ValueError(f"marker {marker!r} is empty")
    return text


def _pairs(ignore_inside: Any) -> tuple[tuple[Any, Any], ...]:
    pairs = listed(ignore_inside, "ignore_inside")
    for number, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"ignore_inside[{number}] must be a pair (opener, closer), not {pair!r}"
            )
    return tuple((opener, closer) for opener, closer in pairs)


def _check_regions(regions: tuple[tuple[str, str], ...], stops: tuple[str | Pattern, ...]) -> None:
    """Section 8, last point: markers that would make it unclear where a region begins or ends."""
    markers = [marker for pair in regions for marker in pair]
    for number, marker in enumerate(markers):
        if marker in stops:
            raise ValueError(f"marker {marker!r} equals stop {stops.index(marker)}")
        for other in markers[:number] + markers[number + 1 :]:
            if other == marker:
                raise ValueError(f"marker {marker!r} is given twice")
            if other in marker:
                raise ValueError(f"marker {marker!r} contains marker {other!r}")


def _included(stops: StopSet, include_stop: Any) -> frozenset[int]:
    """Section 2: all stops, none, or a collection of them."""
    if isinstance(include_stop, bool):
        return frozenset(range(len(stops)) if include_stop else ())
    included: set[int] = set()
    for member in listed(include_stop, "include_stop"):
        if not isinstance(member, (str, bytes, Pattern)):
            raise TypeError(
                f"include_stop must have str, bytes or Pattern in it, not {type(member).__name__}"
            )
        same = same_stops(stops, member)
        if not same:
            raise ValueError(f"include_stop names {member!r}, which is not a stop of this set")
        included.update(same)
    return frozenset(included)
