r"""`lint(stops)`: what is wrong, or likely to go wrong, with a list of stop strings, before any
text is generated.

Each `Finding` names the stop, says what happens and what to do about it. Errors are lists that
cannot work (an empty stop, a list that the provider refuses); warnings are stops that will
surprise; notes are worth knowing. Nothing is raised for a bad stop: that is what the findings are
for.

>>> for finding in lint(["<|eot_id|>", "x---y", "---"]):
...     print(finding.severity, finding.code, finding.index)
warning special-token 0
warning unreachable 1
warning common 2
>>> print(lint(["END "])[0])
warning edge-space: stop 0 'END ' ends with white space, which the model may leave out or put elsewhere. Remedy: use 'END'
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from . import StopSet
from ._folding import CONFUSABLES, INVISIBLE, SPECIAL_TOKEN, visible
from ._holdback_rate import samples, shares_held
from .providers import Provider, get

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

STUTTER = 0.05
"""A stop that holds this share of the characters on arrival is reported to stutter: one in twenty is
seen as a hitch in the text.
"""

ENOUGH_TIMES = 3
"""A stop that the samples contain fewer times than this may be there by chance."""

MOST_MEASURED = 200
"""Longer lists are measured as a whole only: two milliseconds a stop would add up."""

COMMON = {
    "---": "a horizontal rule, a table border, front matter and the head of a diff in Markdown",
    "\n\n": "the end of every paragraph",
    "\n": "the end of every line",
    "```": "a code fence, also the opening one",
    "}": "the end of every JSON object and block of code, also the inner ones",
    "]": "the end of every list and subscript in JSON and code",
    ")": "the end of every call and parenthesis",
    ";": "the end of a statement in code, and a mark of prose",
    '"': "the end, and the beginning, of every quotation and JSON string",
    "'": "an apostrophe",
    ".": "the end of a sentence, and a part of numbers, file names and abbreviations",
    ",": "a mark of every sentence",
    ":": "a mark of prose, of times and of every JSON object",
    " ": "the end of every word",
    "#": "a heading of Markdown and a comment in code",
    "##": "a heading of Markdown",
    "###": "a heading of Markdown",
    "***": "bold italics and a rule of Markdown",
    "**": "bold text in Markdown",
    "*": "a list item and emphasis in Markdown",
    "-": "a hyphen and a list item",
    "|": "a table in Markdown and an operator",
    "<": "a comparison and any tag",
    ">": "a comparison, a quotation and the end of any tag",
    "</": "any closing tag",
    "==": "a comparison in code",
    "===": "a heading, a comparison in code and a merge conflict",
    "//": "an address and a comment in code",
    "User:": "a transcript, or the word in a sentence",
    "Human:": "a transcript, or the word in a sentence",
    "Assistant:": "a transcript, or the word in a sentence",
    "AI:": "a transcript, or the word in a sentence",
}
"""Stops that legitimate output contains, and the text that they cut."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know about a stop list."""

    code: str
    """What it is, in one word that does not change: `"unreachable"`, `"special-token"`, ..."""
    severity: Severity
    index: int | None
    """Position of the stop, or `None` if it is about the whole list."""
    message: str
    remedy: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.severity} {self.code}: {self.message}. Remedy: {self.remedy}"


