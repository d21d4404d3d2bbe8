"""daachorse: double arrays, over characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import daachorse

from .contract import Found, Window, window


class Daachorse(Window):
    """All matches of tail and chunk (there is no call for the first one), of which the first
    counts.
    """

    name = "daachorse"
    rule = "CharwiseDoubleArrayAhoCorasick.find over tail and chunk; earliest end decides"

    @classmethod
    def build(cls, stops: Sequence[str]) -> Any:
        find = daachorse.CharwiseDoubleArrayAhoCorasick(list(stops)).find

        def search(text: str) -> Found | None:
            for start, _, index in find(text):
                return start, stops[index]
            return None

        return search, window(stops)
