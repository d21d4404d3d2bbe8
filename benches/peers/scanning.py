"""What the two bindings of Hyperscan share: its stream keeps the state over chunks of bytes and
reports where stops end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .contract import Peer


class Scanning(Peer):
    """Holds a full window all the same: how much of a stop has been seen, the library does not
    tell.

    A subclass sets `scan`, which appends (end in bytes of the stream, index of the stop) to `hits`.
    """

    most_stops = 20_000
    scan: Callable[[bytes], Any]

    def __init__(self, shared: Any) -> None:
        self.stops, self.window = shared
        self.hits: list[tuple[int, int]] = []
        self.held, self.seen = "", 0

    def feed(self, text: str) -> tuple[str, str | None]:
        raw = text.encode()
        self.scan(raw)
        self.seen += len(raw)
        text = self.held + text
        if self.hits:
            end, index = min(self.hits)
            behind = len(raw[len(raw) - (self.seen - end) :].decode())  # characters
            self.held = ""
            return text[: len(text) - behind - len(self.stops[index])], self.stops[index]
        out = len(text) - self.window
        if out <= 0:
            self.held = text
            return "", None
        self.held = text[out:]
        return text[:out], None

    def flush(self) -> str:
        text, self.held = self.held, ""
        return text
