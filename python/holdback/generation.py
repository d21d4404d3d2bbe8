"""One generation under way: its tokens one by one, in blocks, and in batches of generations.

A `Generation` puts the parts together: a stream of the stops, the detectors of other ends of text,
the counts, and books on which tokens have text that is not emitted yet. The rules and their order
are in `holdback.criteria`.
"""

from __future__ import annotations

import codecs
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any, TypeAlias

from . import StopMatch, feed_batch
from ._core import LoopDetector
from .endings import BUILT_IN
from .finish import Finish, Loop

if TYPE_CHECKING:
    from .criteria import StoppingCriteria

__all__ = ["Generation", "Piece", "step_batch"]

Piece: TypeAlias = "str | bytes | bytearray | memoryview"
"""The text of a token, or its UTF-8 bytes, cut anywhere."""


def __dir__() -> list[str]:
    return __all__  # completion offers what this module defines, not what it imports


class Generation:
    """One generation under way. Made by `StoppingCriteria.start`; used by one thread at a time.

    Copy it for `n > 1`, beam search, or to roll back a speculative block. It pickles in mid-flight:
    the time already used goes with it, the clock is that of the process that reads it (criteria and
    a clock that pickle are up to the caller).
    """

    # With their texts, so that `help` has them.
    __slots__ = {
        "_detectors": None,
        "_ends": None,
        "_look_at": None,
        "_open": None,
        "_stream": None,
        "_tail": None,
        "_transactional": None,
        "criteria": "What ends it.",
        "data": "Notes of the caller's own criteria; copied (one level deep) with the run.",
        "finish": "How it ended, or `None` while it goes on.",
        "started": "When it started, by the clock of the criteria, in its seconds.",
        "tokens": "Tokens that count so far.",
    }

    def __init__(self, criteria: StoppingCriteria) -> None:
        self.criteria = criteria
        self.tokens: int = 0
        """Tokens that count so far."""
        self.finish: Finish | None = Finish("length") if criteria.max_tokens == 0 else None
        """How it ended, or `None` while it goes on."""
        self.data: dict[str, Any] = {}
        """Notes of the caller's own criteria; copied (one level deep) with the run."""
        self.started: float = criteria.clock()
        self._stream = criteria._stream()
        if criteria.min_tokens:
            self._stream.disarm()
        self._ends = frozenset({*criteria.eos_token_ids, *criteria.stop_token_ids})  # type: ignore[misc]  # settled above
        self._detectors = [rule.detector() for rule in criteria._text_ends]
        self._look_at = self._next_look()
        # Tokens with text that is not out yet, each with the number of characters that are still to
        # be emitted until all of its text is; and the last bytes, for a character that is not whole.
        self._open: list[tuple[int | None, int]] = []
        self._tail = b""
        # What may fail after the stream has moved: a criterion, a detector or a clock of the
        # caller's, or a flush that finds half a character.
        own_clock = criteria.max_time is not None and criteria.clock is not time.monotonic
        strange = any(type(rule) not in BUILT_IN for rule in criteria._text_ends)
        self._transactional = (
            bool(criteria._criteria) or strange or own_clock or criteria.errors == "strict"
        )

    @property
    def held(self) -> str:
        """Text seen and not emitted yet, because it may be the start of a stop."""
        return self._stream.held

    @property
    def held_tokens(self) -> tuple[int | None, ...]:
        """The ids of the last tokens whose text, or a part of it, is not emitted yet: held back, or
        an unfinished character. Who sends token ids along with the text keeps these back too.

        >>> from holdback import StoppingCriteria
        >>> run = StoppingCriteria(stop=["END"]).start()
        >>> run.step(5, "so "), run.step(6, "fine E"), run.step(7, "N"), run.held_tokens
        (('so ', None), ('fine ', None), ('', None), (6, 7))
        """
        return tuple(token for token, _ in self._open)

    @property
    def elapsed(self) -> float:
        """Seconds since the start, by the clock of the criteria."""
        return self.criteria.clock() - self.started

    def step(self, token_id: int | None, piece: Piece | None = "", /) -> tuple[str, Finish | None]:
        """Judge one token. `piece` is its text, or its UTF-8 bytes, cut anywhere; `None` if there is
        no text (yet), as `tokenizers.DecodeStream.step` returns. `token_id` may be `None` if it is
        not known.

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
        self, token_ids: Iterable[int | None], pieces: Iterable[Piece | None], /
    ) -> tuple[str, Finish | None]:
        """Judge the tokens of a speculative block in order, as `step` would one by one, up to the
        one that ends the run.

        `finish.block_tokens` says how many of the block count, the completing one included; the
        rest was never looked at. If any token raises, the whole block is taken back.

        >>> from holdback import StoppingCriteria
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

        >>> from holdback import StoppingCriteria
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
        """An independent run in the same state, in time that does not grow with the text."""
        twin = Generation.__new__(Generation)
        for name in Generation.__slots__:
            setattr(twin, name, getattr(self, name))
        twin._stream = self._stream.copy()
        twin._detectors = [detector.copy() for detector in self._detectors]
        twin._open = self._open.copy()
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

    def _advance(self, token: int | None, piece: Piece | None) -> tuple[str, Finish | None]:
        if token in self._ends and (reason := self._ending(token)) is not None:
            return self._end_by_token(reason, token, piece)
        emit, match = self._stream.feed(self._chunk(piece) if piece is None else piece)
        # The usual token: all of its text is out (it is the very object), and nothing waits or
        # watches, so that there are no books to keep.
        if emit is piece and match is None and not self._open and not self._detectors:
            self.tokens += 1
            if self.tokens < self._look_at:
                return emit, None
            return self._settle(token, emit)
        return self._take(token, piece, emit, match)

    def _chunk(self, piece: Piece | None) -> Piece:
        """What the stream is fed for `piece`: for a token without text a chunk that changes nothing
        but the count. An empty `str` would end a character that waits for its other bytes.
        """
        if piece is None:
            return b"" if self._tail else ""
        return piece

    def _take(
        self, token: int | None, piece: Piece | None, emit: str, match: StopMatch[str] | None
    ) -> tuple[str, Finish | None]:
        """What the stream's answer to a token means for the run."""
        self.tokens += 1
        end = self._text_end(emit, match) if self._detectors else None
        if emit is not piece or self._open or match is not None or end is not None:
            self._note(token, piece, emit, match)
            if end is not None:
                return self._end_inside(*end, emit, match)
            self._is_out(len(emit))
        if match is not None:
            self.finish = self._stopped(match, "", block_tokens=1)
            return emit, self.finish
        if self.tokens < self._look_at:
            return emit, None
        return self._settle(token, emit)

    def _note(
        self, token: int | None, piece: Piece | None, emit: str, match: StopMatch[str] | None
    ) -> None:
        """Put down how much is to be emitted, `emit` included, until all text of this token is out."""
        left = len(emit)
        if match is not None:
            left += bool(self._removed(match))
        else:
            left += len(self._stream.held) + self._unfinished(piece)
        if self._open:
            left = max(left, self._open[-1][1])  # what comes later is out later
        self._open.append((token, left))

    def _is_out(self, count: int) -> None:
        """So many characters were emitted: strike out the tokens that are whole."""
        self._open = [(token, left - count) for token, left in self._open if left > count]

    def _unfinished(self, piece: Piece | None) -> bool:
        """Whether the text ends inside a character after `piece`; a token without text counts with
        the text that comes next, which may be its own.
        """
        if piece is None:
            return True
        if isinstance(piece, str):
            self._tail = b""
            return "\ud800" <= piece[-1:] <= "\udbff"
        self._tail = (self._tail + bytes(piece[-3:]))[-3:]
        return codecs.utf_8_decode(self._tail, "replace", False)[1] < len(self._tail)

    def _next_look(self) -> int:
        """The number of tokens at which something but a stop can happen, so that all those before
        it are cheap.
        """
        criteria = self.criteria
        if criteria.max_time is not None or criteria._criteria:
            return 0
        at = [criteria.min_tokens] if self.tokens < criteria.min_tokens else []
        if criteria.max_tokens is not None:
            at.append(criteria.max_tokens)
        return min(at, default=sys.maxsize)

    def _ending(self, token: int | None) -> str | None:
        criteria = self.criteria
        if self.tokens < criteria.min_tokens:
            return None
        if criteria.ignore_end_inside and self._stream.region is not None:
            return None
        if token in criteria.eos_token_ids:  # type: ignore[operator]  # a frozenset since __post_init__
            return "eos"
        return "stop_token" if token in self._ends else None

    def _end_by_token(
        self, reason: str, token: int | None, piece: Piece | None
    ) -> tuple[str, Finish]:
        text = "" if piece is None else _text(piece)
        return self._close(reason, text, token_id=token, ending=True, block_tokens=1)

    def _settle(self, token: int | None, emit: str) -> tuple[str, Finish | None]:
        """Ask everything but the text about a token that was just counted."""
        criteria = self.criteria
        if self.tokens == criteria.min_tokens:
            self._stream.arm()
            self._look_at = self._next_look()
        reason: str | None = None
        for criterion in criteria._criteria:
            verdict = criterion(self, token, emit)
            if self.finish is not None:
                # Its text went to the criterion, and nobody else would see it.
                raise RuntimeError(
                    "a criterion ends a run by what it returns, not by calling end() or cancel()"
                )
            if verdict:
                reason = verdict if isinstance(verdict, str) else "custom"
                break
        if reason is not None:
            pass
        elif criteria.max_tokens is not None and self.tokens >= criteria.max_tokens:
            reason = "length"
        elif self._out_of_time():
            reason = "time"
        else:
            return emit, None
        rest, finish = self._close(reason, "", block_tokens=1)
        return emit + rest, finish

    def _out_of_time(self) -> bool:
        return self.criteria.max_time is not None and self.elapsed >= self.criteria.max_time

    def _text_end(
        self, emit: str, match: StopMatch[str] | None
    ) -> tuple[str, int, tuple[str, int, int] | None] | None:
        """The first end that a detector finds in text that is about to be emitted: the reason, how
        much of `emit` belongs to the answer, and the loop if it is one.
        """
        if match is not None and self._includes(match):
            emit = emit[: len(emit) - len(match.stop)]  # the stop itself was found by then
        first: tuple[str, int, tuple[str, int, int] | None] | None = None
        for rule, detector in zip(self.criteria._text_ends, self._detectors, strict=True):
            if isinstance(detector, LoopDetector) and self.tokens <= self.criteria.min_tokens:
                detector.skip(emit)
                continue
            kept = detector.feed(emit)
            if kept is not None and (first is None or kept < first[1]):
                found = detector.found if isinstance(detector, LoopDetector) else None
                first = rule.reason, kept, found
        return first

    def _end_inside(
        self,
        reason: str,
        kept: int,
        found: tuple[str, int, int] | None,
        emit: str,
        match: StopMatch[str] | None,
        *,
        more: str = "",
        block_tokens: int = 1,
    ) -> tuple[str, Finish]:
        """Finish after `kept` characters of `emit`; all that was generated after them is removed."""
        removed = emit[kept:]
        if match is None:
            removed += self._stream.flush()
            match = self._stream.match
        if match is not None:
            removed += self._removed(match)
        removed += more
        self._is_out(kept)
        loop = None if found is None else Loop(*found)
        self.finish = self._finished(reason, removed, loop=loop, block_tokens=block_tokens)
        return emit[:kept], self.finish

    def _close(
        self,
        reason: str,
        text: str,
        *,
        stop: str | None = None,
        token_id: int | None = None,
        ending: bool = False,
        block_tokens: int = 0,
    ) -> tuple[str, Finish]:
        """Flush and finish. `ending`: a token ended the run, and `text` is its text, which did not
        pass through the stream.
        """
        emit = self._stream.flush()
        match = self._stream.match
        include = ending and self.criteria.include_stop_token
        if ending:
            self.tokens += 1
            self._open.append((token_id, sys.maxsize))
        if self._detectors and (end := self._text_end(emit, match)) is not None:
            return self._end_inside(*end, emit, match, more=text, block_tokens=block_tokens)
        self._is_out(len(emit))
        if match is not None:
            self.finish = self._stopped(match, text, block_tokens=block_tokens)
            return emit, self.finish
        # All text of the other tokens is out now, whatever they were waiting for.
        self._open = []
        if include:
            emit, text = emit + text, ""
        elif ending:
            self._open.append((token_id, sys.maxsize))
        self.finish = self._finished(
            reason, text, stop=stop, token_id=token_id, block_tokens=block_tokens
        )
        return emit, self.finish

    def _stopped(self, match: StopMatch[str], after: str, *, block_tokens: int) -> Finish:
        removed = self._removed(match) + after
        return self._finished(
            "stop_string", removed, match=match, stop=_stop_text(match), block_tokens=block_tokens
        )

    def _finished(self, reason: str, removed: str, **known: Any) -> Finish:
        kept = self.tokens - len(self._open)
        self._open = []
        return Finish(reason, self.tokens, removed=removed, kept_tokens=kept, **known)

    def _includes(self, match: StopMatch[str]) -> bool:
        include = self.criteria.include_stop
        return include is True or (not isinstance(include, bool) and _stop_text(match) in include)

    def _removed(self, match: StopMatch[str]) -> str:
        """What the stream does not emit of a match: the stop, unless it is included, and the rest
        of its chunk.
        """
        return ("" if self._includes(match) else _stop_text(match)) + _text(match.rest)

    def _save(self) -> tuple[Any, ...]:
        detectors = [detector.copy() for detector in self._detectors]
        return (
            *(self._stream.copy(), detectors, self._open.copy(), self._tail),
            *(self.tokens, dict(self.data)),
        )

    def _restore(self, saved: tuple[Any, ...]) -> None:
        self._stream, self._detectors, self._open, self._tail, self.tokens, self.data = saved
        self.finish = None
        self._look_at = self._next_look()


