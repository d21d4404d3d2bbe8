"""What the systems in front of a model do with stop sequences, as data, and how to live with it.

`plan(stops, provider, model)` splits a stop list into what to send and what to enforce locally
(with a `StopSet` over `Plan.enforce`), so that a cap of four, a model that refuses the parameter or
a blank stop costs no stop:

>>> made = plan(["\\n", "END", "###", "User:", "</answer>", "---"], "anthropic")
>>> made.send, made.enforce
(['END', '###', 'User:', '</answer>', '---'], ['\\n'])
>>> print(plan(["END"], "openai", "gpt-5-mini"))
OpenAI chat completions, model gpt-5-mini
  send:    nothing
  enforce: 'END'
  - stops are not taken here: 400 unsupported_parameter; whether gpt-5.1 and later take it with reasoning_effort=none is \
disputed (BerriAI/litellm#28662) [2026-11, https://github.com/huggingface/smolagents/issues/1671]

The facts are in `data/providers.json`, each with the month it was checked and its source; what is
not there is not known, and nothing is assumed about it. Correct or add some with
`Provider.with_facts` and `register`, or `load` a file of the same shape.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from . import StopSet

__all__ = [
    "KINDS",
    "Fact",
    "Plan",
    "Provider",
    "Value",
    "get",
    "load",
    "names",
    "plan",
    "register",
]

Value: TypeAlias = "str | int | bool | None"

KINDS: Mapping[str, tuple[type, ...]] = {
    "accepts": (bool,),  # whether stops are taken at all
    "field": (str,),  # request field, dotted
    "shape": (str,),  # "list", or "string or list"
    "max_stops": (int, type(None)),  # most stops in one request; null: no cap
    "empty_list": (str,),  # what [] does: "refused", or what happens
    "empty_stop": (str,),  # what "" does: "refused", "ends at once"
    "whitespace_stop": (str,),  # what a blank stop does: "accepted", "refused"
    "included": (bool,),  # whether the stop's text stays in the output
    "misses": (str,),  # which stops it fails to see
    "names_stop": (bool,),  # whether the answer says which stop ended it
    "tells_own_end": (bool,),  # whether the answer tells the model's own end from a stop
}
"""The facts there are, and the types of their values."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing known about a system."""

    value: Value
    date: str
    """Year and month in which it was checked, `"2026-11"`."""
    source: str
    """Where it says so: an address, or a package with its version and file."""
    note: str = ""

    @property
    def cited(self) -> str:
        """The note, if there is one, and where and when it was read."""
        return f"{self.note} [{self.date}, {self.source}]".lstrip()


