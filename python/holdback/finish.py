"""How one generation ended, as a value: the reason, the stop or token that caused it, and what it
cost.

`Finish` is what `Generation.step` and its sisters return once a generation is over. It never
changes afterwards, compares by value and pickles. `Finish.to` says it in the words of another
system and `Finish.parse` reads those words back; both live in `holdback.vocabularies`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from . import StopMatch
    from .vocabularies import AmbiguousFinish, ParsedFinish

BUILT_IN_REASONS = ("eos", "stop_token", "stop_string", "length", "time", "cancelled")
"""The reasons that a `Generation` finds by itself; every other word comes from the engine or from a
criterion of the caller.
"""


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of one generation.

    >>> from holdback.criteria import StoppingCriteria
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
    """`"eos"`, `"stop_token"`, `"stop_string"`, `"length"`, `"time"`, `"cancelled"`, or a word of
    the engine's own.
    """
    tokens: int = 0
    """Tokens generated, the ones that make up the stop and the ending token included: they were
    paid for.
    """
    match: StopMatch[str] | None = None
    """The match, when a stop string ended the generation here.

    Its chunk numbers are token positions, from 0.
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
    in its token, or the ending token's own text. Everything emitted plus `removed` is everything
    generated."""

    def to(self, system: str, /, *, otherwise: str | None = None) -> dict[str, Any]:
        """The fields that `system` ends an answer with, in its own words.

        `otherwise` is the word to write when the system has none for this reason; without it that
        is a `ValueError` that lists the system's words. A system that has no word for
        `"stop_token"` or `"time"` gets its word for the nearest thing, the model's own end or the
        token limit (`holdback.vocabularies.VOCABULARIES[system].folds`).

        >>> Finish("time").to("anthropic")
        {'stop_reason': 'max_tokens', 'stop_sequence': None}
        >>> Finish("stop_string", stop="END").to("llama.cpp")
        {'stop': True, 'stop_type': 'word', 'stopping_word': 'END'}
        """
        from .vocabularies import write

        return write(self, system, otherwise=otherwise)

    @staticmethod
    def parse(
        system: str,
        fields: Mapping[str, Any],
        /,
        *,
        eos_token_ids: int | Iterable[int] | None = None,
    ) -> ParsedFinish | AmbiguousFinish | None:
        """What the fields of an answer of `system` tell about its end, and not more.

        `ParsedFinish` when they tell one reason; `AmbiguousFinish`, with every reason they may
        stand for, when they do not; `None` when they tell of no end (the answer goes on, or was
        broken off). `eos_token_ids` helps with systems that report the token but not whether it was
        the model's own end (vLLM, SGLang).

        >>> Finish.parse("anthropic", {"stop_reason": "stop_sequence", "stop_sequence": "END"})
        ParsedFinish(system='anthropic', word='stop_sequence', reason='stop_string', stop='END', token_id=None)
        >>> Finish.parse("openai", {"finish_reason": "stop"}).reasons
        ('eos', 'stop_string', 'stop_token')
        >>> Finish.parse("openai", {"finish_reason": None}) is None
        True
        """
        from .vocabularies import read

        return read(system, fields, eos_token_ids=eos_token_ids)
