"""`docs/filter.md`: replace text in a stream, and go on."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .cover import Cover, Literals, Reading, Region
from .decode import RawDecoder, TextDecoder
from .pattern import Pattern, tree_of
from .rules import Between, Edit, Rule
from .stops import utf8
from .syntax import Node, looks
from .words import Alphabet, Words, literal

MAX_RULES = 100_000
MAX_PATTERNS = 4_096

Text = Any  # str, or bytes of a byte_stream()


class Filter:
    """Rules, to be shared by any number of streams.

    Raises:
        TypeError, ValueError: see section 6; the message names the rule.

    >>> from holdback.reference import Filter, Pattern, Rule
    >>> keys = Filter([Rule(Pattern("sk-[a-z]{4,}"), "[K]")])
    >>> stream = keys.stream()
    >>> [stream.feed(chunk)[0] for chunk in ["key sk-a", "bcd", "e ok"]]
    ['key ', '[K]', ' ok']
    >>> keys.apply("ask-me, sk-abcdefg!")
    'ask-me, [K]!'
    """

    def __init__(self, rules: Iterable[Rule], /) -> None:
        self.rules = tuple(rules)
        for number, rule in enumerate(self.rules):
            if not isinstance(rule, Rule):
                raise TypeError(f"rule {number} must be Rule, not {type(rule).__name__}")
        patterns = [rule for rule in self.rules if isinstance(rule.what, (Pattern, Between))]
        if len(self.rules) > MAX_RULES or len(patterns) > MAX_PATTERNS:
            raise ValueError(
                f"{len(self.rules)} rules, {len(patterns)} of them no literals: more than {MAX_RULES}, {MAX_PATTERNS}"
            )
        for number, (rule, bound) in enumerate(zip(self.rules, self.bounds, strict=True)):
            if bound is None:
                raise ValueError(
                    f"rule {number} ({rule.what!r}) can hold back text without end: give it max_hold"
                )

    @classmethod
    def restore(cls, values: Mapping[str, str]) -> Filter:
        """Placeholders back to values.

        >>> Filter.restore({"PERSON_1": "Ada", "PERSON_10": "Bob"}).apply("PERSON_10 is not PERSON_1.")
        'Bob is not Ada.'
        """
        return cls(Rule(placeholder, value) for placeholder, value in values.items())

    @property
    def bounds(self) -> tuple[int | None, ...]:
        """How many uncertain characters each rule can hold at most (section 3)."""
        raw = any(_is_bytes(rule) for rule in self.rules)
        _, read = _readings(self.rules, raw)
        return tuple(_bound(rule, reading) for rule, reading in zip(self.rules, read, strict=True))

    def stream(self, **options: Any) -> FilterStream:
        """Start a text stream. Options: ``at_end``, ``keep_text``, ``errors``."""
        return FilterStream(self, raw=False, **options)

    def byte_stream(self, **options: Any) -> FilterStream:
        """Start a stream of bytes, without decoding."""
        if "errors" in options:
            raise TypeError("byte_stream() decodes nothing and takes no errors")
        return FilterStream(self, raw=True, **options)

    def apply(self, text: str, /, **options: Any) -> str:
        """What any stream of it gives for this text."""
        stream = self.stream(**options)
        emitted: str = stream.feed(text)[0] + stream.flush()[0]
        return emitted

    def __eq__(self, other: object) -> bool:
        return self.rules == other.rules if isinstance(other, Filter) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.rules)

    def __repr__(self) -> str:
        return f"Filter({list(self.rules)!r})"


def _is_bytes(rule: Rule) -> bool:
    what = rule.what
    text = (
        what.pattern
        if isinstance(what, Pattern)
        else what.open
        if isinstance(what, Between)
        else what
    )
    return isinstance(text, bytes)


def _tree(rule: Rule, raw: bool) -> Node:
    if isinstance(rule.what, Pattern):
        return tree_of(rule.what)
    assert not isinstance(rule.what, Between)
    return literal(_text(rule.what, raw))


def _text(value: Any, raw: bool) -> str:
    """A literal as the reader knows it."""
    return utf8(value).decode("latin-1" if raw else "utf-8")


@functools.lru_cache(maxsize=1000)
def _readings(
    rules: tuple[Rule, ...], raw: bool
) -> tuple[Alphabet, tuple[Reading | Literals, ...]]:
    words = [
        Words(_tree(rule, raw), utf8=raw and isinstance(rule.what, Pattern) and not _is_bytes(rule))
        for rule in rules
        if not isinstance(rule.what, Between)
    ]
    alphabet = Alphabet(words, (), raw=raw)
    in_order = iter(words)
    return alphabet, tuple(
        Literals(
            _text(rule.what.open, raw),
            _text(rule.what.close, raw),
            rule.what.unclosed == "redact",
        )
        if isinstance(rule.what, Between)
        else Reading(next(in_order), alphabet)
        for rule in rules
    )


def _bound(rule: Rule, reading: Reading | Literals) -> int | None:
    limit = rule.max_hold
    if isinstance(reading, Literals):
        return len(reading.open) - 1 if reading.redact_unclosed else limit
    bound = reading.bound()
    return bound if limit is None else limit if bound is None else min(bound, limit)


@dataclass
class _Sent:
    """How far the output has come."""

    text: int = 0  # of what came, so much has gone out or was swallowed
    out: int = 0  # so many characters went out
    region: tuple[int, int] | None = None  # of an open region, its start and where its output began


class FilterStream:
    """One stream. Made by ``Filter.stream()`` and ``Filter.byte_stream()``."""

    def __init__(
        self,
        rules: Filter,
        /,
        *,
        raw: bool,
        at_end: str = "emit",
        keep_text: bool = False,
        errors: str = "replace",
    ) -> None:
        if at_end not in ("emit", "redact"):
            raise ValueError(f'at_end must be "emit" or "redact", not {at_end!r}')
        if errors not in ("replace", "strict"):
            raise ValueError(f'errors must be "replace" or "strict", not {errors!r}')
        for number, rule in enumerate(rules.rules):
            _check_kind(number, rule, raw)
        self.filter = rules
        self._raw = raw
        self._at_end = at_end
        self._keep_text = keep_text
        self._errors = errors
        self.reset()

    def reset(self) -> None:
        """Start afresh."""
        alphabet, readings = _readings(self.filter.rules, self._raw)
        self._cover = Cover(
            readings,
            alphabet,
            tuple(rule.max_hold for rule in self.filter.rules),
            tuple(rule.on_overflow == "emit" for rule in self.filter.rules),
        )
        self._decoder = RawDecoder() if self._raw else TextDecoder(self._errors)
        self._sent = _Sent()
        self._chunks = 0
        self._chunk_of: tuple[int, ...] = ()
        self._flushed = False

    def copy(self) -> FilterStream:
        """An independent stream in the same state."""
        other = copy.copy(self)
        other._cover = copy.copy(self._cover)
        other._decoder = copy.copy(self._decoder)
        other._sent = copy.copy(self._sent)
        return other

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_cover"] = {
            name: value
            for name, value in self._cover.__dict__.items()
            if name not in ("rules", "alphabet")
        }
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        alphabet, readings = _readings(self.filter.rules, self._raw)
        self._cover = Cover(readings, alphabet, (), ())
        self._cover.__dict__.update(state["_cover"])

    @property
    def held(self) -> Text:
        """Text that was seen and whose fate is not known."""
        regions = self._cover.regions
        return self._given_back(
            "".join(
                letter
                for place, letter in enumerate(self._cover.text)
                if place >= self._sent.text
                and not any(region.start <= place < region.end for region in regions)
            )
        )

    def feed(self, chunk: Text, /) -> tuple[Text, tuple[Edit, ...]]:
        """Take one chunk; return what goes out, and the edits that were closed."""
        if not self._raw and isinstance(chunk, str):
            given: Any = chunk
        else:
            if isinstance(chunk, str):
                raise TypeError("a chunk must be bytes, not str")
            try:
                given = memoryview(chunk).tobytes()
            except TypeError:
                raise TypeError(
                    f"a chunk must be str or bytes, not {type(chunk).__name__}"
                ) from None
        if self._flushed:
            raise ValueError("this stream was flushed: reset() it, or make a new one")
        work = self.copy()
        work._chunks += 1
        result = work._read(work._decoder.read(given))
        self.__dict__.update(work.__dict__)
        return result

    def flush(self) -> tuple[Text, tuple[Edit, ...]]:
        """No more text comes."""
        work = self.copy()
        out, edits = "", []
        if not self._flushed:
            text, first = work._read(work._decoder.finish())
            out, edits = work._inner(text), list(first)
            work._cover.finish(redact=work._at_end == "redact")
            text, last = work._settle()
            out += text
            edits += last
            work._flushed = True
        self.__dict__.update(work.__dict__)
        return self._given_back(out), tuple(edits)

    def _read(self, characters: Iterator[tuple[str, int]]) -> tuple[Text, tuple[Edit, ...]]:
        out, edits = "", []
        for character, _ in characters:
            self._cover.read(character)
            self._chunk_of += (self._chunks - 1,)
            text, closed = self._settle()
            out += text
            edits += closed
        return self._given_back(out), tuple(edits)

    def _settle(self) -> tuple[str, list[Edit]]:
        """Section 3: let out what is settled."""
        cover, sent = self._cover, self._sent
        first, begun = cover.settled()
        pieces: list[str] = []
        edits: list[Edit] = []

        def write(piece: str) -> None:
            pieces.append(piece)
            sent.out += len(piece)

        while True:
            region = next(
                (one for one in cover.regions if one.end > sent.text or one.start == self._open),
                None,
            )
            border = first if region is None else min(first, region.start)
            if border > sent.text:
                write(cover.text[sent.text : border])
                sent.text = border
            if region is None or region.start > first:
                break
            if region.start == first and begun - {region.rule} and self._open is None:
                break
            closed = region.end <= first
            rule = self.filter.rules[region.rule]
            if callable(rule.replace) and not closed:
                break
            if self._open is None:
                sent.region = region.start, sent.out
                if callable(rule.replace):
                    text = self._given_back(cover.text[region.start : region.end])
                    write(self._inner(rule.replace(text)))
                elif rule.mask is None:
                    write(self._inner(rule.written))
            if rule.mask is not None:
                covered = region.end - max(sent.text, region.start)
                write(self._inner(rule.mask) * covered)
            sent.text = max(sent.text, region.end)
            if not closed:
                break
            edits.append(self._edit(region))
            sent.region = None
            cover.regions = tuple(one for one in cover.regions if one is not region)
        return "".join(pieces), edits

    @property
    def _open(self) -> int | None:
        return None if self._sent.region is None else self._sent.region[0]

    def _edit(self, region: Region) -> Edit:
        assert self._sent.region is not None
        text = self._given_back(self._cover.text[region.start : region.end])
        return Edit(
            rule=region.rule,
            name=self.filter.rules[region.rule].name,
            start=region.start,
            end=region.end,
            out_start=self._sent.region[1],
            out_end=self._sent.out,
            start_chunk=self._chunk_of[region.start],
            end_chunk=self._chunk_of[region.end - 1],
            text=text if self._keep_text else None,
        )

    def _inner(self, value: Any) -> str:
        if isinstance(value, bytes):
            return value.decode("latin-1")
        return value.encode("utf-8").decode("latin-1") if self._raw else value  # type: ignore[no-any-return]  # value is Any

    def _given_back(self, text: str) -> Text:
        return text.encode("latin-1") if self._raw else text


def _check_kind(number: int, rule: Rule, raw: bool) -> None:
    if _is_bytes(rule) and not raw:
        raise TypeError(
            f"rule {number} is about bytes: a text stream takes str only, use byte_stream()"
        )
    if (
        isinstance(rule.what, Pattern)
        and raw
        and not _is_bytes(rule)
        and "b" in looks(tree_of(rule.what))
    ):
        raise ValueError(
            f"rule {number} ({rule.what!r}) has \\b, and a byte stream does not know what a character is: "
            "use a pattern of bytes"
        )
    for value in (rule.replace, rule.mask):
        if isinstance(value, bytes) and not raw:
            raise TypeError(f"rule {number} writes bytes into a text stream")
