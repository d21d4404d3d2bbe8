"""Section 11.3: what is in the running. Every continuation of a text is tried, up to the ones that
cannot be told apart.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .words import BORDER, KINDS, Alphabet, Places, Words

Sets = tuple[Places, ...]  # one set of places for each stop
NOTHING: Places = frozenset()


@dataclass(frozen=True)
class Future:
    """One occurrence that has begun, and all that decides whether it can still be the match."""

    index: int  # whose word it is
    own: Places
    better: Sets  # occurrences that would be the match if they ended with it
    worse: Sets  # occurrences that are the match only if they end before it
    before: str  # the kind of the last character
    counted: bool  # whether the stream was armed when that character was read
    missing: int | None  # characters until it is armed; None: until arm() is called
    tail: str  # the end of the window, as far as an opener may have begun in it


class Machine:
    """What can be computed from stops, `tie` and openers alone."""

    def __init__(
        self,
        words: tuple[Words, ...],
        max_holds: tuple[int | None, ...],
        endless: tuple[bool, ...],
        tie: str,
        openers: tuple[str, ...],
        *,
        raw: bool,
        made_by: tuple[Any, ...],
        plain: Machine | None = None,
    ) -> None:
        self._made_by = made_by  # a function and its arguments: how a pickle makes it again
        self.words = words
        self.tie = tie
        self.openers = openers
        self.alphabet = Alphabet(words, openers, raw=raw)
        self._max_holds = max_holds
        self._endless = endless
        self._can_win: dict[Future, bool] = {}
        self._plain = plain or self  # the same without openers: bounds know nothing of regions

    def __reduce__(self) -> tuple[Any, ...]:
        return self._made_by[0], self._made_by[1:]

    def beats(self, start: int, index: int, other_start: int, other_index: int) -> bool:
        """Of two occurrences that end together and are known together: is the first one the match?"""
        if self.tie == "first":
            return (index, start) < (other_index, other_start)
        return (start, index) < (other_start, other_index)

    # -- continuations
    # ---------------------------------------------------------------------------------------------

    def can_win(self, future: Future) -> bool:
        """Is there a continuation of which it is the match?"""
        if future in self._can_win:
            return self._can_win[future]
        seen, todo = {future}, [future]
        while todo:
            for outcome in self.after_one_more(todo.pop()):
                if outcome is True or (outcome is not False and self._can_win.get(outcome)):
                    self._can_win[future] = True
                    return True
                if isinstance(outcome, Future) and outcome not in seen:
                    seen.add(outcome)
                    todo.append(outcome)
        self._can_win.update(dict.fromkeys(seen, False))
        return False

    def after_one_more(self, now: Future) -> Iterator[Future | bool]:
        """What comes of it with each next character, and with the end of the text: it is the match,
        it cannot be any more, or it goes on.
        """
        if now.counted and self._ends(now, BORDER) == "own":
            yield True
        for character, kind in self.alphabet.symbols:
            ended = self._ends(now, kind) if now.counted else None
            if ended is not None:
                yield ended == "own"
                continue
            yield from self._read(now, character, kind)

    def _ends(self, now: Future, after: str) -> str | None:
        """Of the occurrences that wait for the next character: which one is the match?"""
        better, own, worse = (
            any(
                words.complete(places, now.before, after)
                for words, places in zip(self.words, sets, strict=True)
            )
            for sets in (now.better, self._alone(now), now.worse)
        )
        return "better" if better else "own" if own else "worse" if worse else None

    def _alone(self, now: Future) -> Sets:
        return tuple(now.own if index == now.index else NOTHING for index in range(len(self.words)))

    def _read(self, now: Future, character: str, kind: str) -> Iterator[Future | bool]:
        # An occurrence may begin with this character. It begins later than this one: of two that end
        # together it loses, except with tie="first" if its stop is listed earlier.
        def step(sets: Sets, newcomers: bool) -> Sets:
            return tuple(
                words.step(
                    places | (words.begin if self._joins(index, now, newcomers) else NOTHING),
                    now.before,
                    character,
                    kind,
                )
                for index, (words, places) in enumerate(zip(self.words, sets, strict=True))
            )

        own = self.words[now.index].step(now.own, now.before, character, kind)
        # What stands where this occurrence stands ends when it ends, and makes no difference.
        worse = tuple(
            places - own if index == now.index else places
            for index, places in enumerate(step(now.worse, False))
        )
        after = replace(now, own=own, better=step(now.better, True), worse=worse, before=kind)
        for armed in {now.missing == 0, now.missing in (0, None)}:
            if armed:
                known = [
                    any(
                        words.known(places, kind)
                        for words, places in zip(self.words, sets, strict=True)
                    )
                    for sets in (after.better, self._alone(after), after.worse)
                ]
                if any(known):
                    yield known[1] and not known[0]
                    continue
            tail = now.tail + character
            if not own or any(tail.endswith(opener) for opener in self.openers):
                yield False
                continue
            keep = max(map(len, self.openers), default=1) - 1
            missing = 0 if armed else None if now.missing is None else now.missing - 1
            yield replace(
                after,
                counted=armed,
                missing=missing,
                tail=tail[len(tail) - keep :] if keep < len(tail) else tail,
            )

    def _joins(self, index: int, now: Future, better: bool) -> bool:
        return (self.tie == "first" and index < now.index) == better

    # -- section 11.3: bounds, and what is unreachable
    # ---------------------------------------------------------------------------------------------

    @functools.cached_property
    def bounds(self) -> tuple[int | None, ...]:
        """How many characters each stop can hold at most in an armed stream; `None`: no bound."""
        return tuple(
            bound if limit is None else limit if bound is None else min(bound, limit)
            for bound, limit in zip(self._plain._bounds_and_reach[0], self._max_holds, strict=True)
        )

    @functools.cached_property
    def unreachable(self) -> tuple[int, ...]:
        """Which stops are the match of no text."""
        return tuple(i for i, reached in enumerate(self._plain._bounds_and_reach[1]) if not reached)

    @functools.cached_property
    def hold_limits(self) -> tuple[int | None, ...]:
        """For how many characters an occurrence is held: `max_hold`, or the bound of a pattern
        without a longest word.
        """
        return tuple(
            bound if endless else limit
            for bound, endless, limit in zip(
                self.bounds, self._endless, self._max_holds, strict=True
            )
        )

    @functools.cached_property
    def _bounds_and_reach(self) -> tuple[list[int | None], list[bool]]:
        bounds: list[int | None] = []
        reached = []
        for index in range(len(self.words)):
            found = [self._longest(self._fresh(index, before)) for before in KINDS]
            reached.append(any(length is None or length >= 0 for length in found))
            bounds.append(None if None in found else max(0, *(n for n in found if n is not None)))
        return bounds, reached

    def _fresh(self, index: int, before: str) -> Future:
        """An occurrence of no characters yet, at the start of a window."""
        better, worse = (
            tuple(
                words.begin if other != index and (other < index) == wanted else NOTHING
                for other, words in enumerate(self.words)
            )
            for wanted in (True, False)
        )
        return Future(index, self.words[index].begin, better, worse, before, False, 0, "")

    def _longest(self, start: Future) -> int | None:
        """The most characters that it can have while it can still be the match; `None`: any number;
        -1: it can never be.
        """
        if not self.can_win(start):
            return -1
        known: dict[Future, int] = {}
        path: dict[Future, Iterator[Future | bool]] = {start: self.after_one_more(start)}
        best = {start: 0}
        while path:
            now, ways = next(reversed(path.items()))
            way = next(ways, None)
            if way is None:
                path.popitem()
                known[now] = best[now]
                if path:
                    parent = next(reversed(path))
                    best[parent] = max(best[parent], best[now] + 1)
            elif isinstance(way, Future) and self.can_win(way):
                if way in path:
                    return None
                if way in known:
                    best[now] = max(best[now], known[way] + 1)
                else:
                    path[way] = self.after_one_more(way)
                    best[way] = 0
        return known[start]
