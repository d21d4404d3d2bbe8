"""Section 11: the scanner of sets with patterns. `scan.py` says the same, more simply, of literals alone.

It follows every occurrence that has begun, of every stop, and asks `running.py` whether it can still
be the match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .running import NOTHING, Future, Machine, Sets
from .words import BORDER, Places, Words


@dataclass(frozen=True)
class Occurrence:
    """The beginning of a word, from `start` to the end of the text."""

    start: int
    index: int
    places: Places


@dataclass
class PatternScanner:
    """What has been read, and what decides about the next character.

    The surface is that of `scan.Scanner`.
    """

    machine: Machine
    included: frozenset[int]
    regions: tuple[tuple[str, str], ...]
    min_chars: int | None
    armed_by_hand: bool = True
    region: int | None = None
    window: int = 0
    running_from: int = 0  # no match of a stop that is not included may start in front of this
    given_up: int = 0  # text in front of this is not held for stops
    text: str = ""
    begun: tuple[Occurrence, ...] = ()
    counted: bool = False  # whether the stream was armed when the last character was read

    # -- section 7: arming
    # ---------------------------------------------------------------------------------------------

    @property
    def armed(self) -> bool:
        """Would a stop that ends at the very next character count?"""
        if self.min_chars is not None:
            return len(self.text) + 1 > self.min_chars
        return self.armed_by_hand

    def arm(self) -> None:
        """From now on stops count."""
        self.min_chars, self.armed_by_hand = None, True

    def disarm(self) -> None:
        """From now on stops do not count."""
        self.min_chars, self.armed_by_hand = None, False

    # -- section 11.2: which occurrence is the match
    # ---------------------------------------------------------------------------------------------

    @property
    def _before(self) -> str:
        return self.machine.alphabet.kind(self.text[-1]) if self.text else BORDER

    def read(self, character: str) -> tuple[int, int, int] | None:
        """Read one character; return the index, the start and the end of the match, or `None`.

        A match that ends in front of the character leaves it unread.
        """
        before, after = self._before, self.machine.alphabet.kind(character)
        found = self._decided(after)
        if found is not None:
            return found
        armed = self.armed
        here = len(self.text)
        self.text += character
        self.counted = armed
        if self.region is not None:
            if self._ends_here(self.regions[self.region][1]):
                self.region = None
                self.window = len(self.text)
            return None
        symbol = self.machine.alphabet.symbol(character)
        new = [Occurrence(here, i, words.begin) for i, words in enumerate(self.machine.words)]
        stepped = (
            Occurrence(
                one.start, one.index, self._words(one).step(one.places, before, symbol, after)
            )
            for one in (*self.begun, *new)
        )
        self.begun = tuple(one for one in stepped if one.places)
        if armed:
            found = self._best(
                one for one in self.begun if self._words(one).known(one.places, after)
            )
            if found is not None:
                return found
        for number, (opener, _) in enumerate(self.regions):
            if self._ends_here(opener):
                self.region = number
                self.window = len(self.text)
                self.begun = ()
        return None

    def finish(self) -> tuple[int, int, int] | None:
        """The text is at its end: does that decide for a match?"""
        return self._decided(BORDER)

    def _decided(self, after: str) -> tuple[int, int, int] | None:
        if not self.counted:
            return None
        before = self._before
        return self._best(
            one for one in self.begun if self._words(one).complete(one.places, before, after)
        )

    def _best(self, ending: Iterator[Occurrence]) -> tuple[int, int, int] | None:
        best: Occurrence | None = None
        for one in ending:
            if best is None or self._beats(one, best):
                best = one
        return None if best is None else (best.index, best.start, len(self.text))

    def _beats(self, one: Occurrence, other: Occurrence) -> bool:
        return self.machine.beats(one.start, one.index, other.start, other.index)

    def _words(self, one: Occurrence) -> Words:
        return self.machine.words[one.index]

    def _ends_here(self, marker: str) -> bool:
        return self.text.endswith(marker) and len(self.text) - len(marker) >= self.window

    # -- section 11.3: what is held
    # ---------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Give up what is not in the running, and let go what is not held."""
        end = len(self.text)
        running = [
            one for one in self.begun if one.index not in self.included and self._can_win(one)
        ]
        self.running_from = min((one.start for one in running), default=end)
        self.given_up = min((one.start for one in running if self._holds(one)), default=end)
        self.begun = tuple(
            one
            for one in self.begun
            if one.index in self.included or one.start >= self.running_from
        )

    def _holds(self, one: Occurrence) -> bool:
        limit = self.machine.hold_limits[one.index]
        young = limit is None or len(self.text) - one.start <= limit
        return young and one.start >= self.given_up

    def _can_win(self, one: Occurrence) -> bool:
        missing: int | None = 0 if self.armed_by_hand else None
        if self.min_chars is not None:
            missing = max(0, self.min_chars - len(self.text))
        longest = max((len(opener) for opener, _ in self.regions), default=1)
        window = self.text[self.window :]
        return self.machine.can_win(
            Future(
                index=one.index,
                own=one.places,
                better=self._places(o for o in self.begun if o != one and self._beats(o, one)),
                worse=self._places(o for o in self.begun if o != one and self._beats(one, o)),
                before=self._before,
                counted=self.counted,
                missing=missing,
                tail=window[max(0, len(window) - longest + 1) :],
            )
        )

    def _places(self, occurrences: Iterator[Occurrence]) -> Sets:
        sets = [NOTHING] * len(self.machine.words)
        for one in occurrences:
            sets[one.index] |= one.places
        return tuple(sets)
