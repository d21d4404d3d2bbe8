"""What people write in an afternoon: standard library only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .contract import Found, Window, window


class Textbook(Window):
    """Looks for each stop in turn; the one listed first wins, wherever it stands."""

    name = "textbook buffer"
    rule = "str.find for each stop over tail and chunk; list order decides"
    most_stops = 1000

    @classmethod
    def build(cls, stops: Sequence[str]) -> Any:
        def search(text: str) -> Found | None:
            for stop in stops:
                at = text.find(stop)
                if at >= 0:
                    return at, stop
            return None

        return search, window(stops)


class Alternation(Window):
    """One pattern for all; the stop that begins first wins."""

    name = "re alternation"
    rule = "re.search for all stops over tail and chunk; earliest start decides"
    most_stops = 1000

    @classmethod
    def build(cls, stops: Sequence[str]) -> Any:
        pattern = re.compile("|".join(map(re.escape, stops)))

        def search(text: str) -> Found | None:
            found = pattern.search(text)
            return (found.start(), found.group()) if found else None

        return search, window(stops)
