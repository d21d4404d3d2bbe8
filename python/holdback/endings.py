"""Ends of a text that are no fixed string: a loop, a whole JSON value, a closed code fence.

`Repetition`, `JsonEnd` and `FenceEnd` are rules: immutable, shareable, part of `StoppingCriteria`.
Each makes detectors, one for each text; a detector reads the text cut anywhere, holds nothing back,
and says how much of it belongs to the answer. What it says does not depend on the cuts.

>>> from holdback import FenceEnd, JsonEnd, StoppingCriteria
>>> run = StoppingCriteria(custom=[JsonEnd()]).start()
>>> [run.step(i, piece) for i, piece in enumerate(['Sure: {"a": ', '[1, "}"]'])]
[('Sure: {"a": ', None), ('[1, "}"]', None)]
>>> emit, finish = run.step(2, '}\\nI hope')
>>> emit, finish.reason, finish.removed
('}', 'json_end', '\\nI hope')
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from . import StopSet, StopStream
from ._core import LoopDetector

__all__ = ["Detector", "FenceEnd", "JsonEnd", "Repetition", "TextEnd"]


def __dir__() -> list[str]:
    return __all__  # completion offers what this module defines, not what it imports


class Detector(Protocol):
    """Reads one text."""

    def feed(self, text: str, /) -> int | None:
        """Read more of the text.

        Returns how many characters of `text` belong to the answer once it has ended, which may be
        none; `None` while it goes on. After the end nothing more is fed.
        """

    def copy(self) -> Detector:
        """An independent detector in the same state."""


class TextEnd(Protocol):
    """A rule that ends a text: `reason` is what `Finish.reason` says then.

    `StoppingCriteria(custom=...)` takes any object like this, also one of your own.
    """

    @property
    def reason(self) -> str:
        """The reason to finish with."""

    def detector(self) -> Detector:
        """A detector at the beginning of a text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Repetition:
    """Text that has fallen into a loop: the same unit over and over, letter by letter.

    It ends at the first character at which the text ends in at least `count` copies of a unit of
    `min_unit` to `max_unit` characters that cover at least `cover` characters. The unit is one that
    no shorter one builds, so a rule of dashes is no loop of longer rules. Shorter units (`"items "`
    over and over) end it when they cover `short_cover` characters; `None` leaves them alone. All
    lengths are in characters; a character costs constant time and memory is bounded by `max_unit`.

    The defaults find no loop in the sources of Python's library, its tests aside: tables of test
    data may be loops.

    Raises:
        ValueError: for a rule that cannot be kept (`count` below 3, `min_unit` above `max_unit`,
            a unit above 65,536); it names the argument.
        TypeError: for what is no integer.

    >>> detector = Repetition().detector()
    >>> detector.feed("I will check the file again.\\n" * 20)
    400
    >>> detector.found
    ('I will check the file again.\\n', 13, 0)
    """

    count: int = 4
    cover: int = 400
    min_unit: int = 16
    max_unit: int = 4096
    short_cover: int | None = 1000

    reason = "repetition"

    def __post_init__(self) -> None:
        for name in ("count", "cover", "min_unit", "max_unit", "short_cover"):
            value = getattr(self, name)
            if value is None and name == "short_cover":
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
            if not 0 <= value < 1 << 32:
                raise ValueError(f"{name} is out of range: {value}")
        self.detector()

    def detector(self) -> LoopDetector:
        """A detector at the beginning of a text."""
        return LoopDetector(self.count, self.cover, self.min_unit, self.max_unit, self.short_cover)


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonEnd:
    """The end of the first complete JSON value: an object or an array.

    Text before it passes ("Sure, here it is:"), and what begins like JSON and turns out not to be
    (`[link](...)`) is passed over: the search goes on after it. Braces and brackets in strings do
    not count. With `scalars=True` the text must begin with the value, white space aside, and it may
    be a string, a number, `true`, `false` or `null` as well; a number ends before the first
    character that cannot belong to it.

    Args:
        scalars: take any value, at the beginning of the text.
        after: look only after this text, such as `"</think>"`.
        max_depth: objects and arrays in each other; what is nested more deeply is not taken for
            JSON.
    """

    scalars: bool = False
    after: str | None = None
    max_depth: int = 1000

    reason = "json_end"

    def __post_init__(self) -> None:
        _check_after(self.after)
        if self.max_depth < 1:
            raise ValueError(f"max_depth must be at least 1, not {self.max_depth}")

    def detector(self) -> Detector:
        """A detector at the beginning of a text."""
        return _After.wrap(self.after, _Json(self.scalars, self.max_depth))


