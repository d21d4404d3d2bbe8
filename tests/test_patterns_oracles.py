"""Patterns in the reference against oracles that know nothing of its machinery (section 11).

Three of them: the rule of 11.2 by `re` over all places of a whole text; the hold-back of 11.3 by a
search that follows all occurrences together, each with its own set of derivatives; and by plain
enumeration of continuations, which can only find too little. The first also knows look-around, where
the others are asked about every border by enumeration.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from brute import cuttings, is_word, known_at_end
from corpus import LITERALS, Call, Case, load, open_stream

from holdback import reference

Pattern, StopSet = reference.Pattern, reference.StopSet

# -- the rule, by `re`
# -----------------------------------------------------------------------------------------------------------


def first_match(
    patterns: list[str],
    text: str,
    tie: str = "longest",
    *,
    at_end: bool = True,
    armed_from: int = 0,
) -> tuple[int, int, int] | None:
    """Section 11.2 on a whole text: index, start, end."""

    def best(found: list[tuple[int, int, int]]) -> tuple[int, int, int] | None:
        key = (lambda m: (m[1], m[0])) if tie == "longest" else (lambda m: (m[0], m[1]))
        return min(found, key=key, default=None)

    places = [(i, s) for i in range(len(patterns)) for s in range(len(text) + 1)]
    for moment in range(1, len(text) + 2):
        if moment == len(text) + 1 and not at_end:
            return None
        for end in (moment - 1, moment):
            if end <= armed_from or end > len(text):
                continue
            seen = text[:moment]
            found = [
                (i, s, end)
                for i, s in places
                if s < end
                and is_word(patterns[i], seen, s, end)
                and (end < moment or known_at_end(patterns[i], seen, s, end))
            ]
            if found:
                return best(found)
    return None


def brute_hold(patterns: list[str], text: str, letters: str, depth: int, tie: str) -> int:
    """Where the earliest match of a continuation of at most `depth` letters starts."""
    best = len(text)
    for length in range(depth + 1):
        for more in itertools.product(letters, repeat=length):
            match = first_match(patterns, text + "".join(more), tie)
            if match:
                best = min(best, match[1])
        if best == 0:
            break
    return best


# -- hold-back, by following everything that has begun together
# -----------------------------------------------------------------------------------------------------------
# A pattern without look-around is a tree of tuples; its derivative by a letter is a tree again.

NEVER, EMPTY = ("never",), ("empty",)


def seq(one: Any, two: Any) -> Any:
    if NEVER in (one, two):
        return NEVER
    return two if one == EMPTY else one if two == EMPTY else ("seq", one, two)


def alt(*ways: Any) -> Any:
    flat: set[Any] = set()
    for way in ways:
        flat |= set(way[1]) if way[0] == "alt" else {way}
    flat -= {NEVER}
    return NEVER if not flat else flat.pop() if len(flat) == 1 else ("alt", frozenset(flat))


def nullable(tree: Any) -> bool:
    match tree:
        case ("empty",) | ("star", _):
            return True
        case ("seq", one, two):
            return nullable(one) and nullable(two)
        case ("alt", ways):
            return any(map(nullable, ways))
    return False


@functools.lru_cache(maxsize=1 << 16)
def derivative(tree: Any, letter: str) -> Any:
    match tree:
        case ("set", letters):
            return EMPTY if letter in letters else NEVER
        case ("seq", one, two):
            first = seq(derivative(one, letter), two)
            return alt(first, derivative(two, letter)) if nullable(one) else first
        case ("alt", ways):
            return alt(*(derivative(way, letter) for way in ways))
        case ("star", item):
            return seq(derivative(item, letter), tree)
    return NEVER


def written(tree: Any) -> str:
    match tree:
        case ("empty",):
            return "(?:)"
        case ("set", letters):
            return letters if len(letters) == 1 else f"[{letters}]"
        case ("seq", one, two):
            return written(one) + written(two)
        case ("alt", ways):
            return "(?:" + "|".join(sorted(map(written, ways))) + ")"
        case ("star", item):
            return f"(?:{written(item)})*"
    raise AssertionError(tree)


def joint_hold(trees: list[Any], text: str, letters: str, tie: str) -> int | None:
    """All occurrences that have begun, in order, and all that may begin, along every continuation,
    until nothing new is reached. `None`: too many.
    """

    def forward(text: str) -> list[tuple[int, int, Any]]:
        live = []
        for start in range(len(text)):
            for index, tree in enumerate(trees):
                for letter in text[start:]:
                    tree = derivative(tree, letter)
                if tree != NEVER:
                    live.append((start, index, tree))
        return live

    future = len(text)  # all that begin later are alike
    first = frozenset(forward(text))
    seen, todo, best = {first}, [first], future
    while todo:
        now = todo.pop()
        for letter in letters:
            grown = {(s, i, derivative(t, letter)) for s, i, t in now} | {
                (future, i, derivative(t, letter)) for i, t in enumerate(trees)
            }
            complete = [(s, i) for s, i, t in grown if nullable(t)]
            if complete:
                order = (lambda c: c) if tie == "longest" else (lambda c: (c[1], c[0]))
                best = min(best, min(complete, key=order)[0])
                continue
            after = frozenset(one for one in grown if one[2] != NEVER)
            if after not in seen:
                seen.add(after)
                todo.append(after)
        if best == 0:
            return 0
        if len(seen) > 3000:
            return None
    return best


# -- comparison
# -----------------------------------------------------------------------------------------------------------


def stream_of(patterns: list[str], tie: str = "longest") -> Any:
    """A stream that holds as long as it must: `max_hold` is there only so that nothing is refused."""
    return StopSet([Pattern(p, max_hold=1000) for p in patterns], tie=tie).stream()


def outcome(stream: Any, chunks: list[str]) -> tuple[str, Any]:
    emitted = "".join(stream.feed(chunk)[0] for chunk in chunks) + stream.flush()
    match = stream.match
    return emitted, match and (match.index, match.start, match.end)


def expected(patterns: list[str], text: str, tie: str) -> tuple[str, Any]:
    match = first_match(patterns, text, tie)
    return (text if match is None else text[: match[1]]), match


def small_trees(size: int) -> Iterator[Any]:
    """Every pattern of so many symbols over two letters: letters, the class of both, `*`, `|`."""
    if size == 1:
        yield from (("set", "a"), ("set", "b"), ("set", "ab"))
        return
    for item in small_trees(size - 1):
        yield ("star", item)
        yield alt(item, EMPTY)
    for left in range(1, size):
        for one, two in itertools.product(small_trees(left), small_trees(size - left)):
            yield seq(one, two)
            if left <= size - left:
                yield alt(one, two)


def all_small_trees() -> list[Any]:
    trees = {tree for size in (1, 2, 3) for tree in small_trees(size)}
    return sorted((tree for tree in trees if not nullable(tree)), key=repr)


@pytest.mark.parametrize("part", range(4))
def test_every_small_pattern_on_every_small_text(part: int) -> None:
    """Match and hold-back, character by character; every cut of the longest texts."""
    trees = all_small_trees()[part::4]
    texts = ["".join(t) for n in range(1, 6) for t in itertools.product("ab", repeat=n)]
    count = 0
    for tree in trees:
        pattern = written(tree)
        for text in texts:
            stream = stream_of([pattern])
            for end, letter in enumerate(text, 1):
                _, match = stream.feed(letter)
                found = first_match([pattern], text[:end], at_end=False)
                assert (match and (0, match.start, match.end)) == found, (pattern, text[:end])
                if match:
                    break
                hold = joint_hold([tree], text[:end], "abc", "longest")
                assert hold is not None
                assert stream.held == text[hold:end], (pattern, text[:end])
                count += 1
    assert count > 1000


def random_tree(r: random.Random, depth: int = 0) -> Any:
    pick = r.random()
    if depth > 2 or pick < 0.45:
        return ("set", r.choice(["a", "b", "c", "a", "b", "ab", "bc", "abc"]))
    if pick < 0.65:
        return seq(random_tree(r, depth + 1), random_tree(r, depth + 1))
    if pick < 0.8:
        return alt(random_tree(r, depth + 1), random_tree(r, depth + 1))
    item = random_tree(r, depth + 1)
    return r.choice(
        [("star", item), seq(item, ("star", item)), alt(item, EMPTY), seq(item, alt(item, EMPTY))]
    )


@pytest.mark.parametrize("seed", range(4))
def test_three_oracles_on_random_sets(seed: int) -> None:
    r = random.Random(seed)
    given_up = 0
    for number in range(60):
        trees = [
            seq(random_tree(r), random_tree(r)) if r.random() < 0.5 else random_tree(r)
            for _ in range(r.choice([1, 1, 2, 3]))
        ]
        trees = [tree for tree in trees if not nullable(tree)]
        patterns = [written(tree) for tree in trees]
        tie = r.choice(["longest", "first"])
        for _ in range(3 if trees else 0):
            text = "".join(r.choice("abc") for _ in range(r.randint(1, 6)))
            stream = stream_of(patterns, tie)
            for end, letter in enumerate(text, 1):
                if stream.feed(letter)[1]:
                    break
                hold = end - len(stream.held)
                joint = joint_hold(trees, text[:end], "abcd", tie)
                given_up += joint is None
                assert joint in (None, hold), (patterns, tie, text[:end])
                if number % 10 == 0:
                    assert hold <= brute_hold(patterns, text[:end], "abc", 3, tie)
            for chunks in itertools.islice(cuttings(text), 0, None, 3):
                assert outcome(stream_of(patterns, tie), chunks) == expected(patterns, text, tie)
    assert given_up < 10


LOOKS = [
    r"a\b", r"\ba", r"\ba\b", r"^a", r"a$", r"^a$", r"a\n?$", r"a\b!", r"\n^a", r"a$\n", r"a(?:\b|b)", r"(?:^|b)a", r"!\b", r"!$",
    r"[a!]+?$",
    r"\b[ab]{2}\b", r"a(?:\bb|!)", r"(?:a\b)?!", r"\n$", r"^\n", r"a\b\b", r"(?:\ba|b\b)!?", r"\b!\b", r"^[^a]", r".\b", r"^^b$$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", LOOKS)
def test_look_around_at_every_border(pattern: str) -> None:
    """The match in all small texts; and what is held is exactly what some continuation needs."""
    letters = "ab!\n"
    for length in range(1, 5):
        for text in map("".join, itertools.product(letters, repeat=length)):
            assert outcome(stream_of([pattern]), list(text)) == expected([pattern], text, "longest")
            stream = stream_of([pattern])
            if length < 4 and not stream.feed(text)[1]:
                hold = brute_hold([pattern], text, letters, 2 if length == 3 else 3, "longest")
                assert stream.held == text[hold:], text


@pytest.mark.parametrize("seed", range(4))
def test_look_around_in_sets(seed: int) -> None:
    r = random.Random(seed)
    for _ in range(40):
        patterns = r.sample([*LOOKS, "ab", "b!", "!", r"[^a]b"], r.choice([2, 3]))
        tie = r.choice(["longest", "first"])
        for _ in range(6):
            text = "".join(r.choice("ab!\n") for _ in range(r.randint(1, 5)))
            for chunks in itertools.islice(cuttings(text), 0, None, 3):
                assert outcome(stream_of(patterns, tie), chunks) == expected(patterns, text, tie)
            stream = stream_of(patterns, tie)
            if not stream.feed(text)[1]:
                hold = brute_hold(patterns, text, "ab!\n", 2, tie)
                assert text[hold:] in stream.held, (patterns, text)


@pytest.mark.parametrize("seed", range(2))
def test_arming_by_itself(seed: int) -> None:
    """The first stop that may fire is the first whose end is greater than N."""
    r = random.Random(seed)
    for _ in range(60):
        patterns = r.sample([*LOOKS, "ab", "[ab]b", "a.b"], r.choice([1, 2]))
        text = "".join(r.choice("ab!\n") for _ in range(r.randint(1, 6)))
        armed_from = r.randint(0, 4)
        stops = StopSet([Pattern(p, max_hold=1000) for p in patterns])
        want = first_match(patterns, text, armed_from=armed_from)
        for chunks in itertools.islice(cuttings(text), 0, None, 5):
            emitted, match = outcome(stops.stream(min_chars=armed_from), chunks)
            assert match == want, (patterns, text, armed_from)
            assert emitted == (text if want is None else text[: want[1]])


# -- literals through the engine of patterns
# -----------------------------------------------------------------------------------------------------------


def as_pattern(stop: str | bytes) -> Any:
    return Pattern(re.escape(stop))


def escapable(case: Case) -> bool:
    """Not where a str and bytes count as equal; nor what is refused, or takes the reference minutes."""
    included = case.options.get("include_stop")
    literals = [*case.stops, *(included if isinstance(included, list) else [])]
    pieces = [*case.stops, *(step for step in case.chunks if not isinstance(step, Call))]
    return (
        "error" not in case.expect
        and len({type(literal) for literal in literals}) == 1
        and not isinstance(included, (str, bytes))
        and sum(map(len, pieces)) <= 250
    )


ESCAPABLE = [case for case in load(LITERALS) if escapable(case)]


def test_nearly_all_literals_can_be_written_as_patterns() -> None:
    assert len(ESCAPABLE) > 300


@pytest.mark.parametrize("case", ESCAPABLE, ids=lambda case: case.name)
def test_the_corpus_of_literals(case: Case) -> None:
    """Each literal as a pattern: the same outcome, feed for feed."""
    options = dict(case.options)
    if isinstance(options.get("include_stop"), list):
        options["include_stop"] = [as_pattern(stop) for stop in options["include_stop"]]
    twin = Case(
        case.name, [as_pattern(stop) for stop in case.stops], case.chunks, options, case.expect
    )
    plain, ours = open_stream(reference, case), open_stream(reference, twin)
    assert ours.stops.bounds == plain.stops.bounds
    assert ours.stops.unreachable == plain.stops.unreachable
    for step in [*case.chunks, None]:
        if isinstance(step, Call):
            getattr(plain, step.name)()
            getattr(ours, step.name)()
        elif step is None:
            assert ours.flush() == plain.flush()
        else:
            assert ours.feed(step)[0] == plain.feed(step)[0]
        for name in ("held", "region", "armed"):
            assert getattr(ours, name) == getattr(plain, name), step
        for name in ("index", "start", "end", "start_chunk", "end_chunk", "rest", "cut"):
            assert getattr(ours.match, name, None) == getattr(plain.match, name, None)
