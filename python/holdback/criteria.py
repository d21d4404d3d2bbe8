"""Ending a generation: end-of-sequence token, stop token, stop string, limit, or the caller's own
rule, in one object.

`StoppingCriteria` is what a request asks for: immutable, shareable. `start()` gives a `Generation`,
one per sequence. Each generated token goes through `step`; what comes back may be sent on, and a
`Finish` says when and why it is over.

The rules, in the order in which one token is judged:

1. An end-of-sequence or stop *token* ends the run. Its own text is never emitted, also not with
   `include_stop`; held text comes out.
2. A stop *string* that the token completes ends it. So it wins over a limit reached by the same
   token.
3. `max_tokens`, then `max_time`, then the caller's own criteria, in their order. Held text comes
   out.

`min_tokens` holds back rules 1 and 2: neither can end the run within the first `min_tokens` tokens.
A stop that begins there and is completed by a later token counts. (vLLM: a stop string counts when
more than `min_tokens` tokens exist, and its sampler does not offer an ending token before
`min_tokens` tokens exist.) An ending token that is ignored for this reason is a token like any
other: its text, if the detokenizer gives it any, is matched and emitted, since nothing that did not
end the run may be lost. Limits and own criteria are not held back.

After the end every call returns the same finish and no text. When flushing at an end completes a
stop (an unfinished character became U+FFFD), the stop string is the reason.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import Any, Literal, TypeAlias

from . import StopMatch, StopSet, StopStream, feed_batch
from .finish import Finish

__all__ = [
    "Criterion",
    "Generation",
    "Piece",
    "StoppingCriteria",
    "Stops",
    "step_batch",
]

Piece: TypeAlias = "str | bytes | bytearray | memoryview"
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
    * `custom`: criteria of the caller's own (`Criterion`).
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
    custom: Sequence[Criterion] = ()
    include_stop: bool | Iterable[str | bytes] = False
    errors: Literal["replace", "strict"] = "replace"
    ignore_inside: Iterable[tuple[str, str]] | None = None
    start_inside: bool = False
    atomic: str | Iterable[str] | None = None
    min_chars: int = 0
    clock: Callable[[], float] = time.monotonic
    stops: StopSet = field(init=False, repr=False)
    """The compiled stop strings."""

    def __post_init__(self) -> None:
        def settle(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        settle("stops", self.stop if isinstance(self.stop, StopSet) else StopSet(self.stop))
        settle("stop", self.stops.stops)
        settle("eos_token_ids", _ids("eos_token_ids", self.eos_token_ids))
        settle("stop_token_ids", _ids("stop_token_ids", self.stop_token_ids))
        settle("custom", tuple(self.custom))
        # What is no collection, and what is in one, is for the stream to judge, which names it.
        for name in ("ignore_inside", "atomic"):
            given = getattr(self, name)
            if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
                settle(name, tuple(tuple(one) if isinstance(one, list) else one for one in given))
        if not isinstance(self.include_stop, bool):
            settle("include_stop", _collected(self.include_stop))
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens}")
        if self.min_tokens < 0:
            raise ValueError(f"min_tokens must not be negative, not {self.min_tokens}")
        if self.max_tokens is not None and self.min_tokens > self.max_tokens:
            raise ValueError(
                f"min_tokens ({self.min_tokens}) is greater than max_tokens ({self.max_tokens})"
            )
        if self.max_time is not None and not self.max_time >= 0:
            raise ValueError(f"max_time must be seconds, 0 or more, not {self.max_time}")
        if self.min_tokens and self.min_chars:
            raise ValueError(
                "min_tokens and min_chars both say when stops begin to count: give one of them"
            )
        self._stream()

    def start(self) -> Generation:
        """A fresh run, for one sequence. Its `max_time` begins now."""
        return Generation(self)

    def _stream(self) -> StopStream[str]:
        options: dict[str, Any] = {}
        for name in ("include_stop", "ignore_inside", "start_inside", "atomic", "min_chars"):
            if value := getattr(self, name):
                options[name] = value
        return self.stops.stream(errors=self.errors, **options)


class Generation:
    """One generation under way. Made by `StoppingCriteria.start`; used by one thread at a time.

    Copy it for `n > 1`, beam search, or to roll back a speculative block. It pickles in mid-flight:
    the time already used goes with it, the clock is that of the process that reads it (criteria and
    a clock that pickle are up to the caller).
    """

    __slots__ = (
        "_ends",
        "_look_at",
        "_stream",
        "_transactional",
        "criteria",
        "data",
        "finish",
        "started",
        "tokens",
    )

    def __init__(self, criteria: StoppingCriteria) -> None:
        self.criteria = criteria
        self.tokens: int = 0
        """Tokens that count so far."""
        self.finish: Finish | None = None
        """How it ended, or `None` while it goes on."""
        self.data: dict[str, Any] = {}
        """Notes of the caller's own criteria; copied (one level deep) with the run."""
        self.started: float = criteria.clock()
        self._stream = criteria._stream()
        if criteria.min_tokens:
            self._stream.disarm()
        self._ends = frozenset({*criteria.eos_token_ids, *criteria.stop_token_ids})  # type: ignore[misc]  # settled above
        self._look_at = self._next_look()
        # What may fail after the stream has moved: a criterion, a clock of the caller's, or a flush
        # that finds half a character.
        own_clock = criteria.max_time is not None and criteria.clock is not time.monotonic
        self._transactional = bool(criteria.custom) or own_clock or criteria.errors == "strict"

    @property
    def held(self) -> str:
        """Text seen and not emitted yet, because it may be the start of a stop."""
        return self._stream.held

    @property
    def elapsed(self) -> float:
        """Seconds since the start, by the clock of the criteria."""
        return self.criteria.clock() - self.started

    def step(self, token_id: int | None, piece: Piece = "", /) -> tuple[str, Finish | None]:
        """Judge one token. `piece` is its text, or its UTF-8 bytes, cut anywhere. `token_id` may be
        `None` if it is not known.

        Returns the text that may be sent on, and the finish once there is one. A call that raises
        (a piece of another type, bytes that `errors="strict"` refuses, an own criterion that fails)
        leaves the run as it was.
        """
        if self.finish is not None:
            return "", self.finish
        token = _token(token_id)
        if not self._transactional:
            return self._advance(token, piece)
        before = self._save()
        try:
            return self._advance(token, piece)
        except BaseException:
            self._restore(before)
            raise

    def step_block(
        self, token_ids: Iterable[int | None], pieces: Iterable[Piece], /
    ) -> tuple[str, Finish | None]:
        """Judge the tokens of a speculative block in order, as `step` would one by one, up to the
        one that ends the run.

        `finish.block_tokens` says how many of the block count, the completing one included; the
        rest was never looked at. If any token raises, the whole block is taken back.

        >>> run = StoppingCriteria(stop=["END"]).start()
        >>> emit, finish = run.step_block([5, 6, 7, 8], ["a ", "E", "ND", " b"])
        >>> emit, finish.block_tokens
        ('a ', 3)
        """
        if self.finish is not None:
            return "", self.finish
        tokens = [_token(token_id) for token_id in token_ids]
        texts = _pieces(pieces)
        if len(tokens) != len(texts):
            raise ValueError(f"a block of {len(tokens)} token ids came with {len(texts)} pieces")
        before = self._save()
        emitted: list[str] = []
        try:
            for count, (token, piece) in enumerate(zip(tokens, texts, strict=True), 1):
                emit, finish = self._advance(token, piece)
                emitted.append(emit)
                if finish is not None:
                    self.finish = replace(finish, block_tokens=count)
                    break
        except BaseException:
            self._restore(before)
            raise
        return "".join(emitted), self.finish

    def poll(self) -> tuple[str, Finish | None]:
        """Look at the clock without a token: ends the run if `max_time` has passed, for engines
        that stall.
        """
        if self.finish is None and self._out_of_time():
            return self._close("time", "")
        return "", self.finish

    def cancel(self) -> tuple[str, Finish]:
        """The client is gone or something failed: held text comes out, the reason is `"cancelled"`."""
        return self.end("cancelled")

    def end(
        self, reason: str, /, *, stop: str | None = None, token_id: int | None = None
    ) -> tuple[str, Finish]:
        """The engine, or the system in front of it, decided the end: `"tool_calls"`,
        `"content_filter"`, also `"eos"` or `"length"`.

        `stop` and `token_id` are what that system reported about it. `"stop_string"` needs `stop`: a
        run finds its own stops.

        >>> run = StoppingCriteria(stop=["\\n\\n"]).start()
        >>> run.step(1, "one line\\n")[0]
        'one line'
        >>> emit, finish = run.end("tool_calls")
        >>> emit, finish.to("anthropic")
        ('\\n', {'stop_reason': 'tool_use', 'stop_sequence': None})
        """
        if not isinstance(reason, str) or not reason:  # type: ignore[redundant-expr]  # also for callers without types
            raise ValueError(f"an end needs a reason, a non-empty str, not {reason!r}")
        if reason == "stop_string" and stop is None:
            raise ValueError(
                'end("stop_string") needs stop=: a run finds its own stops, so this one was found elsewhere'
            )
        if self.finish is not None:
            return "", self.finish
        return self._close(reason, "", stop=stop, token_id=token_id)

    def copy(self) -> Generation:
        """An independent run in the same state, in constant time."""
        twin = Generation.__new__(Generation)
        for name in Generation.__slots__:
            setattr(twin, name, getattr(self, name))
        twin._stream = self._stream.copy()
        twin.data = dict(self.data)
        return twin

    __copy__ = copy

    def __getstate__(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in Generation.__slots__}
        state["started"] = self.elapsed
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.started = self.criteria.clock() - state["started"]

    def __repr__(self) -> str:
        how = "going on" if self.finish is None else self.finish.reason
        return f"<holdback.Generation: {self.tokens} tokens, {how}>"

    # One token, in two halves, so that `step_batch` can put one call for all streams between them.

    def _advance(self, token: int | None, piece: Piece) -> tuple[str, Finish | None]:
        if token in self._ends and (reason := self._ending(token)) is not None:
            return self._end_by_token(reason, token, piece)
        emit, match = self._stream.feed(piece)
        self.tokens += 1
        if match is None and self.tokens < self._look_at:
            return emit, None
        return self._settle(token, emit, match)

    def _next_look(self) -> int:
        """The number of tokens at which something but a stop can happen, so that all those before
        it are cheap.
        """
        criteria = self.criteria
        if criteria.max_time is not None or criteria.custom:
            return 0
        at = [criteria.min_tokens] if self.tokens < criteria.min_tokens else []
        if criteria.max_tokens is not None:
            at.append(criteria.max_tokens)
        return min(at, default=sys.maxsize)

    def _ending(self, token: int | None) -> str | None:
        criteria = self.criteria
        if self.tokens < criteria.min_tokens:
            return None
        if token in criteria.eos_token_ids:  # type: ignore[operator]  # a frozenset since __post_init__
            return "eos"
        return "stop_token" if token in self._ends else None

    def _end_by_token(self, reason: str, token: int | None, piece: Piece) -> tuple[str, Finish]:
        return self._close(reason, _text(piece), token_id=token, tokens=1, block_tokens=1)

    def _settle(
        self, token: int | None, emit: str, match: StopMatch[str] | None
    ) -> tuple[str, Finish | None]:
        """What the stream's answer to a token that was just counted means for the run."""
        criteria = self.criteria
        if match is not None:
            self.finish = self._stopped(match, "", block_tokens=1)
            return emit, self.finish
        if self.tokens == criteria.min_tokens:
            self._stream.arm()
            self._look_at = self._next_look()
        reason: str | None = None
        if criteria.max_tokens is not None and self.tokens >= criteria.max_tokens:
            reason = "length"
        elif self._out_of_time():
            reason = "time"
        else:
            for criterion in criteria.custom:
                verdict = criterion(self, token, emit)
                if (
                    self.finish is not None
                ):  # its text went to the criterion, and nobody else would see it
                    raise RuntimeError(
                        "a criterion ends a run by what it returns, not by calling end() or cancel()"
                    )
                if verdict:
                    reason = verdict if isinstance(verdict, str) else "custom"
                    break
        if reason is None:
            return emit, None
        rest, finish = self._close(reason, "", block_tokens=1)
        return emit + rest, finish

    def _out_of_time(self) -> bool:
        return self.criteria.max_time is not None and self.elapsed >= self.criteria.max_time

    def _close(
        self,
        reason: str,
        removed: str,
        *,
        stop: str | None = None,
        token_id: int | None = None,
        tokens: int = 0,
        block_tokens: int = 0,
    ) -> tuple[str, Finish]:
        """Flush and finish. `tokens`: how many ended the run without passing through the stream."""
        emit = self._stream.flush()
        self.tokens += tokens
        match = self._stream.match
        if match is not None:
            self.finish = self._stopped(match, removed, block_tokens=block_tokens)
        else:
            self.finish = Finish(
                reason,
                self.tokens,
                stop=stop,
                token_id=token_id,
                block_tokens=block_tokens,
                removed=removed,
            )
        return emit, self.finish

    def _stopped(self, match: StopMatch[str], after: str, *, block_tokens: int) -> Finish:
        include = self.criteria.include_stop
        stop = match.stop if isinstance(match.stop, str) else match.stop.decode()
        emitted = include is True or (not isinstance(include, bool) and stop in include)
        removed = ("" if emitted else stop) + _text(match.rest) + after
        return Finish(
            "stop_string", self.tokens, match, stop, block_tokens=block_tokens, removed=removed
        )

    def _save(self) -> tuple[StopStream[str], int, dict[str, Any]]:
        return self._stream.copy(), self.tokens, dict(self.data)

    def _restore(self, saved: tuple[StopStream[str], int, dict[str, Any]]) -> None:
        self._stream, self.tokens, self.data = saved
        self.finish = None
        self._look_at = self._next_look()


