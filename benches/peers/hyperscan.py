"""python-hyperscan: a binding in C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hyperscan

from .contract import window
from .scanning import Scanning


class Hyperscan(Scanning):
    """Literals in streaming mode."""

    name = "hyperscan"
    rule = "a stream of literals; earliest end decides"

    @classmethod
    def build(cls, stops: Sequence[str]) -> Any:
        database = hyperscan.Database(mode=hyperscan.HS_MODE_STREAM)
        database.compile(
            expressions=[stop.encode() for stop in stops],
            ids=list(range(len(stops))),
            elements=len(stops),
            flags=[0] * len(stops),
            literal=True,
        )
        return database, stops, window(stops)

    def __init__(self, shared: Any) -> None:
        database, *rest = shared
        super().__init__(rest)
        hits = self.hits

        def hit(index: int, start: int, end: int, flags: int, context: object) -> None:
            hits.append((end, index))

        # A stream of version 0.9 keeps neither its database nor the callback alive; these
        # references do.
        self.kept = database, hit
        self.opened = database.stream(match_event_handler=hit)
        self.scan = self.opened.__enter__().scan
