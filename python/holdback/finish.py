"""How one generation ended, as a value: the reason, the stop or token that caused it, and what it
cost.

`Finish` is what `Generation.step` and its sisters return once a generation is over. It never
changes afterwards, compares by value and pickles. `Finish.to` says it in the words of another
system and `Finish.parse` reads those words back; the words are tables, in `holdback.vocabularies`.

Reading never guesses. OpenAI's `"stop"` stands for the model's own end and for a stop string alike,
so it reads as `AmbiguousFinish`, a type without a `reason`; only where the answer is clear is there
a `ParsedFinish`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

from .vocabularies import Vocabulary, vocabulary

if TYPE_CHECKING:
    from . import StopMatch

__all__ = ["BUILT_IN_REASONS", "AmbiguousFinish", "Finish", "Loop", "ParsedFinish", "read", "write"]

BUILT_IN_REASONS = (
    *("eos", "stop_token", "stop_string", "repetition", "json_end", "fence_end"),
    *("length", "time", "cancelled"),
)
"""The reasons that a `Generation` finds by itself; every other word comes from the engine or from a
criterion of the caller.
"""


@dataclass(frozen=True, slots=True)
class ParsedFinish:
    """An answer whose fields name one reason."""

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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Loop:
    """What the text repeated when it ended with the reason `"repetition"`."""

    unit: str
    """One copy, the first."""
    count: int
    """Whole copies."""
    start: int
    """Where the repeating text begins, in characters of the emitted text."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of one generation.

    >>> from holdback import StoppingCriteria
    >>> run = StoppingCriteria(stop=["END"], max_tokens=50).start()
    >>> run.step(17, "done. E")
    ('done. ', None)
    >>> emit, finish = run.step(18, "ND!")
    >>> emit, finish.reason, finish.stop, finish.tokens, finish.removed
    ('', 'stop_string', 'END', 2, 'END!')
    >>> finish.to("openai"), finish.to("vllm")
    ({'finish_reason': 'stop'}, {'finish_reason': 'stop', 'stop_reason': 'END'})
    """

    reason: str
    """`"eos"`, `"stop_token"`, `"stop_string"`, `"repetition"`, `"json_end"`, `"fence_end"`,
    `"length"`, `"time"`, `"cancelled"`, or a word of the engine's own.
    """
    tokens: int = 0
    """Tokens generated, the ones that make up the stop and the ending token included: they were
    paid for.
    """
    match: StopMatch[str] | None = None
    """The match, when a stop string ended the generation here.

    Its chunk numbers are token positions, from 0: of the tokens that *completed* the first and the
    last character of the stop. To trim token ids, use `kept_tokens`.
    """
    stop: str | None = None
    """The stop string that ended it, also when another system found it (`Generation.end`) and there
    is no match.
    """
    token_id: int | None = None
    """The token that ended it, for `"eos"` and `"stop_token"`."""
    block_tokens: int = 0
    """How many tokens of the last call count, the completing one included: 1 after `step`, 0 after
    `cancel` or `end`.
    """
    removed: str = ""
    """Text that the counted tokens brought and that was not emitted: the stop and what followed it
    in its token, what followed the end of a JSON value, or the ending token's own text. Everything
    emitted plus `removed` is everything generated."""
    kept_tokens: int | None = None
    """How many tokens, from the first, have nothing of `removed` in them, not even one byte of its
    first character; the ending token is not among them unless its text was emitted. `None` where
    no `Generation` counted.
    """
    loop: Loop | None = None
    """What was repeated, for `"repetition"`."""

    def trim(self, *lists: Sequence[Any]) -> Any:
        """Each list (token ids, log-probabilities) without the entries of tokens that are not kept:
        the list itself for one, a tuple for several.

        >>> from holdback import StoppingCriteria
        >>> run = StoppingCriteria(stop=["。"]).start()
        >>> tokens = [bytes([byte]) for byte in "好。".encode()]
        >>> for token, piece in enumerate(tokens):
        ...     emit, finish = run.step(token, piece)
        >>> b"".join(finish.trim(tokens)).decode(), finish.kept_tokens, finish.tokens
        ('好', 3, 6)

        Raises:
            ValueError: if nobody counted the tokens.
        """
        if self.kept_tokens is None:
            raise ValueError(
                "this finish does not come from a Generation: nobody counted its tokens"
            )
        trimmed = tuple(one[: self.kept_tokens] for one in lists)
        return trimmed[0] if len(trimmed) == 1 else trimmed

    def to(self, system: str, /, *, otherwise: str | None = None) -> dict[str, Any]:
        """The fields that `system` ends an answer with, in its own words.

        `otherwise` is the word to write when the system has none for this reason; without it that
        is a `ValueError` that lists the system's words. A system that has no word for
        `"stop_token"` or `"time"` gets its word for the nearest thing, the model's own end or the
        token limit (`holdback.vocabularies.VOCABULARIES[system].fallbacks`).

        >>> Finish("time").to("anthropic")
        {'stop_reason': 'max_tokens', 'stop_sequence': None}
        >>> Finish("stop_string", stop="END").to("llama.cpp")
        {'stop': True, 'stop_type': 'word', 'stopping_word': 'END'}
        """
        return write(self, system, otherwise=otherwise)

    @staticmethod
    def parse(
        system: str,
        fields: Mapping[str, Any],
        /,
        *,
        eos_token_ids: int | Iterable[int] | None = None,
    ) -> ParsedFinish | AmbiguousFinish | None:
        """What the fields of an answer of `system` say about its end, and no more.

        `ParsedFinish` when they name one reason; `AmbiguousFinish`, with every reason they may
        stand for, when they do not; `None` when they report no end (the answer goes on, or was
        broken off). `eos_token_ids` helps with systems that report the token but not whether it was
        the model's own end (vLLM, SGLang).

        >>> Finish.parse("anthropic", {"stop_reason": "stop_sequence", "stop_sequence": "END"})
        ParsedFinish(system='anthropic', word='stop_sequence', reason='stop_string', stop='END', token_id=None)
        >>> Finish.parse("openai", {"finish_reason": "stop"}).reasons
        ('eos', 'stop_string', 'stop_token')
        >>> Finish.parse("openai", {"finish_reason": None}) is None
        True
        """
        return read(system, fields, eos_token_ids=eos_token_ids)


def write(finish: Finish, system: str, *, otherwise: str | None = None) -> dict[str, Any]:
    """`Finish.to`."""
    words = vocabulary(system)
    reason = words.fallbacks.get(finish.reason, finish.reason)
    word: str | bool | None
    if reason in words.words:
        word = words.words[reason]
    elif words.meanings.get(reason) == (reason,):
        word = reason  # already a word of that system's own
    elif otherwise is not None:
        word = otherwise
    else:
        known = ", ".join(sorted(map(str, words.meanings)))
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
    if type(word) not in {type(known) for known in words.meanings}:
        raise TypeError(
            f"{words.field} of {system} is {type(word).__name__}: {word!r} is none of its words"
        )
    if (
        words.detail_field is not None
        and (detail := _get(fields, words.detail_field)[1]) is not None
    ):
        word = f"{word}:{detail}"
    reasons = words.meanings.get(word, (str(word),))
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
            reasons = _token_reasons(words.token_meanings, token_id, eos_token_ids)
    elif isinstance(stop, str) and stop != words.no_stop:
        # Also where the word says otherwise: llama.cpp's Anthropic route says end_turn and names
        # the stop.
        if len(reasons) > 1 or reasons == ("eos",):
            reasons = ("stop_string",)
        elif words.stop_field_words.get(reasons[0]) == stop:
            stop = None
    elif named and len(reasons) > 1 and words.when_null:
        reasons = words.when_null
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


def __dir__() -> list[str]:
    return __all__  # completion offers what this module defines, not what it imports
