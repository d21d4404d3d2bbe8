"""Random triples of a pattern set, a text and a cut, through the compiled package and the reference.

    python tests/random_patterns.py SECONDS SEED

runs as many as it can, prints every difference once, as short as it can make it, and how many triples
there were. The reference reads each text once, letter by letter; the package reads it letter by letter
(emits and held text are compared each time), and in other cuts (what comes out in all, and the match).
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

from comparing import plain
from corpus import made
from pattern_strategies import ALPHABETS, random_stop

import holdback
from holdback import reference

Problem = tuple[list[Any], str, dict[str, Any], Any]


def opened(impl: Any, stops: list[Any], tie: str, options: dict[str, Any], text: Any) -> Any:
    compiled = impl.StopSet([made(impl, stop) for stop in stops], tie=tie)
    raw = isinstance(text, bytes)
    return compiled.byte_stream(**options) if raw else compiled.stream(**options)


def told(stops: list[Any], tie: str, options: dict[str, Any], text: Any, cuts: Any) -> Any:
    """What differs, or `None`."""
    streams = []
    for impl in (holdback, reference):
        try:
            streams.append(opened(impl, stops, tie, options, text))
        except ValueError as error:
            streams.append(error)
    ours, theirs = streams
    if isinstance(theirs, ValueError):
        return None if isinstance(ours, ValueError) else ("refused", str(theirs))
    if isinstance(ours, ValueError):
        return None if "states" in str(ours) else ("refuses", str(ours))
    for name in ("bounds", "unreachable"):
        if getattr(ours.stops, name) != getattr(theirs.stops, name):
            return (name, getattr(ours.stops, name), getattr(theirs.stops, name))
    emitted = text[:0]
    for at in range(len(text)):
        letter = text[at : at + 1]
        got, want = (
            (stream.feed(letter)[0], stream.held, plain(stream.match)) for stream in (ours, theirs)
        )
        emitted += want[0]
        if got != want:
            return (f"after {text[: at + 1]!r}", "got", got, "want", want)
        if theirs.match:
            break
    got, want = ((stream.flush(), stream.match) for stream in (ours, theirs))
    if plain(got) != plain(want):
        return ("flush", "got", got, "want", want)
    emitted += want[0]
    end = theirs.match and (theirs.match.index, theirs.match.start, theirs.match.end)
    for cut in cuts:
        stream = opened(holdback, stops, tie, options, text)
        out = text[:0]
        for a, b in zip([0, *cut], [*cut, len(text)], strict=True):
            out += stream.feed(text[a:b])[0]
        out += stream.flush()
        match = stream.match and (stream.match.index, stream.match.start, stream.match.end)
        if (out, match) != (emitted, end):
            return (f"cut at {cut}", "got", out, match, "want", emitted, end)
    return None


def shorter(problem: Problem, fails: Callable[[Problem], bool]) -> Problem:
    """Take away letters and stops while it still fails."""
    stops, tie, options, text = problem
    changed = True
    while changed:
        changed = False
        smaller: list[Problem] = [
            (stops[:i] + stops[i + 1 :], tie, options, text) for i in range(len(stops))
        ]
        smaller += [(stops, tie, options, text[:i] + text[i + 1 :]) for i in range(len(text))]
        smaller += [
            (stops, tie, {k: v for k, v in options.items() if k != name}, text) for name in options
        ]
        for one in smaller:
            if one[0] and fails(one):
                stops, tie, options, text = one
                changed = True
                break
    return stops, tie, options, text


def every_cut(text: Any) -> list[list[int]]:
    return [[], *([i] for i in range(len(text) + 1))]


def run(
    seconds: float, seed: int, report: Callable[[str], None], least: int = 0, texts: int = 12
) -> int:
    """Compare for so long (and at least so many triples), so many texts of each set in so many cuts; the
    number of triples that were the same.
    """
    r = random.Random(seed)
    deadline = time.monotonic() + seconds
    count = 0
    while time.monotonic() < deadline or count < least:
        letters = r.choice(ALPHABETS)
        raw = r.random() < 0.2
        stops = [random_stop(r, letters, raw=raw) for _ in range(r.choice([1, 1, 1, 2, 2, 3]))]
        tie = r.choice(["longest", "longest", "first"])
        options: dict[str, Any] = {}
        if r.random() < 0.2:
            options["min_chars"] = r.randint(1, 5)
        if r.random() < 0.2:
            options["include_stop"] = True
        for _ in range(texts):
            text: Any = "".join(r.choice(letters) for _ in range(r.randint(1, 10)))
            text = text.encode() if raw else text
            cuts = [
                sorted(r.randint(0, len(text)) for _ in range(r.randint(0, 3)))
                for _ in range(texts)
            ]
            difference = told(stops, tie, options, text, cuts)
            if difference is None:
                count += len(cuts) + 1
                continue

            def fails(problem: Problem) -> bool:
                return told(*problem, every_cut(problem[3])) is not None

            problem = (stops, tie, options, text)
            if fails(problem):
                problem = shorter(problem, fails)
                difference = told(*problem, every_cut(problem[3]))
            report(f"{problem!r}\n    {difference!r}")
            break
    return count


if __name__ == "__main__":
    same = run(float(sys.argv[1]), int(sys.argv[2]), lambda text: print(text, flush=True), texts=30)
    print(f"{same} triples are the same")
