"""ahocorasick_rs: the aho-corasick crate for Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ahocorasick_rs

from .contract import Found, Window, window


class AhoCorasickRs(Window):
    """All matches of tail and chunk (there is no call for the first one), of which the first
    counts.
    """

    name = "ahocorasick_rs"
    rule = "find_matches_as_indexes over tail and chunk; earliest end decides"

    @classmethod
    def build(cls, stops: Sequence[str]) -> Any:
        find = ahocorasick_rs.AhoCorasick(stops).find_matches_as_indexes

        def search(text: str) -> Found | None:
            for index, start, _ in find(text):
                return start, stops[index]
            return None

        return search, window(stops)