def lint(
    stops: str | bytes | Iterable[str | bytes] | None,
    provider: str | Provider | None = None,
    model: str | None = None,
) -> list[Finding]:
    """Everything worth saying about `stops`, errors first, then in the order of the list.

    With a `provider` (and a `model`) its limits count too; an unknown provider is a `ValueError`.
    """
    if isinstance(stops, StopSet):
        stops = stops.stops
    if stops is not None and not isinstance(stops, Iterable):
        raise TypeError(
            f"stops must be a str, bytes, an iterable of them, or None, not {type(stops).__name__}"
        )
    listed: list[Any] = (
        [] if stops is None else [stops] if isinstance(stops, (str, bytes)) else list(stops)
    )
    known = get(provider) if isinstance(provider, str) else provider
    findings: list[Finding] = []
    good: dict[int, str] = {}
    for index, stop in enumerate(listed):
        broken = _broken(index, stop)
        if broken is not None:
            findings.append(broken)
        elif isinstance(stop, str):
            good[index] = stop
            findings += (finding for check in CHECKS for finding in check(index, stop))
    usable = [
        index for index, stop in enumerate(listed) if isinstance(stop, bytes) or index in good
    ]
    usable = [index for index in usable if listed[index]]
    findings += _across([(index, listed[index]) for index in usable])
    findings += _stutter(good)
    if known is not None:
        findings += _limits(listed, good, known, model)
    return sorted(
        findings, key=lambda finding: (SEVERITIES.index(finding.severity), _place(finding))
    )


def _place(finding: Finding) -> int:
    return -1 if finding.index is None else finding.index


def _named(index: int, stop: object) -> str:
    return f"stop {index} '{visible(stop)}'" if isinstance(stop, str) else f"stop {index} {stop!r}"


def _times(count: int) -> str:
    return "1 time" if count == 1 else f"{count} times"


# --- one stop
# ------------------------------------------------------------------------------------------------------


def _broken(index: int, stop: object) -> Finding | None:
    """What no stop list may contain."""
    if not isinstance(stop, (str, bytes)):
        what, remedy = f"stop {index} is {type(stop).__name__}, neither str nor bytes", "give text"
        return Finding("type", "error", index, what, remedy)
    if not stop:
        what = f"stop {index} is empty: it would end every answer before its first character"
        return Finding("empty", "error", index, what, "remove it")
    if isinstance(stop, str) and any("\ud800" <= character <= "\udfff" for character in stop):
        what = f"{_named(index, stop)} contains a lone surrogate, which no text has"
        return Finding("surrogate", "error", index, what, "give the whole character")
    return None


def _special_token(index: int, stop: str) -> Iterator[Finding]:
    found = SPECIAL_TOKEN.search(stop)
    if found is None:
        return
    if found[0] == stop:
        yield Finding(
            "special-token",
            "warning",
            index,
            f"{_named(index, stop)} is a token of the vocabulary; detokenizers leave it out, so this text never comes",
            "give its id in stop_token_ids (or eos_token_ids)",
        )
    else:
        yield Finding(
            "special-token",
            "warning",
            index,
            f"{_named(index, stop)} contains '{visible(found[0])}', a token of the vocabulary that detokenizers leave out",
            "leave that part out and give its id in stop_token_ids",
        )


def _common(index: int, stop: str) -> Iterator[Finding]:
    counts = {name: text.count(stop) for name, text in samples().items()}
    seen = ", ".join(
        f"{_times(count)} in the {name} sample" for name, count in counts.items() if count
    )
    what = COMMON.get(stop)
    if what is None and sum(counts.values()) < ENOUGH_TIMES:
        return
    where = f"is {what}" if what else "is found in ordinary text"
    yield Finding(
        "common",
        "warning",
        index,
        f"{_named(index, stop)} {where}{f' ({seen})' if seen else ''}",
        "include what makes yours different, such as the line end before it and the word after it",
    )


def _bare_word(index: int, stop: str) -> Iterator[Finding]:
    if re.fullmatch(r"[A-Za-z]{2,12}", stop):
        yield Finding(
            "bare-word",
            "note",
            index,
            f"{_named(index, stop)} is a bare word: it also ends the answer inside a longer one and in a sentence about it",
            r"add the line end before it ('\n' in front) or marks that prose does not have",
        )


def _edge_space(index: int, stop: str) -> Iterator[Finding]:
    left, right = len(stop) - len(stop.lstrip(" \t")), len(stop) - len(stop.rstrip(" \t"))
    if not stop.strip() or not (left or right):
        return
    where = "begins and ends" if left and right else "begins" if left else "ends"
    yield Finding(
        "edge-space",
        "warning",
        index,
        f"{_named(index, stop)} {where} with white space, which the model may leave out or put elsewhere",
        f"use '{visible(stop.strip(' ' + chr(9)))}'",
    )


