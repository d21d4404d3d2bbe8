"""Hypothesis strategies that make collisions likely.

Few letters, stops made of pieces of each other, chunks made of pieces of stops and markers, cut
anywhere.

A *plan* is one set of stops with the options of a stream and a list of operations on that stream.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import strategies as st

# Each alphabet is its own kind of trouble: most share lead bytes, or are parts of each other in
# UTF-8 or UTF-16.
ALPHABETS = [
    "ab",
    "abc",
    "a<>",
    "a\x00",
    "aé",
    "日月木",
    "😀😁",
    "a€\ufffd",
    "é\u20ac😀a",
    "\ufeffa",
    "a\ud83d\ude00",  # halves of a pair: alone, in the wrong order, or together
    "😀\ud83d\ude00\ufffd",
]
TROUBLE = [
    b"\xff",
    b"\x80",
    b"\xc3",
    b"\xe2",
    b"\xe2\x82",
    b"\xed",
    b"\xa0",
    b"\xf0",
    b"\xf0\x9f",
    b"\x98",
    b"\xf4",
    b"\x90",
    b"\xc0",
]
FILLER = "~" * 40  # the core skips over text in which no stop begins, many positions at a time


@dataclasses.dataclass(frozen=True)
class Plan:
    stops: list[str | bytes]
    tie: str
    raw: bool
    options: dict[str, Any]
    operations: list[tuple[Any, ...]]


def is_text(literal: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in literal)


@st.composite
def stop_lists(draw: st.DrawFn, letters: str) -> list[str]:
    """Stops that contain, overlap, repeat and prefix each other."""
    good = "".join(filter(is_text, letters)) or "a"
    word = st.text(good, min_size=1, max_size=4)
    stops: list[str] = []
    for _ in range(draw(st.sampled_from([1, 2, 2, 3, 3, 4, 0]))):
        stop = draw(word)
        if stops and draw(st.booleans()):  # a relative of one that is there
            other = draw(st.sampled_from(stops))
            cut = draw(st.integers(0, len(other)))
            stop = draw(
                st.sampled_from(
                    [
                        other,
                        other[:cut],
                        other[cut:],
                        other + stop,
                        stop + other,
                        other[cut:] + stop,
                    ]
                )
            )
        stops.append(stop or "a")
    return stops


@st.composite
def scopes(draw: st.DrawFn, letters: str, stops: list[str]) -> dict[str, Any]:
    """Options of sections 7, 8 and 9. Some of them are wrong, which both sides must find."""
    good = "".join(filter(is_text, letters)) or "a"
    word = st.text(good, min_size=1, max_size=3)
    options: dict[str, Any] = {}
    if draw(st.booleans()):
        options["min_chars"] = draw(st.integers(0, 8))
    if draw(st.booleans()):
        pairs = [(f"{draw(word)}[", f"{draw(word)}]")]
        match draw(st.integers(0, 4)):
            case 3:
                pairs.append((f"[{draw(word)}", f"]{draw(word)}"))
            case 4:
                pairs.append((draw(word), draw(word)))  # likely to be wrong
        options["ignore_inside"] = pairs
        options["start_inside"] = draw(st.booleans())
    if draw(st.booleans()):
        marker = word | st.sampled_from([*stops, "a"]).filter(bool)
        regions = st.just("regions") if "ignore_inside" in options else st.nothing()
        options["atomic"] = draw(st.lists(marker, max_size=3) | regions)
    return options


@st.composite
def plans(draw: st.DrawFn, *, raw: bool, scoped: bool = True) -> Plan:
    letters = draw(st.sampled_from(ALPHABETS))
    stops = draw(stop_lists(letters))
    options = draw(scopes(letters, stops)) if scoped else {}
    included = st.lists(st.sampled_from(stops), max_size=3) if stops else st.just([])
    options["include_stop"] = draw(st.booleans() | included)
    if not raw:
        options["errors"] = draw(st.sampled_from(["replace", "replace", "strict"]))
    given_stops: list[str | bytes] = list(stops)
    if raw:  # any bytes may be a stop
        given_stops = [stop.encode() if draw(st.booleans()) else stop for stop in stops] + draw(
            st.lists(st.sampled_from(TROUBLE), max_size=2)
        )
    return Plan(
        stops=given_stops,
        tie=draw(st.sampled_from(["longest", "first"])),
        raw=raw,
        options=options,
        operations=draw(operations(pieces(letters, stops, options), raw=raw)),
    )


def pieces(letters: str, stops: list[str], options: dict[str, Any]) -> list[str]:
    """What texts are made of: letters, and literals with all that may begin or end them."""
    literals = [*stops, *(marker for pair in options.get("ignore_inside", []) for marker in pair)]
    if options.get("atomic") != "regions":
        literals += options.get("atomic", [])
    parts = (
        {literal[:-1] for literal in literals}
        | {literal[1:] for literal in literals}
        | {*letters, *literals}
    )
    return [*sorted(parts - {""}), FILLER]


@st.composite
def texts(draw: st.DrawFn, parts: list[str], *, max_pieces: int = 6) -> str:
    return "".join(
        draw(
            st.lists(
                st.sampled_from(parts),
                min_size=draw(st.sampled_from([1, 2, 0])),
                max_size=max_pieces,
            )
        )
    )


@st.composite
def cuttings(draw: st.DrawFn, data: Any) -> list[Any]:
    """A text or bytes, cut anywhere, also into nothing."""
    if draw(st.booleans()):
        return [data[at : at + 1] for at in range(len(data))]
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=5)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@st.composite
def blocks(draw: st.DrawFn, parts: list[str], *, raw: bool) -> list[Any]:
    """Some text of one kind, in chunks."""
    text = draw(texts(parts))
    if not raw and draw(st.booleans()):
        return draw(cuttings(text))
    data = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 3)) == 3:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from(TROUBLE)) + data[at:]
    if draw(st.integers(0, 3)) == 3:
        data = data[: draw(st.integers(0, len(data)))]
    return draw(cuttings(data))


@st.composite
def operations(draw: st.DrawFn, parts: list[str], *, raw: bool) -> list[tuple[Any, ...]]:
    """Each is a name, which of the streams it is for (there may be copies), and its arguments."""
    which = st.integers(0, 2)
    calls = st.sampled_from(["copy", "disarm", "arm", "pickle", "disarm", "arm", "reset", "flush"])
    wrong = st.sampled_from([5, None, ["a"], *(["a"] if raw else [])])
    result: list[tuple[Any, ...]] = []
    for _ in range(draw(st.integers(1, 4))):
        stream = draw(which)
        for chunk in draw(blocks(parts, raw=raw)):
            match draw(st.integers(0, 15)):
                case 11:
                    result.append((draw(calls), stream))
                    result.append(("feed", stream, chunk))
                case 12:
                    result.append(("feed", stream, draw(wrong)))
                    result.append(("feed", stream, chunk))
                case 13:
                    result.append(("feed_many", stream, [chunk, *draw(blocks(parts, raw=raw))]))
                case 14:
                    result.append(
                        ("feed_many", stream, draw(st.permutations([chunk, draw(wrong), chunk])))
                    )
                case 15:
                    result.append(("feed_many", stream, []))
                case _:
                    result.append(("feed", stream, chunk))
        if draw(st.integers(0, 2)) == 2:
            result.append((draw(calls), stream))
    if draw(st.booleans()):
        result.append(("flush", draw(which)))
    return result
