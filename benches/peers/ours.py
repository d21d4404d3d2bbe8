"""Holdback and the floor, behind the adapter that the peers have.

Both are called without anything between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holdback
from benches import floor

from .contract import Peer


class Holdback(Peer):
    """`stream` of a set; what `feed` gives is a match object, of which the stop counts here."""

    name = "holdback"
    rule = "earliest end decides; exact hold-back"

    @classmethod
    def build(cls, stops: Sequence[str]) -> Any:
        return holdback.StopSet(stops)

    def __new__(cls, shared: holdback.StopSet) -> Any:
        return shared.stream()


class Floor(Peer):
    """The same job in C, ASCII stops only."""

    name = "floor"
    rule = "earliest end decides; exact hold-back; in C, for ASCII stops"
    most_stops = 1000

    @classmethod
    def build(cls, stops: Sequence[str]) -> Any:
        return floor.load().Tables(stops)

    def __new__(cls, shared: Any) -> Any:
        return floor.load().Floor(shared)
