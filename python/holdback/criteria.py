"""Ending a generation: end-of-sequence token, stop token, stop string, limit, or the caller's own
rule, in one object.

`StoppingCriteria` is what a request asks for: immutable, shareable. `start()` gives a `Generation`,
one per sequence. Each generated token goes through `step`; what comes back may be sent on, and a
`Finish` says when and why it is over.

The rules, in the order in which one token is judged:

1. An end-of-sequence or stop *token* ends the run. Held text comes out; its own text does not,
   unless `include_stop_token` is set.
2. The text ends it: a stop *string* that the token completes, a loop (`repetition`), or an end that
   one of `custom` finds in the text (`JsonEnd`, `FenceEnd`). Of several the first in the text
   counts. So it wins over a limit reached by the same token.
3. The caller's own criteria, in their order, then `max_tokens`, then `max_time`. Held text comes
   out.

`min_tokens` holds back ending tokens, stop strings and loops: none can end the run within the first
`min_tokens` tokens. A stop that begins there and is completed by a later token counts. (vLLM: a
stop string counts when more than `min_tokens` tokens exist, and its sampler does not offer an
ending token before `min_tokens` tokens exist. Its scheduler alone would let token number
`min_tokens` end the run, if it were an ending one.) An ending token that is ignored for this reason
is a token like any other: its text, if the detokenizer gives it any, is matched and emitted, since
nothing that did not end the run may be lost. Limits and what is in `custom` are not held back.
`max_tokens=0` ends the run before its first token, and a `min_tokens` above `max_tokens` is no
error: the limit wins, as in engines.

After the end every call returns the same finish and no text. When flushing at an end completes a
stop (an unfinished character became U+FFFD) or another end of the text, that is the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any, Literal, TypeAlias

from . import StopSet, StopStream
from .endings import Repetition, TextEnd
from .generation import Generation

__all__ = [
    "Criterion",
    "StoppingCriteria",
    "Stops",
]

Stops: TypeAlias = "StopSet | str | bytes | Iterable[str | bytes] | None"
Criterion: TypeAlias = "Callable[[Generation, int | None, str], str | bool | None]"
"""A rule of the caller's own: `criterion(run, token_id, emit)` after each token that did not end
the run. A string is the reason to end with, `True` ends with the reason `"custom"`, anything false
goes on. It may keep notes in `run.data`."""


@dataclass(frozen=True, kw_only=True)
class StoppingCriteria:
    """What ends a generation. All arguments are optional keywords.

    * `stop`: stop strings as `StopSet` takes them, or a compiled `StopSet` (share it between
      requests; it also brings `tie`).
    * `eos_token_ids`, `stop_token_ids`: one token id or several. Chat models have more than one end
      of sequence. An id in both is `"eos"`.
    * `min_tokens`, `max_tokens`: counts of generated tokens. `max_time`: seconds since `start()`,
      by `clock`.
    * `repetition`: end a text that has fallen into a loop, by the defaults of `Repetition` (`True`)
      or by a rule of your own.
    * `custom`: criteria of the caller's own (`Criterion`), and ends of the text such as `JsonEnd()`
      and `FenceEnd()`.
    * `include_stop_token`: emit the text of the ending token too. It is not matched.
    * `ignore_end_inside`: inside the regions of `ignore_inside` (a tool call, say) end tokens do not
      count either: they are tokens like any other.
    * `include_stop`, `errors`, `ignore_inside`, `start_inside`, `atomic`, `min_chars`: as in
      `StopSet.stream`.

    Everything is checked here, so that `start()` cannot fail: `ValueError` and `TypeError` name the
    argument.

    >>> criteria = StoppingCriteria(stop=["\\nUser:"], eos_token_ids=[128001, 128009], max_tokens=256)
    >>> run = criteria.start()
    >>> run.step(11, "Sure.\\n")
    ('Sure.', None)
    >>> emit, finish = run.step(128009, "<|eot_id|>")
    >>> emit, finish.reason, finish.token_id, finish.tokens
    ('\\n', 'eos', 128009, 2)
    """

    stop: Stops = None
    eos_token_ids: int | Iterable[int] | None = ()
    stop_token_ids: int | Iterable[int] | None = ()
    max_tokens: int | None = None
    min_tokens: int = 0
    max_time: float | None = None
    repetition: Repetition | bool | None = None
    custom: Sequence[Criterion | TextEnd] = ()
    include_stop: bool | Iterable[str | bytes] = False
    include_stop_token: bool = False
    errors: Literal["replace", "strict"] = "replace"
    ignore_inside: Iterable[tuple[str, str]] | None = None
    start_inside: bool = False
    ignore_end_inside: bool = False
    atomic: str | Iterable[str] | None = None
    min_chars: int = 0
    clock: Callable[[], float] = time.monotonic
    stops: StopSet = field(init=False, repr=False)
    """The compiled stop strings."""
    _text_ends: tuple[TextEnd, ...] = field(init=False, repr=False, compare=False)
    _criteria: tuple[Criterion, ...] = field(init=False, repr=False, compare=False)

    def __new__(cls, *_given: Any, **options: Any) -> StoppingCriteria:
        """Says what is meant, for the one name that others call differently."""
        if "stops" in options:
            raise TypeError("StoppingCriteria takes the stops as stop=, as the APIs of engines do")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        def settle(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        settle("stops", self.stop if isinstance(self.stop, StopSet) else StopSet(self.stop))
        settle("stop", self.stops.stops)
        settle("eos_token_ids", _ids("eos_token_ids", self.eos_token_ids))
        settle("stop_token_ids", _ids("stop_token_ids", self.stop_token_ids))
        settle("custom", tuple(self.custom))
        self._sort_out_custom(settle)
        # What is no collection, and what is in one, is for the stream to judge, which names it.
        for name in ("ignore_inside", "atomic"):
            given = getattr(self, name)
            if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
                settle(name, tuple(tuple(one) if isinstance(one, list) else one for one in given))
        if not isinstance(self.include_stop, bool):
            settle("include_stop", _collected(self.include_stop))
        if self.max_tokens is not None and self.max_tokens < 0:
            raise ValueError(f"max_tokens must not be negative, not {self.max_tokens}")
        if self.min_tokens < 0:
            raise ValueError(f"min_tokens must not be negative, not {self.min_tokens}")
        if self.max_time is not None and not self.max_time >= 0:
            raise ValueError(f"max_time must be seconds, 0 or more, not {self.max_time}")
        if self.min_tokens and self.min_chars:
            raise ValueError(
                "min_tokens and min_chars both say when stops begin to count: give one of them"
            )
        if self.ignore_end_inside and not self.ignore_inside:
            raise ValueError("ignore_end_inside needs the regions of ignore_inside")
        self._stream()

    def _sort_out_custom(self, settle: Callable[[str, object], None]) -> None:
        """Part `custom` into ends of the text and criteria, and put `repetition` first."""
        repetition = self.repetition
        if repetition is True:
            repetition = Repetition()
        if repetition is not None and not isinstance(repetition, (bool, Repetition)):
            raise TypeError(f"repetition is True or a Repetition, not {type(repetition).__name__}")
        settle("repetition", repetition or None)
        ends: list[TextEnd] = [repetition] if repetition else []
        criteria: list[Criterion] = []
        for at, one in enumerate(self.custom):
            if isinstance(one, type):
                raise TypeError(
                    f"custom[{at}] is the class {one.__name__}: make one, {one.__name__}()"
                )
            if callable(getattr(one, "detector", None)):
                ends.append(one)  # type: ignore[arg-type]  # it has what a TextEnd has
            elif callable(one):
                criteria.append(one)
            else:
                raise TypeError(
                    f"custom[{at}] is {type(one).__name__}, no function and no end of text"
                )
        settle("_text_ends", tuple(ends))
        settle("_criteria", tuple(criteria))

    def start(self) -> Generation:
        """A fresh run, for one sequence. Its `max_time` begins now."""
        return Generation(self)

    def _stream(self) -> StopStream[str]:
        options: dict[str, Any] = {}
        for name in ("include_stop", "ignore_inside", "start_inside", "atomic", "min_chars"):
            if value := getattr(self, name):
                options[name] = value
        return self.stops.stream(errors=self.errors, **options)


def _ids(name: str, ids: int | Iterable[int] | None) -> frozenset[int]:
    if ids is None:
        return frozenset()
    if isinstance(ids, (str, bytes)):
        raise TypeError(f"{name} are integers, not text: {ids!r} may belong in stop")
    listed = list(ids) if isinstance(ids, Iterable) else [ids]
    for at, one in enumerate(listed):
        try:
            listed[at] = index(one)
        except TypeError:
            raise TypeError(f"{name}[{at}] is {type(one).__name__}, not an integer") from None
        if listed[at] < 0:
            raise ValueError(f"{name}[{at}] is {listed[at]}: a token id is not negative")
    return frozenset(listed)


def _collected(stops: Iterable[str | bytes]) -> tuple[str, ...]:
    """The stops to include, as text: one is one stop, never its letters."""
    listed = [stops] if isinstance(stops, (str, bytes)) else stops
    return tuple(stop if isinstance(stop, str) else stop.decode() for stop in listed)


def __dir__() -> list[str]:
    return __all__  # completion offers what this module defines, not what it imports