@dataclass(frozen=True, slots=True)
class Provider:
    """The facts of one system; `models` has those of some model families, which go first."""

    name: str
    title: str
    facts: Mapping[str, Fact]
    models: tuple[tuple[tuple[str, ...], Mapping[str, Fact]], ...] = ()
    """Pairs of name patterns (`*` stands for anything) and the facts that differ."""
    aliases: tuple[str, ...] = ()

    def facts_for(self, model: str | None = None) -> dict[str, Fact]:
        """The facts that hold for `model`.

        A vendor in front of the name (`"openai/gpt-5"`) does not matter, nor does case.
        """
        facts = dict(self.facts)
        if model is not None:
            name = model.lower()
            for patterns, special in self.models:
                if any(
                    fnmatchcase(name, p) or fnmatchcase(name.rpartition("/")[2], p)
                    for p in patterns
                ):
                    facts.update(special)
        return facts

    def with_facts(
        self,
        *,
        name: str | None = None,
        date: str = "",
        source: str = "set by the caller",
        **values: Value,
    ) -> Provider:
        """The same system with other facts, for a proxy with a raised cap or a server of your own.

        >>> mine = get("vllm").with_facts(name="our-vllm", max_stops=64)
        >>> mine.facts_for()["max_stops"].value, mine.facts_for()["max_stops"].source
        (64, 'set by the caller')
        """
        facts = {
            **self.facts,
            **{key: _fact(key, value, date, source) for key, value in values.items()},
        }
        return replace(
            self, name=name or self.name, facts=facts, aliases=self.aliases if name is None else ()
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """What to send to a system, what to enforce here, and why. `str()` explains it."""

    provider: str
    model: str | None
    title: str
    send: list[str]
    enforce: list[str | bytes]
    """Stops to cut at here.

    One that is sent too is here as well when the system cannot be relied on for it.
    """
    notes: list[str]
    field: str | None
    """The request field that takes them, dotted; `None` if there is none or it is not known."""
    facts: Mapping[str, Fact]
    """The facts it rests on."""

    @property
    def request(self) -> dict[str, Any]:
        """What to merge into the request body: the field with the stops, or nothing, never an empty
        list.

        >>> plan(["END"], "gemini").request
        {'generationConfig': {'stopSequences': ['END']}}
        """
        if not self.send or self.field is None:
            return {}
        body: Any = list(self.send)
        for name in reversed(self.field.split(".")):
            body = {name: body}
        made: dict[str, Any] = body
        return made

    def __str__(self) -> str:
        def listed(stops: Iterable[object]) -> str:
            return ", ".join(map(repr, stops)) or "nothing"

        head = self.title if self.model is None else f"{self.title}, model {self.model}"
        lines = [head, f"  send:    {listed(self.send)}", f"  enforce: {listed(self.enforce)}"]
        return "\n".join(lines + [f"  - {note}" for note in self.notes])


def plan(
    stops: StopSet | str | bytes | Iterable[str | bytes] | None,
    provider: str | Provider,
    model: str | None = None,
    *,
    must_name: bool = False,
) -> Plan:
    """Split `stops` into what `provider` can do and what to enforce locally. Every stop is in one
    of the two, or in both.

    Cutting in both places gives what one `StopSet` over the whole list would give. For that, within
    a cap, the order of the list decides, but a stop that can never be the match takes no place, and
    a stop whose beginning may be the end of one that is not sent stays here too: the system would
    cut it away, and with it the end of the other.

    `must_name=True` keeps all of them here if the system does not say which one fired. Bad stops
    raise what `StopSet` raises; an unknown provider is a `ValueError` that lists the known ones.
    """
    compiled = stops if isinstance(stops, StopSet) else StopSet(stops)
    known = provider if isinstance(provider, Provider) else get(provider)
    facts = known.facts_for(model)
    notes: list[str] = []
    field = facts.get("field")
    where = None if field is None else str(field.value)
    if not compiled.stops:
        return Plan(
            known.name, model, known.title, [], [], ["no stops: leave the field out"], where, facts
        )

    candidates = (
        [] if _refused(known, facts, model, must_name, notes) else _sendable(compiled, facts, notes)
    )
    cap = facts.get("max_stops")
    most = cap.value if cap is not None and type(cap.value) is int else None
    send = _independent(candidates, most, compiled, notes)
    if cap is not None and most is not None and len(candidates) > most:
        notes.append(
            f"{len(candidates)} stops, {most} are taken: the rest is enforced here; {cap.cited}"
        )
    elif candidates and cap is None:
        notes.append("whether there is a limit on the number of stops is not known")

    sent = {stop.encode() for stop in send}
    everything = _distinct(compiled)
    enforce = [stop for key, stop in everything.items() if key not in sent]
    for name, why in (("included", "its stops stay in the text, "), ("misses", "it can miss ")):
        fact = facts.get(name)
        if send and fact is not None and fact.value:
            enforce = list(everything.values())
            what = fact.value if name == "misses" else fact.note or "as its rule"
            notes.append(f"{why}{what}: all are enforced here too [{fact.date}, {fact.source}]")
    names = facts.get("names_stop")
    if len(enforce) < len(everything) and names is not None and not names.value:
        notes.append(
            "the answer will not say which of the stops sent ended it; must_name=True keeps them here"
        )
    return Plan(known.name, model, known.title, send, enforce, notes, where, facts)


def _refused(
    known: Provider, facts: Mapping[str, Fact], model: str | None, must_name: bool, notes: list[str]
) -> bool:
    """Whether nothing is to be sent, with the reason added to the notes."""
    accepts = facts.get("accepts")
    if accepts is None:
        notes.append("whether stops are taken here is not known: all are enforced here")
        return True
    if accepts.value is False:
        notes.append(f"stops are not taken here: {accepts.cited}")
        return True
    if must_name and ((names := facts.get("names_stop")) is None or not names.value):
        notes.append(
            "the answer does not say which stop ended it: all are enforced here, so that it is known"
        )
        return True
    refusing = [p for patterns, special in known.models if "accepts" in special for p in patterns]
    if model is None and refusing:
        notes.append(f"no model was named; these refuse stops: {', '.join(refusing)}")
    return False


def _sendable(stops: StopSet, facts: Mapping[str, Fact], notes: list[str]) -> list[str]:
    """The stops worth a place in the request, in order: reachable, distinct, text, not refused."""
    candidates = []
    for key, stop in _distinct(stops, without=stops.unreachable).items():
        text = _decoded(key)
        blank = facts.get("whitespace_stop")
        if text is None:
            notes.append(f"{stop!r} is not text: enforced here")
        elif not text.strip() and blank is not None and blank.value == "refused":
            notes.append(
                f"{text!r} is white space only, which is refused: enforced here; {blank.cited}"
            )
        else:
            candidates.append(text)
    if stops.unreachable:
        notes.append("a stop that can never be the match is not sent: it would waste a place")
    return candidates


def _independent(
    candidates: list[str], most: int | None, stops: StopSet, notes: list[str]
) -> list[str]:
    """The first `most` candidates of which none begins with the end of a stop that is not among
    them.

    The system takes a stop's text away. If a stop that is enforced here ended inside that text, we
    would not see it, and its beginning would stay. Taking such a candidate out makes it one that is
    not sent, hence the loop; it only ever shrinks.
    """
    everything = _distinct(stops, without=stops.unreachable)
    while True:
        send = candidates[:most]
        sent = {stop.encode() for stop in send}
        stream = StopSet(send).byte_stream()
        clashes: dict[str, str | bytes] = {}
        for key, other in everything.items():
            if key in sent:
                continue
            # What a stream over the candidates holds after the other stop is its longest end that
            # one of them begins with; a match is one that is all of such an end. Shorter ends turn
            # up in the next round.
            stream.reset()
            match = stream.feed(key)[1]
            end = stream.held if match is None else key[match.start :]
            if end:
                clashes |= {stop: other for stop in send if stop.encode().startswith(end)}
        if not clashes:
            return _longest_first(send)
        notes.extend(
            f"{stop!r} may begin with the end of {other!r}: both are enforced here"
            for stop, other in clashes.items()
        )
        candidates = [stop for stop in candidates if stop not in clashes]


def _longest_first(send: list[str]) -> list[str]:
    """By length if one ends with another: where two stops end together, some engines take the one
    listed first (vLLM).
    """
    backwards = sorted(
        stop[::-1] for stop in send
    )  # one that begins another one stands right before it or its like
    nested = any(longer.startswith(shorter) for shorter, longer in itertools.pairwise(backwards))
    return sorted(send, key=len, reverse=True) if nested else send


def _distinct(stops: StopSet, without: tuple[int, ...] = ()) -> dict[bytes, str | bytes]:
    """The stops by their UTF-8, each once, as given; `without` those at some indices."""
    left_out = set(without)
    distinct: dict[bytes, str | bytes] = {}
    for at, stop in enumerate(stops.stops):
        if at not in left_out:
            distinct.setdefault(stop.encode() if isinstance(stop, str) else stop, stop)
    return distinct


def _decoded(stop: bytes) -> str | None:
    try:
        return stop.decode()
    except UnicodeDecodeError:
        return None


def get(name: str) -> Provider:
    """The provider of that name or alias; `ValueError` listing the known names if there is none."""
    found = _registry().get(name.lower())
    if found is None:
        known = names()
        close = get_close_matches(name.lower(), sorted(_registry()), n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise ValueError(
            f"no facts about the provider {name!r}{hint}; known: {', '.join(known)}. Add yours with register()"
        )
    return found


def names() -> list[str]:
    """The names of all known providers, without aliases."""
    return sorted({provider.name for provider in _registry().values()})


def register(provider: Provider) -> None:
    """Make `provider` known under its name and aliases, in this process, in place of any that had
    them.
    """
    for name in (provider.name, *provider.aliases):
        _registry()[name.lower()] = provider


def load(path: str | Path) -> list[Provider]:
    """Register every provider of a JSON file shaped like `data/providers.json`, and return them.

    A fact without date or source, or with a value of the wrong type, is a `ValueError` that names
    it; nothing is registered then.
    """
    providers = _read(Path(path).read_text(encoding="utf-8"))
    for provider in providers:
        register(provider)
    return providers


@cache
def _registry() -> dict[str, Provider]:
    text = files("holdback").joinpath("data", "providers.json").read_text(encoding="utf-8")
    return {
        name.lower(): provider
        for provider in _read(text)
        for name in (provider.name, *provider.aliases)
    }


def _read(text: str) -> list[Provider]:
    def facts(where: str, raw: Mapping[str, Mapping[str, Any]]) -> dict[str, Fact]:
        made = {}
        for key, entry in raw.items():
            for needed in ("value", "date", "source"):
                if entry.get(needed, "") == "":
                    raise ValueError(f"{where}: the fact {key!r} has no {needed}")
            made[key] = _fact(
                key,
                entry["value"],
                entry["date"],
                entry["source"],
                entry.get("note", ""),
                where=where,
            )
        return made

    document = json.loads(text)
    if type(document) is not dict or type(document.get("providers")) is not dict:
        raise ValueError('provider facts are a JSON object with "providers"')
    return [
        Provider(
            name,
            entry.get("title", name),
            facts(name, entry.get("facts", {})),
            tuple(
                (
                    tuple(p.lower() for p in special["match"]),
                    facts(f"{name}, {special['match'][0]}", special["facts"]),
                )
                for special in entry.get("models", [])
            ),
            tuple(entry.get("aliases", [])),
        )
        for name, entry in document["providers"].items()
    ]


def _fact(
    key: str, value: Value, date: str, source: str, note: str = "", *, where: str = "facts"
) -> Fact:
    kinds = KINDS.get(key)
    if kinds is None:
        raise ValueError(f"{where}: no fact is called {key!r}; there are {', '.join(KINDS)}")
    if type(value) not in kinds:
        wanted = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        raise ValueError(f"{where}: {key} is {value!r}, not {wanted}")
    return Fact(value, date, source, note)


def __dir__() -> list[str]:
    return __all__  # completion offers what this module defines, not what it imports
