"""How much of ordinary text a list of stops holds back, measured on small bundled samples of
English, code and CJK.

A character that may begin a stop cannot go out when it arrives. If it is a common one, such as a
space, the stream stutters. The share of such characters is a property of the stops and the kind of
text, so it can be measured beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from . import StopSet

SAMPLES = {"English": "prose.txt", "code": "code.txt", "CJK": "cjk.txt"}
"""The bundled texts that stops are measured on, by what they are."""


@cache
def samples() -> dict[str, str]:
    """The bundled texts, by what they are."""
    folder = files("holdback").joinpath("data")
    return {
        name: folder.joinpath(file).read_text(encoding="utf-8") for name, file in SAMPLES.items()
    }


def held_share(stops: Iterable[str], text: str) -> float:
    """The share of the characters of `text` that do not go out the moment they arrive, one by one,
    because they may begin a stop.

    When a stop is complete, reading starts afresh after it.

    >>> held_share(["\\n\\nUser:"], "one\\ntwo\\n"), held_share(["e"], "eee")
    (0.25, 0.0)
    """
    stream = StopSet(list(stops)).stream()
    waiting = held = 0
    for character in text:
        emit, match = stream.feed(character)
        if match is not None:
            stream.reset()
            waiting = 0
            continue
        waiting += 1 - len(emit)
        held += waiting > 0
    return held / len(text) if text else 0.0


def shares_held(stops: Iterable[str]) -> dict[str, float]:
    """`held_share` on each of the samples."""
    listed = list(stops)
    return {name: held_share(listed, text) for name, text in samples().items()}
