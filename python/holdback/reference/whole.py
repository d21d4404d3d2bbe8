"""Section 9: markers that are never cut in two."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Whole:
    """The markers, and where they have occurred so far: pairs of offsets, in order, that never
    overlap.
    """

    markers: tuple[str, ...]
    occurrences: tuple[tuple[int, int], ...] = ()

    @property
    def _behind(self) -> int:
        """Where the previous occurrence ends."""
        return self.occurrences[-1][1] if self.occurrences else 0

    def read(self, text: str) -> None:
        """The last character of ``text`` is new. Does an occurrence end with it?"""
        ending = [
            marker
            for marker in self.markers
            if text.endswith(marker) and len(text) - len(marker) >= self._behind
        ]
        if ending:
            self.occurrences += ((len(text) - max(map(len, ending)), len(text)),)

    def held_from(self, text: str, held_for_stops: int) -> int:
        """Where the held text begins, if for stops alone it would begin at ``held_for_stops``."""
        begin = min(held_for_stops, self._held_for_markers(text))
        for start, end in self.occurrences:
            if start < begin < end:
                return start
        return begin

    def _held_for_markers(self, text: str) -> int:
        """Where the longest suffix behind the last occurrence begins that is a proper prefix of a
        marker that can occur.
        """
        for start in range(self._behind, len(text)):
            suffix = text[start:]
            for marker in self.markers:
                if (
                    len(suffix) < len(marker)
                    and marker.startswith(suffix)
                    and self._can_occur(marker)
                ):
                    return start
        return len(text)

    def _can_occur(self, marker: str) -> bool:
        """Not if another one ends inside it, which then is the occurrence."""
        return not any(other in marker[:-1] for other in self.markers)
