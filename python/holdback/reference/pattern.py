"""Sections 11.1, 11.5 and 11.6: the pattern as a value."""

from __future__ import annotations

from typing import Any

from .syntax import Node, parse

MAX_HOLD = 1 << 20


class Pattern:
    """A stop that stands for many texts, its words.

    Args:
        pattern: what words are, in the syntax of `regex-syntax`; `bytes` for byte streams only.
        ignore_case: read it with `(?i)` in front.
        name: for logs; it changes nothing.
        max_hold: for how many characters (byte streams: bytes) an unfinished word is held, at most 1,048,576.

    Raises:
        TypeError, ValueError: see section 11.5.

    >>> from holdback.reference import Pattern, StopSet
    >>> emitted, match = StopSet([Pattern(r"\\n+Step \\d{1,3}:", max_hold=99)]).truncate("So.\\n\\nStep 12: go")
    >>> emitted, match.stop, match.pattern.max_hold
    ('So.', '\\n\\nStep 12:', 99)
    """

    __slots__ = ("_ignore_case", "_lazy_at", "_max_hold", "_name", "_pattern", "_tree")

    def __init__(
        self,
        pattern: str | bytes,
        *,
        ignore_case: bool = False,
        name: str | None = None,
        max_hold: int | None = None,
    ) -> None:
        if not isinstance(pattern, (str, bytes)):
            raise TypeError(f"pattern must be str or bytes, not {type(pattern).__name__}")
        if not isinstance(ignore_case, bool):
            raise TypeError(f"ignore_case must be bool, not {type(ignore_case).__name__}")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be str, not {type(name).__name__}")
        if max_hold is not None and type(max_hold) is not int:  # nor bool
            raise TypeError(f"max_hold must be int, not {type(max_hold).__name__}")
        if name is not None and any("\ud800" <= letter <= "\udfff" for letter in name):
            raise ValueError(f"name {name!r} has a lone surrogate")
        if max_hold is not None and not 0 <= max_hold <= MAX_HOLD:
            raise ValueError(f"max_hold must be 0 to {MAX_HOLD}, it is {max_hold}")
        self._tree, self._lazy_at = parse(pattern, ignore_case=ignore_case)
        self._pattern = pattern
        self._ignore_case = ignore_case
        self._name = name
        self._max_hold = max_hold

    @property
    def pattern(self) -> str | bytes:
        """The pattern as given."""
        return self._pattern

    @property
    def ignore_case(self) -> bool:
        """Whether it is read with `(?i)` in front."""
        return self._ignore_case

    @property
    def name(self) -> str | None:
        """A name for logs."""
        return self._name

    @property
    def max_hold(self) -> int | None:
        """For how many characters an unfinished word is held; `None`: as long as it is one."""
        return self._max_hold

    @property
    def _key(self) -> tuple[Any, ...]:
        return (
            type(self._pattern),
            self._pattern,
            self._ignore_case,
            self._name,
            self._max_hold,
        )

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Pattern) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        options = ", ignore_case=True" if self._ignore_case else ""
        options += f", name={self._name!r}" if self._name is not None else ""
        options += f", max_hold={self._max_hold}" if self._max_hold is not None else ""
        return f"Pattern({self._pattern!r}{options})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, self._key[1:]


def _rebuild(
    pattern: str | bytes, ignore_case: bool, name: str | None, max_hold: int | None
) -> Pattern:
    return Pattern(pattern, ignore_case=ignore_case, name=name, max_hold=max_hold)


def lazy_at(pattern: Pattern) -> int | None:
    """The position of its first lazy repeat."""
    return pattern._lazy_at


def tree_of(pattern: Pattern) -> Node:
    """Its text as a tree."""
    return pattern._tree
