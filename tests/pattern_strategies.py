"""Random sets of patterns over few letters, and plans with them.

Patterns are small, so that the reference can try every continuation; letters are few, so that words
meet. `max_hold` is drawn small (text is let go), large (nothing is refused, all is held) or not at
all (what has no bound is refused, on both sides).
"""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st
from strategies import FILLER, Plan, operations, scopes

from holdback import reference

# Letters that texts are made of. Each has characters of `\w`, others, and most have the newline.
ALPHABETS = ["ab", "ab!", "ab\n", "a-\n", "aA ", "a1 ", "aé\n", "aé€", "日!\n", "a😀!", "kK\u212a"]


def random_tree(r: random.Random, letters: str, depth: int = 0) -> str:
    """A pattern, perhaps one that matches the empty text."""
    pick = r.random()
    if depth > 2 or pick < 0.4:
        return r.choice([*map(escaped, letters), *classes(letters)])
    if pick < 0.62:
        return random_tree(r, letters, depth + 1) + random_tree(r, letters, depth + 1)
    if pick < 0.72:
        return f"(?:{random_tree(r, letters, depth + 1)}|{random_tree(r, letters, depth + 1)})"
    if pick < 0.84:
        look = r.choice([r"\b", r"\b", "^", "$"])
        other = random_tree(r, letters, depth + 1)
        return r.choice([look + other, other + look])
    if pick < 0.87:
        return f"(?i:{random_tree(r, letters, depth + 1)})"
    times = r.choice(["*", "+", "?", "{1,2}", "{2}", "{2,}", "+?", "{0,3}"])
    return f"(?:{random_tree(r, letters, depth + 1)}){times}"


def escaped(letter: str) -> str:
    return {"\n": r"\n", "-": r"\-"}.get(letter, letter)


def classes(letters: str) -> list[str]:
    first, last = escaped(letters[0]), escaped(letters[-1])
    return [".", f"[{first}{last}]", f"[^{first}]", f"[^{last}]", r"\w", r"\W", r"\s", r"[\s\S]"]


def valid(pattern: dict[str, Any]) -> bool:
    try:
        reference.Pattern(**pattern)
    except ValueError:
        return False
    return True


def random_stop(r: random.Random, letters: str, *, raw: bool = False) -> Any:
    """A literal, or a pattern that is not refused by itself."""
    if r.random() < 0.25:
        word = "".join(r.choice(letters) for _ in range(r.randint(1, 3)))
        return word.encode() if raw and r.random() < 0.5 else word
    while True:
        text: Any = random_tree(r, letters)
        if r.random() < 0.4:
            text += random_tree(r, letters)
        if raw and r.random() < 0.6:
            text = text.encode()
        pattern = {"pattern": text, "max_hold": r.choice([None, 0, 1, 2, 3, 5, 1000, 1000, 1000])}
        if r.random() < 0.1:
            pattern["ignore_case"] = True
        if valid(pattern):
            return pattern


@st.composite
def pattern_stops(draw: st.DrawFn, letters: str, *, raw: bool = False) -> list[Any]:
    r = draw(st.randoms(use_true_random=False))
    return [random_stop(r, letters, raw=raw) for _ in range(draw(st.sampled_from([1, 1, 2, 2, 3])))]


@st.composite
def pattern_plans(draw: st.DrawFn, *, raw: bool, scoped: bool) -> Plan:
    letters = draw(st.sampled_from(ALPHABETS))
    stops = draw(pattern_stops(letters, raw=raw))
    options = draw(scopes(letters, [])) if scoped else {}
    options["include_stop"] = draw(
        st.sampled_from([False, False, True]) | st.lists(st.sampled_from(stops), max_size=2)
    )
    if not raw:
        options["errors"] = draw(st.sampled_from(["replace", "replace", "strict"]))
    markers = [marker for pair in options.get("ignore_inside", []) for marker in pair]
    if options.get("atomic", "regions") != "regions":
        markers += options["atomic"]
    parts = [*letters, *letters, *letters, *markers, letters[0] * 2, FILLER[:9]]
    return Plan(
        stops=stops,
        tie=draw(st.sampled_from(["longest", "longest", "first"])),
        raw=raw,
        options=options,
        operations=draw(operations(parts, raw=raw)),
    )