def _line_ends(index: int, stop: str) -> Iterator[Finding]:
    if "\r" in stop:
        yield Finding(
            "line-ends",
            "warning",
            index,
            f"{_named(index, stop)} contains a carriage return; models write line feeds alone",
            r"use '\n'",
        )
    elif "\n\n" in stop:
        yield Finding(
            "line-ends",
            "note",
            index,
            f"{_named(index, stop)} does not fire on '\\n \\n' or '\\r\\n\\r\\n', which look the same",
            "list those too if the text may have them",
        )


def _escaped(index: int, stop: str) -> Iterator[Finding]:
    if found := re.search(r"\\[nrt]|\\u[0-9a-fA-F]{4}|&(?:lt|gt|amp|quot);", stop):
        yield Finding(
            "escaped",
            "warning",
            index,
            f"{_named(index, stop)} contains '{visible(found[0])}' letter by letter, not the character that it stands for",
            "unescape it once more where the list is read (in a shell: $'...')",
        )


def _pattern(index: int, stop: str) -> Iterator[Finding]:
    if re.search(
        r"\.[*+]|\\[dwsb]|\[\^|\(\?|^\^.|^[\w:]+(?:\|[\w:]+)+$|[\w)\]]\$$", stop
    ) and not SPECIAL_TOKEN.search(stop):
        yield Finding(
            "pattern",
            "warning",
            index,
            f"{_named(index, stop)} looks like a regular expression; stops are literal text",
            "list the literal texts that it should match",
        )


def _characters(index: int, stop: str) -> Iterator[Finding]:
    hidden = sorted(
        {character for character in stop if character in INVISIBLE or character == "\xa0"}
    )
    if hidden:
        yield Finding(
            "invisible",
            "warning",
            index,
            f"{_named(index, stop)} contains {_list(hidden)}, which nobody sees and models seldom write",
            "remove it, or put an ordinary space",
        )
    alike = sorted({character for character in stop if character in CONFUSABLES})
    if alike and all(
        character.isascii() or character in CONFUSABLES or character in hidden for character in stop
    ):
        plain = ", ".join(f"'{CONFUSABLES[character]}'" for character in alike)
        yield Finding(
            "look-alike",
            "warning",
            index,
            f"{_named(index, stop)} contains {_list(alike)}, drawn like {plain}",
            "type it again, or list both forms",
        )
    composed = unicodedata.normalize("NFC", stop)
    if composed != stop:
        yield Finding(
            "not-nfc",
            "warning",
            index,
            f"{_named(index, stop)} is not in normal form C, in which models write; matching does not normalise",
            f"use '{composed}' (unicodedata.normalize('NFC', stop))",
        )
    elif unicodedata.normalize("NFKC", stop) != stop and not hidden:
        yield Finding(
            "compatibility",
            "note",
            index,
            f"{_named(index, stop)} contains full-width or other compatibility forms; it does not fire on the plain ones",
            f"list '{visible(unicodedata.normalize('NFKC', stop))}' too if the text may have it",
        )


def _list(characters: Iterable[str]) -> str:
    return ", ".join(
        f"U+{ord(one):04X} {unicodedata.name(one, 'without a name')}" for one in characters
    )


CHECKS: tuple[Callable[[int, str], Iterator[Finding]], ...] = (
    _special_token,
    _common,
    _bare_word,
    _edge_space,
    _line_ends,
    _escaped,
    _pattern,
    _characters,
)


# --- the list
# ------------------------------------------------------------------------------------------------------


