"""Sections 1, 7 and 8: which stop ends the stream; sections 2 and 7: what is held for stops.

The scanner reads one character at a time and keeps all of them. It is a plain value: a copy of it
can read a text that has not come yet, which is how it finds out whether a stop "could still fire".
"""

from __future__ import annotations

import copy
from dataclasses import dataclass


@dataclass
class Scanner:
    """What has been read, and what decides about the next character.

    Offsets count characters from the start of the stream.
    """

    stops: tuple[str, ...]
    tie: str
    included: frozenset[int]  # the indices of the stops that are emitted
    regions: tuple[tuple[str, str], ...]
    min_chars: int | None  # the N of min_chars, until arm() or disarm() ends its rule
    armed_by_hand: bool = True
    region: int | None = None  # the region the stream is asleep in
    window: int = 0  # stops and markers must lie behind this offset (section 8)
    given_up: int = 0  # text in front of this is no longer held for stops (sections 2 and 7)
    text: str = ""

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

    # -- sections 1 and 8: one character
    # -------------------------------------------------------------------------------

    def read(self, character: str) -> tuple[int, int, int] | None:
        """Read one character; return the index, the start and the end of the stop that ends the
        stream here, or ``None``.
        """
        armed = self.armed
        self.text += character
        if self.region is not None:  # asleep: rule 2
            if self._ends_here(self.regions[self.region][1]):
                self.region = None
                self.window = len(self.text)
            return None
        if armed:  # awake: rule 1, first half
            firing = [index for index in range(len(self.stops)) if self._may_fire_here(index)]
            if firing:
                index = self._decide_tie(firing)
                return index, len(self.text) - len(self.stops[index]), len(self.text)
        for number, (opener, _) in enumerate(self.regions):  # awake: rule 1, second half
            if self._ends_here(opener):
                self.region = number
                self.window = len(self.text)
        return None

    def finish(self) -> tuple[int, int, int] | None:
        """The end of the text decides nothing about literals."""
        return None

    def _ends_here(self, literal: str) -> bool:
        """Does it end at the last character, and lie wholly in the window?"""
        return self.text.endswith(literal) and len(self.text) - len(literal) >= self.window

    def _may_fire_here(self, index: int) -> bool:
        if not self._ends_here(self.stops[index]):
            return False
        # "A match never reaches into text that was emitted": its cut would be in front of it. An
        # included stop is cut behind its end, so nothing has to be taken back for it.
        return index in self.included or len(self.text) - len(self.stops[index]) >= self.given_up

    def _decide_tie(self, firing: list[int]) -> int:
        # All of them end here. Equal stops count under the lower index: of equals, max() returns
        # the first.
        if self.tie == "first":
            return min(firing)
        return max(firing, key=lambda index: len(self.stops[index]))

    # -- sections 2 and 7: hold-back for stops
    # -------------------------------------------------------------------------

    def held_from(self) -> int:
        """Where the longest suffix begins that is a proper prefix of a stop, not included, that
        could still fire.
        """
        end = len(self.text)
        if self.region is not None:  # section 8: asleep, nothing is held for matching
            return end
        for start in range(max(self.window, self.given_up), end):
            suffix = self.text[start:]
            for index, stop in enumerate(self.stops):
                proper_prefix = len(suffix) < len(stop) and stop.startswith(suffix)
                if proper_prefix and index not in self.included and self._could_fire(index, start):
                    return start
        return end

    def _could_fire(self, index: int, start: int) -> bool:
        """Stop ``index`` has begun at ``start``.

        Would it end the stream, if the rest of it came next?
        """
        missing = self.stops[index][len(self.text) - start :]
        # After disarm() the caller may arm again in front of any character that is missing. Armed
        # streams, and streams that arm by themselves, are taken to stay as they are.
        waits_for_arm = self.min_chars is None and not self.armed_by_hand
        for moment in range(len(missing)) if waits_for_arm else [None]:
            future = copy.copy(self)
            match = None
            for position, character in enumerate(missing):
                if position == moment:
                    future.arm()
                match = future.read(character)
                if match is not None:
                    break
            if match is not None and match[:2] == (index, start):
                return True
        return False

    def settle(self) -> None:
        """Give up what is not held: from here on no match may begin in it.

        Done after each character and each ``arm()`` and ``disarm()``, so that what can match never
        depends on where the chunks were cut.
        """
        self.given_up = self.held_from()
