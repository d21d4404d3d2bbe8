"""`Finish.to` and `Finish.parse`: how a generation ended, in the words of another system and back.

Reading never guesses. OpenAI's `"stop"` stands for the model's own end and for a stop string alike,
so it reads as `AmbiguousFinish`, a type without a `reason`; only where a system tells does one get
`ParsedFinish`. The words themselves are tables, in `holdback.words`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

from .finish import Finish
from .words import ALIASES, VOCABULARIES, Vocabulary

__all__ = [
    "ALIASES",
    "VOCABULARIES",
    "AmbiguousFinish",
    "ParsedFinish",
    "Vocabulary",
    "read",
    "vocabulary",
    "write",
]


@dataclasses.dataclass(frozen=True, slots=True)
class ParsedFinish:
    """An answer whose fields tell one reason."""

    system: str
    word: str | bool
    """The system's own word, as it stood in the answer."""
    reason: str
    """As in `Finish.reason`.

    A word that has no reason of ours (`"pause_turn"`, or one newer than this table) is its own
    reason.
    """
    stop: str | None = None
    """The stop string, where the system names it."""
    token_id: int | None = None
    """The token that ended it, where the system names it."""


@dataclasses.dataclass(frozen=True, slots=True)
class AmbiguousFinish:
    """An answer whose fields fit several reasons. There is deliberately no `reason` to read here.

    What remains to tell them apart is on the caller's side: a stop enforced locally (`Generation`),
    or the end token's id.
    """

    system: str
    word: str | bool
    reasons: tuple[str, ...]
    """Every reason that these fields may stand for."""
    token_id: int | None = None


def vocabulary(system: str) -> Vocabulary:
    """The vocabulary of `system`; `ValueError` with the known names if there is none."""
    found = VOCABULARIES.get(ALIASES.get(system, system))
    if found is None:
        raise ValueError(
            f"no vocabulary for {system!r}; known: {', '.join(sorted({*VOCABULARIES, *ALIASES}))}"
        )
    return found


def write(finish: Finish, system: str, *, otherwise: str | None = None) -> dict[str, Any]:
    """`Finish.to`."""
    words = vocabulary(system)
    reason = words.folds.get(finish.reason, finish.reason)
    word: str | bool | None
    if reason in words.words:
        word = words.words[reason]
    elif words.words_mean.get(reason) == (reason,):
        word = reason  # already a word of that system's own
    elif otherwise is not None:
        word = otherwise
    else:
        known = ", ".join(sorted(map(str, words.words_mean)))
        raise ValueError(
            f"{system} has no word for the reason {finish.reason!r} (it has: {known}); give one with otherwise="
        )
    fields: dict[str, Any] = {}
    for name, value in words.constant.items():
        _put(fields, name, value and word is not None)
    if words.detail_field is not None and isinstance(word, str) and ":" in word:
        word, _, detail = word.partition(":")
        _put(fields, words.detail_field, detail)
    _put(fields, words.field, word)
    if words.stop_field is not None:
        _put(fields, words.stop_field, _named(finish, words))
    return fields


def _named(finish: Finish, words: Vocabulary) -> str | int | None:
    """What the field that names the stop holds for this finish."""
    if finish.reason == "stop_string" and finish.stop is not None:
        return finish.stop
    if finish.reason in words.token_named_for:
        return finish.token_id
    return words.stop_field_words.get(finish.reason, words.no_stop)


def read(
    system: str, fields: Mapping[str, Any], *, eos_token_ids: int | Iterable[int] | None = None
) -> ParsedFinish | AmbiguousFinish | None:
    """`Finish.parse`."""
    words = vocabulary(system)
    if not isinstance(fields, Mapping):
        raise TypeError(
            f"the fields of an answer are a mapping, not {type(fields).__name__}: dump the model first"
        )
    there, value = _get(fields, words.field)
    if not there and not words.may_be_absent:
        raise ValueError(
            f"{system} ends an answer with the field {words.field!r}, which is not among {sorted(map(str, fields))}"
        )
    if value is None:
        return None
    word: str | bool = value
    if type(word) not in {type(known) for known in words.words_mean}:
        raise TypeError(
            f"{words.field} of {system} is {type(word).__name__}: {word!r} is none of its words"
        )
    if (
        words.detail_field is not None
        and (detail := _get(fields, words.detail_field)[1]) is not None
    ):
        word = f"{word}:{detail}"
    reasons = words.words_mean.get(word, (str(word),))
    if not reasons:
        return None
    named, stop = _get(fields, words.stop_field) if words.stop_field is not None else (False, None)
    if isinstance(stop, bool) or not isinstance(stop, (str, int, type(None))):
        raise TypeError(
            f"{words.stop_field} of {system} is {type(stop).__name__}, not str, int or null"
        )
    token_id = None
    if isinstance(stop, int):
        token_id, stop = stop, None
        if len(reasons) > 1:
            reasons = _token_reasons(words.token_means, token_id, eos_token_ids)
    elif isinstance(stop, str) and stop != words.no_stop:
        # Also where the word says otherwise: llama.cpp's Anthropic route says end_turn and names
        # the stop.
        if len(reasons) > 1 or reasons == ("eos",):
            reasons = ("stop_string",)
        elif words.stop_field_words.get(reasons[0]) == stop:
            stop = None
    elif named and len(reasons) > 1 and words.silent_means:
        reasons = words.silent_means
    if len(reasons) > 1:
        return AmbiguousFinish(system, word, reasons, token_id)
    return ParsedFinish(system, word, reasons[0], None if stop == words.no_stop else stop, token_id)


def _token_reasons(
    may_be: tuple[str, ...], token_id: int, eos_token_ids: int | Iterable[int] | None
) -> tuple[str, ...]:
    if eos_token_ids is None:
        return may_be
    known = {
        index(one)
        for one in (eos_token_ids if isinstance(eos_token_ids, Iterable) else [eos_token_ids])
    }
    return ("eos",) if token_id in known else ("stop_token",)


def _get(fields: Mapping[str, Any], path: str) -> tuple[bool, Any]:
    """Whether the dotted path is there, and what it holds.

    An object on the way that is null counts as absent.
    """
    value: Any = fields
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return False, None
        value = value[name]
    return True, value


def _put(fields: dict[str, Any], path: str, value: Any) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        fields = fields.setdefault(parent, {})
    fields[name] = value