def step_batch(
    runs: Sequence[Generation], token_ids: Sequence[int | None], pieces: Sequence[Piece], /
) -> tuple[list[str], list[tuple[int, Finish]]]:
    """One engine step over many sequences: token `i` and piece `i` go to run `i`, each run ends on
    its own.

    Returns what each run emits, in order, and `(position, finish)` of the runs that ended in this
    step. A run that had ended before emits nothing and is not listed again, so finished rows of a
    batch may stay where they are. If one token raises, no run of the call is changed.

    >>> criteria = StoppingCriteria(stop=["."], eos_token_ids=2)
    >>> runs = [criteria.start() for _ in range(3)]
    >>> emits, ended = step_batch(runs, [10, 2, 11], ["Yes", "</s>", "No."])
    >>> emits, [(i, finish.reason) for i, finish in ended]
    (['Yes', '', 'No'], [(1, 'eos'), (2, 'stop_string')])
    """
    if not len(runs) == len(token_ids) == len(pieces):
        raise ValueError(
            f"a batch of {len(runs)} runs came with {len(token_ids)} token ids and {len(pieces)} pieces"
        )
    if len(set(map(id, runs))) != len(runs):
        raise ValueError("one run is in the batch twice: each sequence needs a run of its own")
    emits = [""] * len(runs)
    fed: list[int] = []
    by_token: list[tuple[int, str]] = []
    tokens: list[int | None] = []
    for i, run in enumerate(runs):
        token = _token(token_ids[i])
        tokens.append(token)
        if run.finish is None:
            if token in run._ends and (reason := run._ending(token)) is not None:
                _check(pieces[i], f"piece {i}")  # the others are checked where they are fed
                by_token.append((i, reason))
            else:
                fed.append(i)
    live = [*fed, *(i for i, _ in by_token)]
    saved = (
        [(runs[i], runs[i]._save()) for i in live]
        if any(runs[i]._transactional for i in live)
        else []
    )
    ended: list[int] = []
    try:
        answers, matched = feed_batch([runs[i]._stream for i in fed], [pieces[i] for i in fed])
        matches = dict(matched)
        for at, i in enumerate(fed):
            run, emits[i] = runs[i], answers[at]
            run.tokens += 1
            if at in matches or run.tokens >= run._look_at:
                emits[i], finish = run._settle(tokens[i], answers[at], matches.get(at))
                if finish is not None:
                    ended.append(i)
        for i, reason in by_token:
            emits[i], _ = runs[i]._end_by_token(reason, tokens[i], pieces[i])
            ended.append(i)
    except BaseException as error:
        for run, state in saved:
            run._restore(state)
        if isinstance(error, TypeError):
            for i in fed:
                _check(pieces[i], f"piece {i}")  # says which one it was
        raise
    return emits, [(i, finish) for i in sorted(ended) if (finish := runs[i].finish) is not None]


def _token(token_id: int | None) -> int | None:
    # `index` accepts what is an integer (also numpy's, and a tensor of one element, which a set
    # would never find).
    return None if token_id is None else index(token_id)


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


def _pieces(pieces: Iterable[Piece]) -> list[Piece]:
    if isinstance(pieces, (str, bytes, bytearray, memoryview)):
        raise TypeError(
            f"pieces is one {type(pieces).__name__}: a block takes one piece for each token"
        )
    return list(pieces)


def _check(piece: object, name: str = "a piece") -> None:
    if isinstance(piece, (str, bytes)):
        return
    try:
        memoryview(piece)  # type: ignore[arg-type]  # the question is whether it is one
    except TypeError:
        raise TypeError(f"{name} is {type(piece).__name__}, not str or bytes-like") from None


def _text(piece: Piece) -> str:
    """Text of a piece that is reported, not emitted: halves of characters are replaced, never an
    error.
    """
    _check(piece)
    if isinstance(piece, str):
        return piece.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return bytes(piece).decode("utf-8", "replace")


def __dir__() -> list[str]:
    return __all__  # completion offers what this module defines, not what it imports