def _across(stops: list[tuple[int, str | bytes]]) -> Iterator[Finding]:
    """Duplicates and stops that can never be the match."""
    keys = [stop.encode() if isinstance(stop, str) else stop for _, stop in stops]
    first: dict[bytes, int] = {}
    for (index, stop), key in zip(stops, keys, strict=True):
        if key in first:
            what = f"{_named(index, stop)} is listed twice, first as stop {first[key]}"
            yield Finding("duplicate", "warning", index, what, "remove it")
        first.setdefault(key, index)
    if not stops:
        return
    compiled = StopSet(keys, max_stops=len(stops), max_bytes=sum(map(len, keys)))
    stream = compiled.byte_stream()
    for at in compiled.unreachable:
        (index, stop), key = stops[at], keys[at]
        stream.reset()
        match = stream.feed(key[:-1])[1]
        if match is None:
            continue  # the later of two equal ones, reported above
        inside = stops[match.index]
        yield Finding(
            "unreachable",
            "warning",
            index,
            f"{_named(index, stop)} can never be the match: {_named(*inside)} ends inside it",
            f"remove it, or remove stop {inside[0]}",
        )


def _stutter(stops: dict[int, str]) -> Iterator[Finding]:
    shares = shares_held(stops.values())
    if not stops or max(shares.values()) < STUTTER:
        return
    reported = False
    for index, stop in stops.items() if len(stops) <= MOST_MEASURED else ():
        alone = shares_held([stop])
        if max(alone.values()) >= STUTTER:
            reported = True
            yield Finding(
                "stutter",
                "warning",
                index,
                f"{_named(index, stop)} makes the stream stutter: held on arrival are {_percent(alone)}",
                f"use '{visible(stop.lstrip())}'"
                if stop[0].isspace() and stop.strip() and "\n" not in stop
                else "begin it with something rarer, if it can be chosen",
            )
    if not reported:
        what = f"together the stops hold back on arrival {_percent(shares)}"
        yield Finding(
            "stutter", "note", None, what, "fewer different first characters hold back less"
        )


def _percent(shares: dict[str, float]) -> str:
    return ", ".join(
        f"{share:.1%} of the {name} sample's characters" for name, share in shares.items()
    )


def _limits(
    stops: list[Any], good: dict[int, str], provider: Provider, model: str | None
) -> Iterator[Finding]:
    """What the provider would do with the list if it were sent as it is."""
    facts = provider.facts_for(model)
    who = provider.title if model is None else f"{provider.title} ({model})"
    local = (
        "let holdback.providers.plan split the list: it says what to send and what to enforce here"
    )

    def value(name: str) -> Any:
        fact = facts.get(name)
        return None if fact is None else fact.value

    if value("accepts") is False and stops:
        yield Finding(
            "not-accepted", "error", None, f"{who} takes no stops: {facts['accepts'].cited}", local
        )
        return
    cap = value("max_stops")
    if cap is not None and len(stops) > cap:
        what = f"{len(stops)} stops, and {who} takes {cap}: {facts['max_stops'].cited}"
        yield Finding("too-many", "error", None, what, local)
    if not stops and value("empty_list") is not None:
        refused = value("empty_list") == "refused"
        does = "is refused" if refused else value("empty_list")
        what = f"an empty list {does} ({who}): {facts['empty_list'].cited}"
        severity: Severity = "error" if refused else "warning"
        yield Finding("empty-list", severity, None, what, "leave the field out")
    if value("whitespace_stop") == "refused":
        for index, stop in good.items():
            if not stop.strip():
                what = f"{_named(index, stop)} is white space only, which {who} refuses: {facts['whitespace_stop'].cited}"
                yield Finding("blank", "error", index, what, local)
    if stops and value("included"):
        what = f"{who} leaves the stop's text in the output: {facts['included'].cited}"
        yield Finding("included", "note", None, what, "cut locally as well")
    if stops and value("misses"):
        what = (
            f"{who} can miss {value('misses')} [{facts['misses'].date}, {facts['misses'].source}]"
        )
        yield Finding("missed", "warning", None, what, "enforce them locally as well")
    if stops and value("names_stop") is False:
        what = f"{who} does not say which stop ended an answer"
        yield Finding(
            "unnamed",
            "note",
            None,
            what,
            "plan(..., must_name=True) enforces them here, where it is known",
        )
