"""pyperscan: a binding of Vectorscan in Rust."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyperscan

from .contract import window
from .scanning import Scanning


class Pyperscan(Scanning):
    """Escaped patterns in streaming mode."""

    name = "pyperscan"
    rule = "a stream of escaped patterns; earliest end decides"

    @classmethod
    def build(cls, stops: Sequence[str]) -> Any:
        patterns = [
            pyperscan.Pattern(re.escape(stop).encode(), tag=index)
            for index, stop in enumerate(stops)
        ]
        return pyperscan.StreamDatabase(*patterns), stops, window(stops)

    def __init__(self, shared: Any) -> None:
        database, *rest = shared
        super().__init__(rest)

        def hit(hits: list[tuple[int, int]], index: int, start: int, end: int) -> Any:
            hits.append((end, index))
            return pyperscan.Scan.Continue

        self.scan = database.build(self.hits, hit).scan
