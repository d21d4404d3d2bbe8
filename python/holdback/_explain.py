"""`explain(text, stops)`: which stop fired and where, or for each one why it did not, the likeliest
reason first.

The text is what the model generated, as the caller saw it. For a stop that did not fire the
explanation looks for what a person would look for: is it there, but in a region where stops are
ignored, too early for `min_chars`, or after the cut? Is it there in another case, with other white
space or line ends, in another Unicode form, with letters that only look the same, with markup in
it, one typing error away? Is it a special token, which never becomes text? Did the text end in the
middle of it?

>>> print(explain("So the answer is 42.\\n \\nUser: thanks", ["\\n\\nUser:", "<|eot_id|>"]))
No stop fired.
stop 0 '\\n\\nUser:' is there with other white space: '\\n \\nUser:' at 20. Remedy: list that form too, or change the prompt
stop 1 '<|eot_id|>' is a token of the vocabulary; detokenizers leave it out, so this text never comes. \
Remedy: give its id in stop_token_ids (or eos_token_ids)
>>> explain("x END y", ["END"]).answer
"stop 0 'END' fired at 2, after 2 characters"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from . import StopMatch, StopSet, _folding
from ._folding import SPECIAL_TOKEN, fold, visible

MOST_PLACES = 5
"""How many places of one kind of near miss are listed; the rest are counted."""

LIKELIEST: tuple[tuple[str, str, str, tuple[tuple[_folding.Folding, ...], ...]], ...] = (
    # kind, what to say, remedy, foldings under which the stop is looked for
    (
        "line-ends",
        "is there with other line ends",
        r"list the form with '\r\n' too",
        ((_folding.with_plain_line_ends,),),
    ),
    (
        "white-space",
        "is there with other white space",
        "list that form too, or change the prompt",
        ((_folding.without_blanks,), (_folding.with_single_spaces,)),
    ),
    (
        "case",
        "is there in another case",
        "list that form too; matching does not fold case",
        ((_folding.without_case,),),
    ),
    (
        "markup",
        "is there with markup in it",
        "list that form too, or ask for plain text",
        ((_folding.without_markup,),),
    ),
    (
        "bare",
        "is there without some of its white space",
        "leave that white space out of the stop",
        ((_folding.without_spaces,),),
    ),
    (
        "escaped",
        "is there, but one of the two is escaped",
        "unescape the stop (or the text) once more",
        ((_folding.with_escapes_read,),),
    ),
    (
        "normal-form",
        "is there in another Unicode normal form",
        "list both forms",
        ((_folding.composed,),),
    ),
    (
        "full-width",
        "is there in full-width or other compatibility forms",
        "list both forms",
        ((_folding.compatible,),),
    ),
    (
        "look-alike",
        "is there in letters that look the same",
        "list both forms",
        ((_folding.with_plain_letters,),),
    ),
    (
        "invisible",
        "is there with characters that are not seen",
        "strip them from the text, or list that form too",
        ((_folding.without_invisible,),),
    ),
    (
        "several",
        "is there, but for several differences at once",
        "compare the two letter by letter",
        (
            (
                _folding.compatible,
                _folding.with_plain_letters,
                _folding.without_invisible,
                _folding.with_escapes_read,
                _folding.without_markup,
                _folding.without_spaces,
                _folding.without_case,
            ),
        ),
    ),
)
"""The near misses, likeliest first."""

ORDER = (
    *("fired", "ignored", "not-armed", "spans-marker", "shadowed"),
    *(kind for kind, *_ in LIKELIEST),
    *("unfinished", "one-edit", "special-token", "late", "never"),
)
"""All kinds of reasons, in the order in which they are reported."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one stop fired, or why it did not."""

    index: int
    stop: str
    kind: str
    """One of `ORDER`."""
    message: str
    remedy: str = ""
    places: tuple[tuple[int, int], ...] = ()
    """Where in the text, as start and end in characters."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "index": self.index,
            "stop": self.stop,
            "kind": self.kind,
            "message": self.message,
            "remedy": self.remedy,
            "places": [list(place) for place in self.places],
        }

    def __str__(self) -> str:
        return f"{self.message}. Remedy: {self.remedy}" if self.remedy else self.message


@dataclass(frozen=True, slots=True)
class Explanation:
    """What happened to a text, and why."""

    match: StopMatch[str] | None
    """The match, if a stop fired."""
    emitted: str
    """What would have been sent on."""
    reasons: tuple[Reason, ...]
    """One or more for each stop, the likeliest first; the stop that fired leads."""

    @property
    def answer(self) -> str:
        """One line: what fired, or the likeliest reason why nothing did."""
        if not self.reasons:
            return "no stops were given, so none fired"
        return self.reasons[0].message

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        match = self.match
        fired = (
            None
            if match is None
            else {"index": match.index, "stop": match.stop, "start": match.start, "end": match.end}
        )
        return {
            "answer": self.answer,
            "fired": fired,
            "emitted": self.emitted,
            "reasons": [reason.as_dict() for reason in self.reasons],
        }

    def __str__(self) -> str:
        head = [] if self.match is not None else ["No stop fired."]
        return "\n".join(head + [str(reason) for reason in self.reasons])


def explain(
    text: str | bytes,
    stops: StopSet | str | Iterable[str] | None,
    *,
    ignore_inside: Iterable[tuple[str, str]] | None = None,
    start_inside: bool = False,
    min_chars: int = 0,
) -> Explanation:
    """Explain what `stops` did to `text`, with the options that the stream had.

    `text` is everything the model generated, if it is known, or what came out. Bad stops and
    options raise what `StopSet` and its streams raise. Work grows with the text times the number of
    stops that did not fire.
    """
    compiled = stops if isinstance(stops, StopSet) else StopSet(stops)
    if not isinstance(text, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"a text must be str or bytes-like, not {type(text).__name__}")
    # As a stream reads it: unfinished characters and lone surrogates are U+FFFD.
    text = (
        text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if isinstance(text, str)
        else bytes(text).decode(errors="replace")
    )
    regions = None if ignore_inside is None else [tuple(pair) for pair in ignore_inside]
    options: dict[str, Any] = {}
    if regions:
        options = {"ignore_inside": regions, "start_inside": start_inside}
    armed: dict[str, Any] = {"min_chars": min_chars} if min_chars else {}
    stream = compiled.stream(**options, **armed)
    emitted, match = stream.feed(text)
    emitted += stream.flush()
    match = match or stream.match
    ignored = _ignored(text, options)
    views: Views = {}
    reasons: list[Reason] = []
    for index, stop in enumerate(compiled.stops):
        if match is not None and index == match.index:
            reasons.append(_fired(match))
        else:
            there = list(_occurrences(text, str(stop)))
            reasons.append(
                _there_but(index, str(stop), there, match, ignored, min_chars)
                if there
                else _not_there(index, str(stop), text, views)
            )
    rank = {kind: at for at, kind in enumerate(ORDER)}
    return Explanation(match, emitted, tuple(sorted(reasons, key=lambda reason: rank[reason.kind])))


def _fired(match: StopMatch[str]) -> Reason:
    stop = str(match.stop)
    message = f"stop {match.index} '{visible(stop)}' fired at {match.start}, after {_count(match.start, 'character')}"
    return Reason(match.index, stop, "fired", message, places=((match.start, match.end),))


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _ignored(text: str, options: dict[str, Any]) -> list[bool] | None:
    """For each character, whether stops are ignored once it has arrived, or a marker ended with
    it; `None` without regions.
    """
    if not options:
        return None
    stream = StopSet(None).stream(**options)
    ignored, before = [], stream.region
    for character in text:
        stream.feed(character)
        ignored.append(stream.region is not None or before is not None)
        before = stream.region
    return ignored


def _there_but(
    index: int,
    stop: str,
    places: list[tuple[int, int]],
    match: StopMatch[str] | None,
    ignored: list[bool] | None,
    min_chars: int,
) -> Reason:
    """Why a stop that is in the text, letter by letter, is not the match."""

    def reason(kind: str, message: str, remedy: str = "") -> Reason:
        where = f"at {_numbers(start for start, _ in places)}"
        full = f"stop {index} '{visible(stop)}' is there {where}, {message}"
        return Reason(index, stop, kind, full, remedy, tuple(places[:MOST_PLACES]))

    in_time = [place for place in places if match is None or place[1] <= match.end]
    other = "" if match is None else f"stop {match.index} '{visible(str(match.stop))}'"
    if match is not None and not in_time:
        return reason("late", f"but {other} fired first, at {match.start}")
    if ignored is not None and all(ignored[end - 1] for _, end in in_time):
        remedy = "take the region out of ignore_inside if it should fire there"
        return reason("ignored", "inside a region where stops are ignored", remedy)
    if ignored is not None and all(any(ignored[start:end]) for start, end in in_time):
        return reason("spans-marker", "across the end of a region, and a stop never spans a marker")
    if all(end <= min_chars for _, end in in_time):
        remedy = "lower min_chars (min_tokens) if it should fire there"
        return reason("not-armed", f"but stops count only after character {min_chars}", remedy)
    if match is None:
        return reason(
            "ignored", "each time ignored or before min_chars", "loosen ignore_inside or min_chars"
        )
    return reason(
        "shadowed",
        f"but {other} ends at the same character and wins the tie",
        f"remove stop {match.index}",
    )


Views = dict[tuple[_folding.Folding, ...], _folding.Folded]
"""The text under the foldings that were needed so far; all stops share them."""


def _not_there(index: int, stop: str, text: str, views: Views) -> Reason:
    """The likeliest reason why a stop that is not in the text is not there."""
    name = f"stop {index} '{visible(stop)}'"

    def reason(
        kind: str, message: str, remedy: str, places: list[tuple[int, int]] | None = None
    ) -> Reason:
        return Reason(
            index, stop, kind, f"{name} {message}", remedy, tuple((places or [])[:MOST_PLACES])
        )

    if SPECIAL_TOKEN.fullmatch(stop):
        what = "is a token of the vocabulary; detokenizers leave it out, so this text never comes"
        return reason("special-token", what, "give its id in stop_token_ids (or eos_token_ids)")
    for kind, what, remedy, ways in LIKELIEST:
        for foldings in ways:
            if places := _folded_occurrences(text, stop, foldings, views):
                return reason(
                    kind,
                    f"{what}: {_shown(text, places)}{_spelled(kind, stop, text, places[0])}",
                    remedy,
                    places,
                )
    unfinished = next(
        (
            size
            for size in range(min(len(stop) - 1, len(text)), 1, -1)
            if text.endswith(stop[:size])
        ),
        0,
    )
    if unfinished:
        start = len(text) - unfinished
        what = f"began at {start}, but the text ends after '{visible(stop[:unfinished])}'"
        return reason("unfinished", what, "allow more tokens", [(start, len(text))])
    if places := list(islice(_one_edit(text, stop), MOST_PLACES + 1)):
        what = f"is one character off: {_shown(text, places)}"
        return reason("one-edit", what, "correct the stop, or list that form too", places)
    return reason(
        "never",
        "is not in the text, nor anything like it",
        "check that the prompt makes the model write it",
    )


def _occurrences(text: str, stop: str) -> Iterator[tuple[int, int]]:
    start = text.find(stop)
    while start >= 0:
        yield start, start + len(stop)
        start = text.find(stop, start + 1)


def _folded_occurrences(
    text: str, stop: str, foldings: tuple[_folding.Folding, ...], views: Views
) -> list[tuple[int, int]]:
    """Where the stop is in the text when both are folded, as places in the text itself."""
    wanted = fold(stop, *foldings).text
    if not wanted or (wanted.isspace() and not stop.isspace()):
        return []
    if foldings not in views:
        views[foldings] = fold(text, *foldings)
    view = views[foldings]
    return [
        (view.starts[start], view.ends[end - 1]) for start, end in _occurrences(view.text, wanted)
    ]


def _one_edit(text: str, stop: str) -> Iterator[tuple[int, int]]:
    """Places that differ from the stop by one character: another one, one too many, or one missing.

    One of the two halves of the stop must be there unchanged, so only places around such a half are
    compared. Short stops are left out: nearly everything is one character away from them.
    """
    if len(stop) < 4:
        return
    half = len(stop) // 2
    seen = set()
    for part, offset in ((stop[:half], 0), (stop[half:], half)):
        for found, _ in islice(_occurrences(text, part), 10_000):
            for width in (len(stop), len(stop) - 1, len(stop) + 1):
                shift = 0 if offset == 0 else width - len(stop)
                start = found - offset - shift
                piece = text[start : start + width] if start >= 0 else ""
                if start not in seen and len(piece) == width and _is_one_edit(piece, stop):
                    seen.add(start)
                    yield start, start + width
                    break


def _is_one_edit(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    at = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return short[at + (len(short) == len(long)) :] == long[at + 1 :]


def _spelled(kind: str, stop: str, text: str, place: tuple[int, int]) -> str:
    """The code points, where the two look the same in print."""
    if kind not in ("normal-form", "full-width", "look-alike", "several"):
        return ""
    there, wanted = ascii(text[slice(*place)]), ascii(stop)
    return f" (there {there}, the stop {wanted})" if there != wanted else ""


def _shown(text: str, places: list[tuple[int, int]]) -> str:
    start, end = places[0]
    more = f" (and {_count(len(places) - 1, 'more place')})" if len(places) > 1 else ""
    return f"'{visible(text[start:end])}' at {start}{more}"


def _numbers(numbers: Iterable[int]) -> str:
    listed = list(numbers)
    shown = ", ".join(map(str, listed[:MOST_PLACES]))
    return (
        shown
        if len(listed) <= MOST_PLACES
        else f"{shown} and {_count(len(listed) - MOST_PLACES, 'more place')}"
    )
