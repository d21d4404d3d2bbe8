"""What makes two texts look alike and yet differ: the ground that `lint` warns about and `explain`
searches.

A `Folding` maps text to a coarser form in which one kind of difference is gone, and remembers for
every character of the result which stretch of the original it came from. So a stop that is found in
the folded text has a place in the original.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SPECIAL_TOKEN = re.compile(
    r"<\|[^|<>\s]{1,40}\|>"  # <|eot_id|>, <|im_end|>, <|endoftext|>
    r"|<｜[^｜<>\s]{1,40}｜>"
    r"|</?s>|<(?:bos|eos|pad|unk|sep|cls|mask)>"
    r"|<(?:start|end)_of_turn>|<end_of_utterance>"
    r"|\[/?INST\]|\[/?SYSTEM_PROMPT\]|<</?SYS>>|\[(?:CLS|SEP|PAD|UNK|MASK|EOS|BOS)\]"
)
"""Text that chat models have as one token of their vocabulary, which detokenizers usually leave
out.
"""

INVISIBLE = frozenset(
    "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufe0e\ufe0f\ufeff"
)
"""Characters that are not seen: soft hyphen, zero-width spaces and joiners, direction marks, byte
order mark, ...
"""

# Letters of other scripts and signs that are drawn like an ASCII character. Compatibility forms
# (full width, ligatures, mathematical letters) are not listed: NFKC knows them.
_CONFUSABLE_WITH = {
    "A": "АΑᎪ", "B": "ВΒᏴ", "C": "СϹᏟ", "D": "Ꭰ", "E": "ЕΕᎬ", "G": "Ԍ", "H": "НΗᎻ", "I": "ІΙӀ", "J": "ЈͿ", "K": "КΚᏦ",
    "L": "Ꮮ", "M": "МΜᎷ", "N": "Ν", "O": "ОΟՕ", "P": "РΡᏢ", "Q": "Ԛ", "S": "ЅՏ", "T": "ТΤᎢ", "U": "Ս", "V": "ѴᏙ",
    "W": "ԜᎳ", "X": "ХΧ", "Y": "ҮΥ", "Z": "ΖᏃ", "a": "аα", "b": "Ь", "c": "сϲ", "d": "ԁ", "e": "еҽ", "g": "ɡ", "h": "һ",
    "i": "іι", "j": "ј", "k": "κ", "l": "ӏ", "n": "ո", "o": "оοօ", "p": "рρ", "q": "ԛ", "r": "г", "s": "ѕ", "u": "սυ",
    "v": "ѵν", "w": "ԝ", "x": "хχ", "y": "уү", "z": "ᴢ",
    "-": "‐‑‒–—−﹘─━", "'": "‘’‛′ʼ´", '"': "“”„‟″", ":": "∶։ː", ";": "\u037e", "!": "ǃ", "|": "│┃¦∣", "/": "⁄∕",
    "<": "‹〈⟨", ">": "›〉⟩", "*": "∗•", "#": "♯", ".": "․", ",": "‚", "~": "∼˜", "_": "ˍ", "=": "═", "`": "ˋ",
}  # fmt: skip
CONFUSABLES = {
    other: plain
    for plain, others in _CONFUSABLE_WITH.items()
    for other in others
    if not other.isascii()
}
"""Character to the ASCII character it is drawn like."""


@dataclass(frozen=True, slots=True)
class Folded:
    """Folded text, and for each of its characters the stretch of the original it stands for."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]


Folding = Callable[[str], Iterator[tuple[str, int, int]]]
"""Yields pieces of the folded text, each with the start and end of what it came from, in
characters.
"""


def fold(text: str, *foldings: Folding) -> Folded:
    """`text` with the given differences taken out, one after the other."""
    folded = Folded(text, tuple(range(len(text))), tuple(range(1, len(text) + 1)))
    for folding in foldings:
        letters: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        for piece, start, end in folding(folded.text):
            letters.append(piece)
            starts += [folded.starts[start]] * len(piece)
            ends += [folded.ends[end - 1]] * len(piece)
        folded = Folded("".join(letters), tuple(starts), tuple(ends))
    return folded


