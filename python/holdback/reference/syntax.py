"""Section 11.1: a pattern's text, read into a tree; what section 11.5 refuses, with its position.

Only the syntax that Python's `re` shares with `regex-syntax` is known here, and a character class is
asked of `re` itself, one character at a time. What only the other side knows (`\\p{Greek}`, classes
inside classes, `(?x)`) is a `NotImplementedError`: the reference then has no opinion.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from typing import TypeAlias

MAX_REPEAT = 1_000
MAX_DEPTH = 100  # of groups and stacked repeats; the contract asks for 50
ENDLESS = float("inf")


@dataclass(frozen=True)
class Char:
    """One character out of a set.

    `source` is the literal, escape or class as it stands in the pattern; `mentions` are the
    characters that its text names, where the set may begin or end.
    """

    source: str
    ignore_case: bool
    dot_all: bool
    raw: bool  # the pattern is bytes: characters 0 to 255, classes of ASCII
    mentions: frozenset[str]

    def has(self, character: str) -> bool:
        """Is it in the set?"""
        return _has(self, character)


@dataclass(frozen=True)
class Look:
    """`b`, `^` or `$`: a condition on the two characters around a place."""

    kind: str


@dataclass(frozen=True)
class Seq:
    """One after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Alt:
    """One or the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """Again and again; `high` is `None` without a limit."""

    item: Node
    low: int
    high: int | None


Node: TypeAlias = Char | Look | Seq | Alt | Repeat


@functools.lru_cache(maxsize=1 << 16)
def _has(char: Char, character: str) -> bool:
    flags = (re.IGNORECASE if char.ignore_case else 0) | (re.DOTALL if char.dot_all else 0)
    if char.raw:
        source, text = char.source.encode("latin-1"), character.encode("latin-1")
        return re.compile(source, flags).fullmatch(text) is not None
    return re.compile(char.source, flags).fullmatch(character) is not None


def shortest(node: Node) -> int:
    """The length of the shortest word if every look-around holds."""
    match node:
        case Char():
            return 1
        case Look():
            return 0
        case Seq():
            return sum(map(shortest, node.items))
        case Alt():
            return min(map(shortest, node.items))
        case Repeat():
            return shortest(node.item) * node.low


def longest(node: Node) -> float:
    """The length of the longest word if every look-around holds, or `ENDLESS`."""
    match node:
        case Char():
            return 1
        case Look():
            return 0
        case Seq():
            return sum(map(longest, node.items))
        case Alt():
            return max(map(longest, node.items))
        case Repeat():
            item = longest(node.item)
            return 0 if item == 0 else item * (ENDLESS if node.high is None else node.high)


def looks(node: Node) -> set[str]:
    """Which kinds of look-around it has."""
    match node:
        case Char():
            return set()
        case Look():
            return {node.kind}
        case Repeat():
            return looks(node.item)
        case _:
            return set().union(*map(looks, node.items))


@dataclass(frozen=True)
class Flags:
    """What `(?...)` has switched on or off."""

    ignore_case: bool
    dot_all: bool = False
    lines: bool = True
    carriage: bool = False
    unicode: bool = True


def parse(pattern: str | bytes, *, ignore_case: bool) -> tuple[Node, int | None]:
    """The tree of a pattern, and the position of its first lazy repeat.

    Raises:
        ValueError: the pattern, what is wrong with it, and where.
    """
    if isinstance(pattern, str) and any("\ud800" <= c <= "\udfff" for c in pattern):
        raise ValueError(f"pattern {pattern!r} has a lone surrogate")
    parser = _Parser(pattern)
    tree = parser.whole(Flags(ignore_case))
    if shortest(tree) == 0:
        raise ValueError(
            f"pattern {pattern!r} can match the empty text: write it so that it has at least one character"
        )
    return tree, parser.lazy_at


class _Parser:
    def __init__(self, pattern: str | bytes) -> None:
        self.given = pattern
        self.raw = isinstance(pattern, bytes)
        self.text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
        self.at = 0
        self.depth = 0
        self.lazy_at: int | None = None

    def bad(self, what: str, position: int) -> ValueError:
        return ValueError(f"pattern {self.given!r}: {what} at position {position}")

    def sees(self, piece: str) -> bool:
        return self.text.startswith(piece, self.at)

    def takes(self, piece: str) -> bool:
        if self.sees(piece):
            self.at += len(piece)
            return True
        return False

    # -- structure
    # ---------------------------------------------------------------------------------------------

    def whole(self, flags: Flags) -> Node:
        tree = self.alternatives(flags)
        if self.at < len(self.text):
            raise self.bad("a ) that closes nothing", self.at)
        return tree

    def alternatives(self, flags: Flags) -> Node:
        items = []
        while True:
            item, flags = self.sequence(flags)  # a flag set in one alternative holds in the next
            items.append(item)
            if not self.takes("|"):
                return items[0] if len(items) == 1 else Alt(tuple(items))

    def sequence(self, flags: Flags) -> tuple[Node, Flags]:
        items: list[Node] = []
        while self.at < len(self.text) and not self.sees("|") and not self.sees(")"):
            setting = re.compile(r"\(\?([a-zA-Z-]+)\)").match(self.text, self.at)
            if setting:
                flags = self.set_flags(flags, setting[1], self.at)
                self.at = setting.end()
                continue
            item = self.one(flags)
            items.append(self.repeated(item))
        return Seq(tuple(items)), flags

    def repeated(self, item: Node) -> Node:
        stacked = 0
        while self.at < len(self.text):
            begin = self.at
            if self.takes("*"):
                low, high = 0, None
            elif self.takes("+"):
                low, high = 1, None
            elif self.takes("?"):
                low, high = 0, 1
            elif self.sees("{"):
                low, high = self.counts()
            else:
                break
            if self.takes("?") and self.lazy_at is None:  # to a stop lazy means the same as greedy
                self.lazy_at = begin
            if low > MAX_REPEAT or (high or 0) > MAX_REPEAT:
                raise self.bad(f"a repeat above {MAX_REPEAT} times", begin)
            stacked += 1
            if stacked + self.depth > MAX_DEPTH:
                raise self.bad("repeats nested too deeply", begin)
            item = Repeat(item, low, high)
        return item

    def counts(self) -> tuple[int, int | None]:
        begin = self.at
        found = re.compile(r"\{([0-9]+)(,?)([0-9]*)\}").match(self.text, begin)
        if not found:
            raise self.bad("a repeat that cannot be read", begin)
        self.at = found.end()
        low = int(found[1])
        if not found[2]:
            return low, low
        if not found[3]:
            return low, None
        if int(found[3]) < low:
            raise self.bad("a repeat of at least more than at most", begin)
        return low, int(found[3])

    def set_flags(self, flags: Flags, letters: str, position: int) -> Flags:
        on = True
        for letter in letters:
            if letter == "-":
                on = False
            elif letter == "i":
                flags = replace(flags, ignore_case=on)
            elif letter == "s":
                flags = replace(flags, dot_all=on)
            elif letter == "m":
                flags = replace(flags, lines=on)
            elif letter == "R":
                flags = replace(flags, carriage=on)
            elif letter == "u":
                if on and self.raw:
                    raise NotImplementedError("(?u) in a pattern of bytes")
                flags = replace(flags, unicode=on)
            elif letter == "x":
                raise NotImplementedError("(?x)")
            elif letter != "U":  # swaps greedy and lazy, which mean the same
                raise self.bad(f"an unknown flag {letter!r}", position)
        return flags

    # -- one item
    # ---------------------------------------------------------------------------------------------

    def one(self, flags: Flags) -> Node:
        begin = self.at
        if self.takes("("):
            return self.group(flags, begin)
        if self.takes("^"):
            return self.line_look("^", flags, begin)
        if self.takes("$"):
            return self.line_look("$", flags, begin)
        if self.sees("["):
            return self.char_class(flags)
        if self.takes("."):
            return self.char(".", flags)
        if self.takes("\\"):
            return self.escape(flags, begin)
        letter = self.text[begin]
        if letter in "*+?{":
            raise self.bad("a repeat of nothing", begin)
        self.at += 1
        return self.char(re.escape(letter), flags, letter)

    def group(self, flags: Flags, begin: int) -> Node:
        for opening in ("?=", "?!", "?<=", "?<!"):
            if self.sees(opening):
                raise self.bad(f"look-around ({opening} (only \\b, ^ and $ can be used)", begin)
        if self.takes("?"):
            named = re.compile(r"P?<[A-Za-z_][A-Za-z0-9_]*>").match(self.text, self.at)
            scoped = re.compile(r"([a-zA-Z]*(?:-[a-zA-Z]+)?):").match(self.text, self.at)
            if named:
                self.at = named.end()
            elif scoped:
                flags = self.set_flags(flags, scoped[1], begin)
                self.at = scoped.end()
            elif self.sees("P="):
                raise self.bad("a back-reference (there are none)", begin)
            else:
                raise self.bad("a group that cannot be read", begin)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.bad("groups nested too deeply", begin)
        inner = self.alternatives(flags)
        self.depth -= 1
        if not self.takes(")"):
            raise self.bad("a group that is not closed", begin)
        return inner

    def line_look(self, kind: str, flags: Flags, begin: int) -> Node:
        if not flags.lines or flags.carriage:
            raise self.bad(f"look-around {kind} that is not about lines that end with \\n", begin)
        return Look(kind)

    def escape(self, flags: Flags, begin: int) -> Node:
        if self.at == len(self.text):
            raise self.bad("a \\ that escapes nothing", begin)
        letter = self.text[self.at]
        if letter.isdigit() or letter == "k":
            raise self.bad("a back-reference (there are none)", begin)
        if letter == "b" and not self.text.startswith("{", self.at + 1):
            if not flags.unicode and not self.raw:
                raise self.bad("look-around \\b under (?-u)", begin)
            self.at += 1
            return Look("b")
        if letter in "bBAzZ<>":
            raise self.bad(f"look-around \\{letter} (only \\b, ^ and $ can be used)", begin)
        source, mentions = self.escaped(begin)
        return self.char(source, flags, mentions)

    def escaped(self, begin: int) -> tuple[str, str]:
        """What an escape is to `re`, and the character that it names, if it is one; behind the `\\`."""
        letter = self.text[self.at]
        self.at += 1
        if letter in "dDwWsS":
            return "\\" + letter, ""
        if letter in "ntrfva":
            return "\\" + letter, {
                "n": "\n",
                "t": "\t",
                "r": "\r",
                "f": "\f",
                "v": "\v",
                "a": "\a",
            }[letter]
        if letter in "xuU":
            digits = {"x": 2, "u": 4, "U": 8}[letter]
            number = self.text[self.at : self.at + digits]
            if number.startswith("{"):
                raise NotImplementedError("\\x{...}")
            if not re.fullmatch(f"[0-9A-Fa-f]{{{digits}}}", number) or int(number, 16) > 0x10FFFF:
                raise self.bad("an escape that cannot be read", begin)
            self.at += digits
            character = chr(int(number, 16))
            if "\ud800" <= character <= "\udfff" or (self.raw and letter != "x"):
                raise self.bad("an escape that is no character", begin)
            return re.escape(character), character
        if letter in "pP":
            raise NotImplementedError("\\p")
        if letter.isalnum() or ord(letter) > 127:
            raise self.bad("an unknown escape", begin)
        return re.escape(letter), letter

    def char(self, source: str, flags: Flags, mentions: str = "") -> Char:
        if not flags.unicode and not self.raw:
            raise NotImplementedError("(?-u) in a pattern of str")
        return Char(source, flags.ignore_case, flags.dot_all, self.raw, frozenset(mentions))

    def char_class(self, flags: Flags) -> Node:
        """`[...]`, without classes inside it and without `&&`, `--` and `~~`."""
        begin = self.at
        self.at += 1
        source, mentions, first = "[", "", True
        if self.takes("^"):
            source += "^"
        while first or not self.sees("]"):
            if self.at >= len(self.text):
                raise self.bad("a class that is not closed", begin)
            if self.sees("[") or any(self.sees(two) for two in ("&&", "--", "~~", "||")):
                raise NotImplementedError("a class inside a class")
            piece, named = self.member(begin)
            first = False
            if self.sees("-") and not self.sees("-]"):
                dash = self.at
                self.at += 1
                if self.at >= len(self.text):
                    raise self.bad("a class that is not closed", begin)
                if self.sees("[") or self.sees("-"):
                    raise NotImplementedError("a class inside a class")
                end, last = self.member(begin)
                if not named or not last or named > last:
                    raise self.bad("a range that is none", dash)
                source += f"{piece}-{end}"
                mentions += named + last
            else:
                source += piece
                mentions += named
        self.at += 1
        return self.char(source + "]", flags, mentions)

    def member(self, begin: int) -> tuple[str, str]:
        if self.takes("\\"):
            if self.at == len(self.text):
                raise self.bad("a class that is not closed", begin)
            if self.text[self.at] in "bBAzZ":
                raise self.bad("look-around inside a class", self.at - 1)
            return self.escaped(self.at - 1)
        letter = self.text[self.at]
        self.at += 1
        return re.escape(letter), letter
