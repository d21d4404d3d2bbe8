"""Patterns with arming, regions and inclusion: the reference against a restatement of 11.2 and 11.3 that
looks at the whole text each time and tries every continuation up to the longest word.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from brute import is_word, known_at_end

from holdback.reference import Pattern, StopSet

# No word is longer than three characters, so three more decide about all that has begun (and one more
# about its border).
SHORT = [
    "ab", "a?b!", "a{1,2}b", "b|a!", r"\ba", r"a\b", r"\ba{1,2}\b", "^a", "a$", r"!\b",
    "aba", "[^a]{2}", "a.b", "ba?", r".\b", r"b\n?",
]  # fmt: skip
LETTERS = "ab!\n"
DEPTH = 4


class Brute:
    """One stream: its text, and for each character whether the stream was armed when it was read."""

    def __init__(
        self, patterns: list[str], tie: str, included: set[int], regions: list[tuple[str, str]]
    ) -> None:
        self.patterns, self.tie, self.included, self.regions = patterns, tie, included, regions
        self.text = ""
        self.armed: tuple[bool, ...] = ()
        self.window = 0
        self.asleep: str | None = None  # the closer
        self.running = 0

    def fork(self) -> Brute:
        other = Brute(self.patterns, self.tie, self.included, self.regions)
        other.__dict__.update(self.__dict__)
        return other

    def occurrences(self, seen: str, end: int) -> list[tuple[int, int]]:
        """Index and start of what ends there, and may be the match."""
        return [
            (index, start)
            for index, pattern in enumerate(self.patterns)
            for start in range(self.window, end)
            if (index in self.included or start >= self.running)
            and is_word(pattern, seen, start, end)
        ]

    def best(self, found: list[tuple[int, int]], end: int) -> tuple[int, int, int] | None:
        order = (lambda m: (m[1], m[0])) if self.tie == "longest" else (lambda m: m)
        return (*min(found, key=order), end) if found else None

    def decided(self, after: str) -> tuple[int, int, int] | None:
        end = len(self.text)
        if self.asleep or not self.armed or not self.armed[-1]:
            return None
        late = [
            (index, start)
            for index, start in self.occurrences(self.text + after, end)
            if not known_at_end(self.patterns[index], self.text, start, end)
        ]
        return self.best(late, end)

    def read(self, letter: str, armed: bool) -> tuple[int, int, int] | None:
        found = self.decided(letter)
        if found:
            return found
        self.text += letter
        self.armed += (armed,)
        end = len(self.text)
        if self.asleep:
            if self.text[self.window :].endswith(self.asleep):
                self.asleep, self.window = None, end
            return None
        if armed:
            known = [
                (index, start)
                for index, start in self.occurrences(self.text, end)
                if known_at_end(self.patterns[index], self.text, start, end)
            ]
            if known:
                return self.best(known, end)
        for opener, closer in self.regions:
            if self.text[self.window :].endswith(opener):
                self.asleep, self.window = closer, end
        return None

    def first(self, more: str, armed: list[bool]) -> tuple[int, int, int] | None:
        """The match if so much follows, and then the end."""
        future = self.fork()
        for letter, on in zip(more, armed, strict=True):
            found = future.read(letter, on)
            if found:
                return found
        return future.decided("")

    def settle(self, plans: list[tuple[str, list[bool]]]) -> None:
        """What is in the running."""
        starts = [len(self.text)]
        for more, armed in plans:
            match = self.first(more, armed)
            if match and match[0] not in self.included:
                starts.append(match[1])
        self.running = min(starts)


def continuations(missing: int | None) -> list[tuple[str, list[bool]]]:
    """Everything that may follow, and when the stream is armed: after so many more characters, or
    (`None`) at any moment.
    """
    result = []
    for length in range(DEPTH + 1):
        for more in itertools.product(LETTERS, repeat=length):
            moments = range(length + 1) if missing is None else [missing]
            result += [("".join(more), [at >= m for at in range(length)]) for m in moments]
    return result


def compare(
    patterns: list[str],
    tie: str,
    included: set[int],
    regions: list[tuple[str, str]],
    steps: list[str],
    min_chars: int | None,
) -> None:
    made = [Pattern(pattern) for pattern in patterns]
    options: dict[str, Any] = {"include_stop": [made[index] for index in included]}
    if regions:
        options["ignore_inside"] = regions
    if min_chars is not None:
        options["min_chars"] = min_chars
    stream = StopSet(made, tie=tie).stream(**options)
    brute = Brute(patterns, tie, included, regions)
    by_hand: bool | None = None
    for step in steps:
        read = len(brute.text)
        if step in ("arm", "disarm"):
            getattr(stream, step)()
            by_hand, min_chars = step == "arm", None
            found = None
        else:
            armed = read + 1 > min_chars if min_chars is not None else by_hand is not False
            found = brute.read(step, armed)
            _, match = stream.feed(step)
            got = match and (match.index, match.start, match.end)
            assert got == found, (patterns, tie, included, regions, steps, brute.text)
        if found:
            return
        missing = 0 if by_hand is not False else None
        if min_chars is not None:
            missing = max(0, min_chars - len(brute.text))
        brute.settle(continuations(missing))
        if step in ("arm", "disarm"):
            stream.feed("")  # what a call has let go comes out with the next feed
        assert stream.held == brute.text[brute.running :], (
            patterns, tie, included, regions, steps, brute.text,
        )  # fmt: skip
    stream.flush()
    found = brute.decided("")
    got = stream.match and (stream.match.index, stream.match.start, stream.match.end)
    assert got == found, (patterns, tie, included, regions, steps)


REGIONS: list[list[tuple[str, str]]] = [[], [("!", "b")], [("a!", "\n")], [("b", "!")]]


@pytest.mark.parametrize("seed", range(6))
def test_scopes(seed: int) -> None:
    r = random.Random(seed)
    for _ in range(7):
        patterns = r.sample(SHORT, r.choice([1, 2, 2, 3]))
        steps = [r.choice(LETTERS) for _ in range(r.randint(2, 6))]
        min_chars = r.randint(1, 4) if seed % 3 == 0 else None
        if seed % 3 == 1:
            for _ in range(2):
                steps.insert(r.randint(0, len(steps)), r.choice(["arm", "disarm", "disarm"]))
        included = {index for index in range(len(patterns)) if r.random() < 0.25}
        regions = r.choice(REGIONS) if seed % 3 == 2 or r.random() < 0.3 else []
        compare(patterns, r.choice(["longest", "first"]), included, regions, steps, min_chars)