def without_case(text: str) -> Iterator[tuple[str, int, int]]:
    """Upper and lower case alike."""
    for at, character in enumerate(text):
        yield character.casefold(), at, at + 1


def with_plain_line_ends(text: str) -> Iterator[tuple[str, int, int]]:
    """CRLF and lone CR become LF."""
    at = 0
    while at < len(text):
        width = 2 if text.startswith("\r\n", at) else 1
        yield "\n" if text[at] == "\r" else text[at], at, at + width
        at += width


def without_blanks(text: str) -> Iterator[tuple[str, int, int]]:
    """White space inside a line is dropped; line ends stay."""
    for at, character in enumerate(text):
        if not character.isspace() or character in "\r\n":
            yield character, at, at + 1


def with_single_spaces(text: str) -> Iterator[tuple[str, int, int]]:
    """Each run of white space becomes one space."""
    for run in re.finditer(r"\s+|\S", text):
        yield " " if run[0].isspace() else run[0], run.start(), run.end()


def without_spaces(text: str) -> Iterator[tuple[str, int, int]]:
    """All white space is dropped, line ends too."""
    for at, character in enumerate(text):
        if not character.isspace():
            yield character, at, at + 1


def without_markup(text: str) -> Iterator[tuple[str, int, int]]:
    """Marks that Markdown puts around words are dropped: asterisks, underscores, tildes, backticks,
    hashes, quote signs.
    """
    for at, character in enumerate(text):
        if character not in "*_~`#>\\":
            yield character, at, at + 1


def composed(text: str) -> Iterator[tuple[str, int, int]]:
    """Normal form C: an accent joins its letter."""
    yield from _normal("NFC", text)


def compatible(text: str) -> Iterator[tuple[str, int, int]]:
    """Normal form KC: full-width forms, ligatures and the like become plain."""
    yield from _normal("NFKC", text)


def without_invisible(text: str) -> Iterator[tuple[str, int, int]]:
    """Characters that are not seen are dropped."""
    for at, character in enumerate(text):
        if character not in INVISIBLE:
            yield character, at, at + 1


def with_plain_letters(text: str) -> Iterator[tuple[str, int, int]]:
    """What is drawn like an ASCII character becomes that character."""
    for at, character in enumerate(text):
        yield CONFUSABLES.get(character, character), at, at + 1


def with_escapes_read(text: str) -> Iterator[tuple[str, int, int]]:
    r"""A backslash and a letter become the character they stand for, as `\n` in a string literal."""
    for found in re.finditer(r"\\[nrt\"\\]|.", text, re.DOTALL):
        escape = found[0]
        yield (
            {"\\n": "\n", "\\r": "\r", "\\t": "\t", '\\"': '"', "\\\\": "\\"}.get(escape, escape),
            found.start(),
            found.end(),
        )


def _normal(form: str, text: str) -> Iterator[tuple[str, int, int]]:
    """Normalised cluster by cluster: a letter with what composes with it."""
    at = 0
    while at < len(text):
        end = at + 1
        while end < len(text) and _joins(text[end]):
            end += 1
        yield unicodedata.normalize(form, text[at:end]), at, end  # type: ignore[arg-type]  # a form is one of four words
        at = end


def _joins(character: str) -> bool:
    # Combining marks, and the vowels and final consonants that make a Hangul syllable.
    return unicodedata.combining(character) != 0 or "\u1160" <= character <= "\u11ff"


def visible(text: str) -> str:
    r"""`text` on one line with nothing hidden: `\n`, `\t`, `\x1b`, `\u200b` and a backslash as
    `\\`, all else as it is.

    >>> visible("a\tb\u200b\n")
    'a\\tb\\u200b\\n'
    """
    return "".join(character if _shows(character) else _escape(character) for character in text)


def _shows(character: str) -> bool:
    return character == " " or (
        character != "\\" and character.isprintable() and character not in INVISIBLE
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