def step_batch(
    runs: Sequence[Generation],
    token_ids: Sequence[int | None],
    pieces: Sequence[Piece | None],
    /,
) -> tuple[list[str], list[tuple[int, Finish]]]:
    """One engine step over many sequences: token `i` and piece `i` go to run `i`, each run ends on
    its own.

    Returns what each run emits, in order, and `(position, finish)` of the runs that ended in this
    step. A run that had ended before emits nothing and is not listed again, so finished rows of a
    batch may stay where they are. If one token raises, no run of the call is changed.

    >>> from holdback import StoppingCriteria, step_batch
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
        chunks = [runs[i]._chunk(piece) if (piece := pieces[i]) is None else piece for i in fed]
        answers, matched = feed_batch([runs[i]._stream for i in fed], chunks)
        matches = dict(matched)
        for at, i in enumerate(fed):
            run, emit = runs[i], answers[at]
            whole = emit is pieces[i] and at not in matches
            if whole and not run._open and not run._detectors:
                run.tokens += 1  # the usual token, as in `_advance`
                if run.tokens < run._look_at:
                    emits[i] = emit
                    continue
                emits[i], finish = run._settle(tokens[i], emit)
            else:
                emits[i], finish = run._take(tokens[i], pieces[i], emit, matches.get(at))
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


def _pieces(pieces: Iterable[Piece | None]) -> list[Piece | None]:
    if isinstance(pieces, (str, bytes, bytearray, memoryview)):
        raise TypeError(
            f"pieces is one {type(pieces).__name__}: a block takes one piece for each token"
        )
    return list(pieces)


def _check(piece: object, name: str = "a piece") -> None:
    if piece is None or isinstance(piece, (str, bytes)):
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


def _stop_text(match: StopMatch[str]) -> str:
    return match.stop if isinstance(match.stop, str) else match.stop.decode()
