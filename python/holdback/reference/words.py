"""Section 11.1: the words of a stop, read one character at a time.

A stop becomes a graph of places. A set of places says how far a text has come in its words, in every
way at once; nothing is optimised, and nothing is decided early.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterable

from .syntax import Alt, Char, Look, Node, Repeat, Seq

# What `\b`, `^` and `$` see of a neighbour: the border of the text, `\n`, a character of `\w`, another.
BORDER, NEWLINE, WORD, OTHER = KINDS = ("border", "newline", "word", "other")

# A place, and the bytes of a character that has begun there (only words of str in a stream of bytes).
Place = tuple[int, str]
Places = frozenset[Place]

MAX_PLACES = 200_000


class Words:
    """The words of one stop.

    Args:
        tree: the pattern; a literal is a sequence of characters.
        utf8: the tree is about characters, the text that is read is their UTF-8, byte by byte.
    """

    def __init__(self, tree: Node, *, utf8: bool) -> None:
        self.utf8 = utf8
        self._free: list[list[tuple[str | None, int]]] = []  # ways on without a character
        self._by_char: list[tuple[Char, int] | None] = []
        begin = self._place()
        self._accept = self._build(tree, begin)
        self.begin: Places = frozenset({(begin, "")})
        self.step = functools.cache(self._step)
        self.complete = functools.cache(self._complete)
        self._prefixes: dict[object, str] = {}
        self._prefix = functools.cache(self._first_alike)

    @property
    def chars(self) -> list[Char]:
        """All sets of characters in it."""
        return [way[0] for way in self._by_char if way]

    # -- the graph
    # ---------------------------------------------------------------------------------------------

    def _place(self) -> int:
        if len(self._free) >= MAX_PLACES:
            raise ValueError(f"a pattern has more than {MAX_PLACES} positions")
        self._free.append([])
        self._by_char.append(None)
        return len(self._free) - 1

    def _on(self, place: int, condition: str | None = None) -> int:
        new = self._place()
        self._free[place].append((condition, new))
        return new

    def _build(self, node: Node, place: int) -> int:
        """Lead from `place` through the node; return the place behind it."""
        match node:
            case Char():
                place, behind = self._on(place), self._place()
                self._by_char[place] = (node, behind)
                return behind
            case Look():
                return self._on(place, node.kind)
            case Seq():
                for item in node.items:
                    place = self._build(item, place)
                return place
            case Alt():
                behind = self._place()
                for item in node.items:
                    self._free[self._build(item, self._on(place))].append((None, behind))
                return behind
            case Repeat():
                for _ in range(node.low):
                    place = self._build(node.item, place)
                if node.high is None:
                    loop = self._on(place)
                    self._free[self._build(node.item, self._on(loop))].append((None, loop))
                    return self._on(loop)
                behind = self._on(place)
                for _ in range(node.high - node.low):
                    place = self._build(node.item, place)
                    self._free[place].append((None, behind))
                return behind

    # -- reading
    # ---------------------------------------------------------------------------------------------

    def _closure(self, places: Places, before: str, after: str) -> set[Place]:
        """All places that can be reached between two neighbours of these kinds."""
        holds = {
            None: True,
            "b": (before == WORD) != (after == WORD),
            "^": before in (BORDER, NEWLINE),
            "$": after in (BORDER, NEWLINE),
        }
        reached, todo = set(places), [place for place, begun in places if not begun]
        while todo:
            for condition, target in self._free[todo.pop()]:
                if holds[condition] and (target, "") not in reached:
                    reached.add((target, ""))
                    todo.append(target)
        return reached

    def _step(self, places: Places, before: str, character: str, after: str) -> Places:
        """Where these places lead with one more character, which is of the kind `after`."""
        result = set()
        for place, begun in self._closure(places, before, after):
            way = self._by_char[place]
            if way is None:
                continue
            char, target = way
            if not self.utf8:
                if char.has(character):
                    result.add((target, ""))
                continue
            data = (begun + character).encode("latin-1")
            try:
                if char.has(data.decode("utf-8")):
                    result.add((target, ""))
            except UnicodeDecodeError as error:
                if error.reason == "unexpected end of data":
                    result.add((place, self._prefix(begun + character)))
        return frozenset(result)

    def _first_alike(self, begun: str) -> str:
        """The first bytes that were seen to begin characters like these: if all characters that begin
        so are in the same sets, it does not matter which of them it is.
        """
        lead = ord(begun[0])
        missing = (1 if lead < 0xE0 else 2 if lead < 0xF0 else 3) - (len(begun) - 1)
        code = lead & (0x1F, 0x0F, 0x07)[missing + len(begun) - 2]
        for byte in begun[1:]:
            code = code << 6 | ord(byte) & 0x3F
        low, high = code << 6 * missing, (code + 1) << 6 * missing
        # Behind these first bytes, other characters would be too long, or none.
        low = {"\xe0": 0x800, "\xf0": 0x10000}.get(begun, low)
        high = {"\xed": 0xD800, "\xf4": 0x110000}.get(begun, high)
        borders = {chr(low), chr(high - 1)}
        natures = {
            tuple(char.has(chr(code)) for char in self.chars)
            for code in _candidates(self.chars, borders)
            if low <= code < high
        }
        if len(natures) > 1:
            return begun
        special = begun if begun in "\xe0\xed\xf0\xf4" else None  # not every byte may follow
        return self._prefixes.setdefault((missing, special, *natures), begun)

    def _complete(self, places: Places, before: str, after: str) -> bool:
        """Is a word complete here, between these two neighbours?"""
        return bool(places) and (self._accept, "") in self._closure(places, before, after)

    def known(self, places: Places, before: str) -> bool:
        """Is a word complete here, whatever follows?"""
        return all(self.complete(places, before, after) for after in KINDS)


class Alphabet:
    """Which characters make no difference to each other.

    Two characters of one class are in the same sets of all words (and openers) and of one kind, so
    that it is enough to try one of each: `symbols`.
    """

    def __init__(self, words: Iterable[Words], openers: Iterable[str], *, raw: bool) -> None:
        self.raw = raw
        self._opening = frozenset("".join(openers))
        chars = [(char, one.utf8) for one in words for char in one.chars]
        self._chars = tuple(dict.fromkeys(char for char, utf8 in chars if not utf8))
        self._of_utf8 = tuple(dict.fromkeys(char for char, utf8 in chars if utf8))
        self._first: dict[object, str] = {}
        self.symbol = functools.cache(self._symbol)
        self._beyond_ascii = raw and any(
            char.has(chr(code))
            for char in self._of_utf8
            for code in _candidates([char], "\x7f")
            if code > 127
        )
        codes = range(256) if raw else sorted(_candidates(self._chars, self._opening))
        for code in codes:
            self.symbol(chr(code))
        self.symbols = tuple((first, self.kind(first)) for first in self._first.values())

    def _symbol(self, character: str) -> str:
        """The first character of its class."""
        return self._first.setdefault(self._signature(character), character)

    def _signature(self, character: str) -> object:
        bits: list[object] = [self.kind(character), *(char.has(character) for char in self._chars)]
        bits.append(character if character in self._opening else None)
        if self._of_utf8:
            if character < "\x80":
                bits += [char.has(character) for char in self._of_utf8]
            else:
                bits.append(character if self._beyond_ascii else None)
        return tuple(bits)

    def kind(self, character: str) -> str:
        """What look-around sees of it."""
        if character == "\n":
            return NEWLINE
        word = re.compile(r"\w", re.ASCII if self.raw else 0)
        return WORD if word.fullmatch(character) else OTHER


def _candidates(chars: Iterable[Char], single: Iterable[str] = ()) -> set[int]:
    """Code points among which there is one of each class: between two neighbours that the patterns
    mention, one of each kind that `\\w`, `\\d` and `\\s` make.
    """
    chars = list(chars)
    mentions = set(single).union(*(char.mentions for char in chars))
    if any(char.ignore_case for char in chars):
        for letter in list(mentions):
            mentions |= set(letter.lower()) | set(letter.upper())
        mentions |= {chr(code) for code in range(128) if chr(code).isalpha()} | {"\u017f", "\u212a"}
    borders = sorted({0, 10, 11}.union(*({ord(c), ord(c) + 1} for c in mentions)))
    found: set[int] = set()
    for low, high in zip(borders, [*borders[1:], 0x110000], strict=True):
        found.update(code for code, _ in _natures_between(low, high))
    return found


@functools.cache
def _natures_between(low: int, high: int) -> list[tuple[int, object]]:
    """The first code point of each kind in this range."""
    starts, natures = _natures()
    found: dict[object, int] = {}
    at = bisect.bisect_right(starts, low) - 1
    while at < len(starts) and starts[at] < high:
        if natures[at] is not None:  # half of a surrogate pair is no character
            found.setdefault(natures[at], max(low, starts[at]))
        at += 1
    return [(code, nature) for nature, code in found.items()]


@functools.cache
def _natures() -> tuple[list[int], list[object]]:
    """Runs of code points that `\\w`, `\\d`, `\\s` do not tell apart."""
    starts: list[int] = []
    natures: list[object] = []
    for code in range(0x110000):
        letter = chr(code)
        nature = (letter.isalnum() or letter == "_", letter.isdecimal(), letter.isspace())
        kind: object = None if 0xD800 <= code <= 0xDFFF else nature
        if not starts or natures[-1] != kind:
            starts.append(code)
            natures.append(kind)
    return starts, natures


def literal(text: str) -> Node:
    """The tree of a literal."""
    return Seq(
        tuple(Char(re.escape(letter), False, False, False, frozenset(letter)) for letter in text)
    )