@dataclass(frozen=True, kw_only=True, slots=True)
class FenceEnd:
    """The end of the first fenced code block of Markdown, its closing fence included.

    A fence is a line of three or more backticks or tildes, at most three spaces from the margin;
    the closing one has the same character, at least as many of them, and nothing else. It is known
    to be whole at the end of its line, which does not belong to the answer.

    Args:
        inside: the text begins inside the block: the prompt ended with the opening fence.
        after: look only after this text, such as `"</think>"`.
    """

    inside: bool = False
    after: str | None = None

    reason = "fence_end"

    def __post_init__(self) -> None:
        _check_after(self.after)

    def detector(self) -> Detector:
        """A detector at the beginning of a text."""
        return _After.wrap(self.after, _Fence(inside=self.inside))


BUILT_IN = (Repetition, JsonEnd, FenceEnd)


def _check_after(after: object) -> None:
    if after is not None and (not isinstance(after, str) or not after):
        raise ValueError(f"after must be a non-empty str, not {after!r}")


class _After:
    """Waits for a text, then reads what comes after it by another detector."""

    __slots__ = ("_inner", "_stream")

    def __init__(self, stream: StopStream[str], inner: Detector) -> None:
        self._stream, self._inner = stream, inner

    @staticmethod
    def wrap(after: str | None, inner: Detector) -> Detector:
        return inner if after is None else _After(StopSet([after]).stream(), inner)

    def feed(self, text: str, /) -> int | None:
        if self._stream.match is not None:
            return self._inner.feed(text)
        _, match = self._stream.feed(text)
        if match is None:
            return None
        kept = self._inner.feed(str(match.rest))
        return None if kept is None else len(text) - len(match.rest) + kept

    def copy(self) -> Detector:
        return _After(self._stream.copy(), self._inner.copy())


_SPACE = " \t\r\n"
_LITERALS = ("true", "false", "null")
_NUMBER_BEGINS, _NUMBER_GOES_ON = "-0123456789", "0123456789+-.eE"
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LONGEST_SCALAR = 400  # digits of a number that are looked at


