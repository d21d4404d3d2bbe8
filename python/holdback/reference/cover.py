"""`docs/filter.md`, sections 1 to 4: which characters are covered, and what is settled.

Everything that has begun is followed, of every rule and from every place, and every match that becomes
known is added to the regions. What may still come of it is found by trying every continuation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .words import BORDER, KINDS, Alphabet, Places, Words

Match = tuple[int, int, int]  # start, end, rule


class Reading:
    """What can be asked of one literal or pattern in a filter."""

    def __init__(self, words: Words, alphabet: Alphabet) -> None:
        self.words = words
        self._alphabet = alphabet
        self._unfinished: dict[tuple[Places, str], bool] = {}

    def ways(self, places: Places, before: str) -> Iterator[tuple[bool, Places, str]]:
        """Each next character: does it decide that a word was complete in front of it; and where does
        it lead?
        """
        for character, kind in self._alphabet.symbols:
            decided = self.words.complete(places, before, kind)
            yield decided, self.words.step(places, before, character, kind), kind

    def unfinished(self, places: Places, before: str) -> bool:
        """Is there a continuation with a word that is not known yet?"""
        start = places, before
        if start not in self._unfinished:
            seen, todo = {start}, [start]
            found = False
            while todo and not found:
                places, before = todo.pop()
                found = not self.words.known(places, before) and any(
                    self.words.complete(places, before, after) for after in KINDS
                )
                for _, further, kind in self.ways(places, before):
                    found = found or self.words.known(further, kind)
                    if further and (further, kind) not in seen:
                        seen.add((further, kind))
                        todo.append((further, kind))
            self._unfinished[start] = found
        return self._unfinished[start]

    def bound(self) -> int | None:
        """How many characters can be uncertain at most; `None`: any number."""
        lengths: dict[tuple[Places, str], int] = {}
        path: set[tuple[Places, str]] = set()

        def further(places: Places, before: str) -> int:
            """The most characters that can be added while nothing becomes known."""
            now = places, before
            if now in path:
                raise RecursionError
            if now not in lengths:
                path.add(now)
                lengths[now] = max(
                    (
                        1 + further(then, kind)
                        for decided, then, kind in self.ways(places, before)
                        if not self._known(decided, places, before)
                        and then
                        and not self.words.known(then, kind)
                        and self.unfinished(then, kind)
                    ),
                    default=0,
                )
                path.discard(now)
            return lengths[now]

        todo = [(self.words.begin, before) for before in KINDS]
        seen = set(todo)
        longest = 0
        try:
            while todo:
                places, before = todo.pop()
                certain = places == self.words.begin or self.words.known(places, before)
                if certain and self.unfinished(places, before):
                    longest = max(longest, further(places, before))
                for decided, then, kind in self.ways(places, before):
                    if not then:
                        continue
                    late = self._known(decided, places, before)
                    if late and not self.words.known(then, kind) and self.unfinished(then, kind):
                        longest = max(longest, 1 + further(then, kind))
                    if (then, kind) not in seen:
                        seen.add((then, kind))
                        todo.append((then, kind))
        except RecursionError:
            return None
        return longest

    def _known(self, decided: bool, places: Places, before: str) -> bool:
        return decided and not self.words.known(places, before)


@dataclass(frozen=True)
class Literals:
    """The opener and the closer of a `Between`."""

    open: str
    close: str
    redact_unclosed: bool


@dataclass(frozen=True)
class Begun:
    """A rule that has begun at `start`."""

    rule: int
    start: int
    places: Places
    sure: int  # what lies from here on is uncertain


@dataclass(frozen=True)
class Region:
    """Matches that share characters, and the one that names it."""

    start: int
    end: int
    label_end: int
    rule: int


class Cover:
    """What was read, which regions there are, and from where on nothing is settled.

    Args:
        rules: what each rule reads: a word reader, or a `Between`.
        limits: for each rule its `max_hold`.
        emits: for each rule whether it emits on overflow.
    """

    def __init__(
        self,
        rules: tuple[Reading | Literals, ...],
        alphabet: Alphabet,
        limits: tuple[int | None, ...],
        emits: tuple[bool, ...],
    ) -> None:
        self.rules = rules
        self.alphabet = alphabet
        self.limits = limits
        self.emits = emits
        self.text = ""
        self.begun: tuple[Begun, ...] = ()
        self.regions: tuple[Region, ...] = ()
        self.behind = (0,) * len(
            rules
        )  # of each Between where its previous match, or its opener, ends
        self.inside: tuple[Begun | None, ...] = (None,) * len(rules)

    # -- reading
    # ---------------------------------------------------------------------------------------------

    @property
    def _before(self) -> str:
        return self.alphabet.kind(self.text[-1]) if self.text else BORDER

    def read(self, character: str) -> None:
        """Read one character."""
        before, after = self._before, self.alphabet.kind(character)
        self._decide(after)
        here = len(self.text)
        self.text += character
        new = [
            Begun(number, here, rule.words.begin, here)
            for number, rule in enumerate(self.rules)
            if isinstance(rule, Reading)
        ]
        symbol = self.alphabet.symbol(character)
        going = []
        for one in (*self.begun, *new):
            words = self._reading(one).words
            one = replace(one, places=words.step(one.places, before, symbol, after))
            if words.known(one.places, after):
                one = self._complete(one, here, here + 1)
            if one.places and self._reading(one).unfinished(one.places, after):
                going.append(self._overflow(one))
        self.begun = tuple(going)
        for number, rule in enumerate(self.rules):
            if isinstance(rule, Literals):
                self._read_between(number, rule)

    def _reading(self, one: Begun) -> Reading:
        rule = self.rules[one.rule]
        assert isinstance(rule, Reading)
        return rule

    def _decide(self, after: str) -> None:
        """What waited for the next character, or the end."""
        before, end = self._before, len(self.text)
        self.begun = tuple(
            self._complete(one, end, end)
            if one.sure < end and self._reading(one).words.complete(one.places, before, after)
            else one
            for one in self.begun
        )

    def _complete(self, one: Begun, seen: int, end: int) -> Begun:
        # The match is what it held when so much was seen, which after an overflow is not all of it.
        start = self.holds_from(one, seen)
        self._add(start, end, one.rule)
        return replace(one, start=start, sure=end)

    def _overflow(self, one: Begun) -> Begun:
        limit = self.limits[one.rule]
        if limit is not None and not self.emits[one.rule] and len(self.text) - one.sure > limit:
            self._add(one.start, len(self.text), one.rule)
        return one

    def _read_between(self, number: int, rule: Literals) -> None:
        end, inside = len(self.text), self.inside[number]
        seen = self.text[self.behind[number] :]
        if inside is not None:
            if rule.redact_unclosed:
                self._add(inside.start, end, number)
            if seen.endswith(rule.close):
                self._add(self.holds_from(inside, end - 1), end, number)
                self._move(number, None)
            elif not rule.redact_unclosed:
                self._move(number, self._overflow(inside), self.behind[number])
        elif seen.endswith(rule.open):
            start = end - len(rule.open)
            one = Begun(number, start, frozenset(), start)
            if rule.redact_unclosed:
                self._add(start, end, number)
            else:
                one = self._overflow(one)
            self._move(number, one)

    def _move(self, number: int, inside: Begun | None, behind: int | None = None) -> None:
        end = len(self.text) if behind is None else behind
        self.inside = (*self.inside[:number], inside, *self.inside[number + 1 :])
        self.behind = (*self.behind[:number], end, *self.behind[number + 1 :])

    def finish(self, *, redact: bool) -> None:
        """The end of the text. With `redact` all that has begun counts as a match."""
        unfinished = list(self.unfinished())
        self._decide(BORDER)
        if redact:
            for one in unfinished:
                self._add(self.holds_from(one, len(self.text)), len(self.text), one.rule)
        self.begun = ()
        self.inside = (None,) * len(self.rules)
        self.behind = (len(self.text),) * len(self.rules)

    # -- regions
    # ---------------------------------------------------------------------------------------------

    def _add(self, start: int, end: int, rule: int) -> None:
        if start >= end:
            return
        parts = [region for region in self.regions if start < region.end and region.start < end]
        parts.append(Region(start, end, end, rule))
        label = min(parts, key=lambda part: (part.start, -part.label_end, part.rule))
        joined = Region(label.start, max(part.end for part in parts), label.label_end, label.rule)
        rest = [region for region in self.regions if region not in parts]
        self.regions = tuple(sorted([*rest, joined], key=lambda region: region.start))

    # -- what is settled
    # ---------------------------------------------------------------------------------------------

    def unfinished(self) -> Iterator[Begun]:
        """All that has begun."""
        yield from self.begun
        for number, rule in enumerate(self.rules):
            if not isinstance(rule, Literals):
                continue
            inside = self.inside[number]
            if inside is not None:
                yield inside
            else:
                for start in range(self.behind[number], len(self.text)):
                    if rule.open.startswith(self.text[start:]):
                        yield Begun(number, start, frozenset(), start)
                        break

    def holds_from(self, one: Begun, seen: int) -> int:
        """From where on it holds when so much was seen."""
        limit = self.limits[one.rule]
        if limit is not None and self.emits[one.rule] and seen - one.sure > limit:
            return seen - limit
        return one.start

    def settled(self) -> tuple[int, frozenset[int]]:
        """The place from which on nothing is settled, and the rules that have begun there."""
        end = len(self.text)
        holding = [(self.holds_from(one, end), one.rule) for one in self.unfinished()]
        first = min((start for start, _ in holding), default=end)
        return first, frozenset(rule for start, rule in holding if start == first)
