"""What a word is, as `re` reads a pattern: the ground that the oracles of patterns and filters stand on."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator


@functools.lru_cache(maxsize=1 << 16)
def ending(pattern: str, behind: int) -> re.Pattern[str]:
    """The pattern, where so many characters follow it. They are there, so look-around sees them."""
    return re.compile(rf"(?m:{pattern})(?=[\s\S]{{{behind}}}\Z)")


def is_word(pattern: str, text: str, start: int, end: int) -> bool:
    return ending(pattern, len(text) - end).match(text, start) is not None


def known_at_end(pattern: str, text: str, start: int, end: int) -> bool:
    """Whatever follows: a character of each kind, or nothing."""
    return all(is_word(pattern, text[:end] + after, start, end) for after in ("", "\n", "a", "!"))


def cuttings(text: str) -> Iterator[list[str]]:
    for mask in range(2 ** max(0, len(text) - 1)):
        borders = [0, *(i for i in range(1, len(text)) if mask >> (i - 1) & 1), len(text)]
        yield [text[a:b] for a, b in itertools.pairwise(borders)]