class _Json:
    """A pushdown automaton over the grammar of JSON.

    `wants` is what may come next: `value`, `value-or-end` (after `[`), `name-or-end` (after `{`),
    `name`, `colon`, `more` (a comma or the end), or, inside a token, `string`, `escape`, `hex`,
    `scalar`. Outside of a candidate it is `""`.
    """

    __slots__ = ("closers", "depth", "named", "scalar", "scalars", "started", "wants")

    def __init__(self, scalars: bool, depth: int) -> None:
        self.scalars = scalars
        self.depth = depth
        self.closers: list[str] = []
        self.wants = "value" if scalars else ""
        self.started = False  # only asked for with `scalars`
        self.scalar = ""  # the number or literal under way; for `hex`, the digits
        self.named = False  # whether the string under way is a name

    def copy(self) -> _Json:
        twin = _Json(self.scalars, self.depth)
        twin.closers = self.closers.copy()
        twin.wants, twin.started = self.wants, self.started
        twin.scalar, twin.named = self.scalar, self.named
        return twin

    def feed(self, text: str, /) -> int | None:
        at = 0
        while at < len(text):
            if self.wants == "string" and (found := _PLAIN.match(text, at)):
                at = found.end()
                continue
            if not self.wants:
                at = _first(text, at)
                if at == len(text):
                    return None
                self.wants = "value"
            verdict = self._read(text[at])
            if verdict == "again":  # a number ended before this character
                if self._ended():
                    return at
                continue
            if verdict == "wrong":
                self._give_up()
                if self.scalars:
                    return None
                if text[at] in "{[":
                    continue
            at += 1
            if verdict == "end" and self._ended():
                return at
        return None

    def _ended(self) -> bool:
        """Whether the value that was just completed is the whole one."""
        self.wants = "more"
        return not self.closers

    def _give_up(self) -> None:
        self.closers.clear()
        # With `scalars` the text had to begin with the value: there is none.
        self.wants = "nothing" if self.scalars else ""

    def _read(self, character: str) -> str:
        """Take one character; `end` when it completes a value, `again` when it comes after one,
        `wrong` when it cannot stand here.
        """
        wants = self.wants
        if wants == "string":
            return self._in_string(character)
        if wants in ("escape", "hex"):
            return self._in_escape(character)
        if wants == "scalar":
            return self._in_scalar(character)
        if character in _SPACE:
            return ""
        if wants == "colon":
            self.wants = "value"
            return "" if character == ":" else "wrong"
        if wants == "more":
            return self._after_value(character)
        if wants in ("name", "name-or-end"):
            if character == '"':
                self.wants, self.named = "string", True
                return ""
            return self._closed(character) if wants == "name-or-end" else "wrong"
        if wants == "value-or-end" and character == "]":
            return self._closed(character)
        return self._begin(character) if wants in ("value", "value-or-end") else "wrong"

    def _begin(self, character: str) -> str:
        if character in "{[":
            if len(self.closers) >= self.depth:
                return "wrong"
            self.closers.append("}" if character == "{" else "]")
            self.wants = "name-or-end" if character == "{" else "value-or-end"
        elif character == '"':
            self.wants, self.named = "string", False
        elif character in _NUMBER_BEGINS or character in "tfn":
            self.wants, self.scalar = "scalar", character
        else:
            return "wrong"
        return ""

    def _after_value(self, character: str) -> str:
        if character == ",":
            self.wants = "name" if self.closers[-1] == "}" else "value"
            return ""
        return self._closed(character)

    def _closed(self, character: str) -> str:
        if not self.closers or character != self.closers[-1]:
            return "wrong"
        self.closers.pop()
        return "end"

    def _in_string(self, character: str) -> str:
        if character == '"':
            if self.named:
                self.wants = "colon"
                return ""
            return "end"
        if character == "\\":
            self.wants = "escape"
        elif character < " ":
            return "wrong"
        return ""

    def _in_escape(self, character: str) -> str:
        if self.wants == "escape":
            self.wants, self.scalar = ("hex", "") if character == "u" else ("string", "")
            return "" if character in '"\\/bfnrtu' else "wrong"
        self.scalar += character
        if len(self.scalar) == 4:
            self.wants = "string"
        return "" if character in "0123456789abcdefABCDEF" else "wrong"

    def _in_scalar(self, character: str) -> str:
        if self.scalar[0] in "tfn":
            self.scalar += character
            whole = next(word for word in _LITERALS if word[0] == self.scalar[0])
            if not whole.startswith(self.scalar):
                return "wrong"
            return "end" if whole == self.scalar else ""
        if character in _NUMBER_GOES_ON and len(self.scalar) < _LONGEST_SCALAR:
            self.scalar += character
            return ""
        return "again" if _NUMBER.fullmatch(self.scalar) else "wrong"


def _first(text: str, at: int) -> int:
    """Where a candidate may begin."""
    places = [place for sign in "{[" if (place := text.find(sign, at)) >= 0]
    return min(places, default=len(text))


_LONGEST_FENCE = 1024
_OPENING = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)", re.DOTALL)


class _Fence:
    """Reads line by line. Of a line only its beginning is kept: a closing fence is short."""

    __slots__ = ("line", "long", "mark")

    def __init__(self, *, inside: bool) -> None:
        self.mark = "```" if inside else ""  # the opening fence, without its info string
        self.line = ""
        self.long = False  # whether the line is longer than what is kept of it

    def copy(self) -> _Fence:
        twin = _Fence(inside=False)
        twin.mark, twin.line, twin.long = self.mark, self.line, self.long
        return twin

    def feed(self, text: str, /) -> int | None:
        at = 0
        while (end := text.find("\n", at)) >= 0:
            self._keep(text[at:end])
            if self._line_ends():
                return end
            at = end + 1
        self._keep(text[at:])
        return None

    def _keep(self, piece: str) -> None:
        room = _LONGEST_FENCE - len(self.line)
        self.long = self.long or len(piece) > room
        self.line += piece[:room]

    def _line_ends(self) -> bool:
        line, long = self.line.removesuffix("\r"), self.long
        self.line, self.long = "", False
        if self.mark:
            bare = line.strip(" \t")
            indent = len(line) - len(line.lstrip(" "))
            return (
                not long
                and indent <= 3
                and len(bare) >= len(self.mark)
                and bare == self.mark[0] * len(bare)
            )
        if found := _OPENING.fullmatch(line):
            self.mark = found[1] or found[2]
        return False
