"""What a peer looks like, and the loop that most libraries leave to their users: keep a tail,
search tail and chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

Found = tuple[int, str]  # where a stop begins in the text searched, and the stop


class Peer:
    """One stream of a peer."""

    name: ClassVar[str]
    rule: ClassVar[str]  # how it decides, for the notes of the tables
    most_stops: ClassVar[int] = 100_000  # beyond which it is not asked

    def __init__(self, shared: Any) -> None:
        raise NotImplementedError

    @classmethod
    def build(cls, stops: Sequence[str]) -> Any:
        return stops

    def feed(self, text: str) -> tuple[str, str | None]:
        raise NotImplementedError

    def flush(self) -> str:
        raise NotImplementedError


class Window(Peer):
    """Holds one character less than the longest stop has, always; `search` looks at what was held
    and the chunk.

    `shared` is (search, size of the window).
    """

    search: Callable[[str], Found | None]

    def __init__(self, shared: Any) -> None:
        self.search, self.window = shared
        self.held = ""

    def feed(self, text: str) -> tuple[str, str | None]:
        text = self.held + text
        found = self.search(text)
        if found:
            self.held = ""
            return text[: found[0]], found[1]
        out = len(text) - self.window
        if out <= 0:
            self.held = text
            return "", None
        self.held = text[out:]
        return text[:out], None

    def flush(self) -> str:
        text, self.held = self.held, ""
        return text


def window(stops: Sequence[str]) -> int:
    return max(map(len, stops)) - 1
