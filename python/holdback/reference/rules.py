"""`docs/filter.md`, sections 1 and 6: the rules of a filter, as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .pattern import MAX_HOLD, Pattern, lazy_at
from .stops import utf8

MAX_REPLACEMENT = 65_536


@dataclass(frozen=True)
class Between:
    """All from an opener to the first closer behind it; no nesting.

    Args:
        open, close: literals of one type.
        unclosed: ``"redact"``: what stands behind an opener is covered as it comes; ``"emit"``: only when
            the closer is there.
        max_hold: for ``unclosed="emit"``: how many characters may be held.
    """

    open: str | bytes
    close: str | bytes
    unclosed: str = "redact"
    max_hold: int | None = None

    def __post_init__(self) -> None:
        for name, literal in (("open", self.open), ("close", self.close)):
            if not utf8(literal, name):
                raise ValueError(f"{name} is empty")
        if type(self.open) is not type(self.close):
            raise TypeError("open and close must both be str or both be bytes")
        if self.unclosed not in ("redact", "emit"):
            raise ValueError(f'unclosed must be "redact" or "emit", not {self.unclosed!r}')
        if self.max_hold is not None and type(self.max_hold) is not int:  # nor bool
            raise TypeError(f"max_hold must be int, not {type(self.max_hold).__name__}")
        if self.max_hold is not None and not 0 <= self.max_hold <= MAX_HOLD:
            raise ValueError(f"max_hold must be 0 to {MAX_HOLD}, it is {self.max_hold}")
        if self.unclosed == "emit" and self.max_hold is None:
            raise ValueError('unclosed="emit" needs max_hold: it may hold text without end')


@dataclass(frozen=True)
class Rule:
    """What is replaced, and by what.

    Args:
        what: a literal, a ``Pattern`` or a ``Between``.
        replace: the replacement as it stands (with a name, ``{name}`` in it is filled), or a callable that gets
            the text of the region.
        name: for edits and logs.
        mask: in place of ``replace``: one character, written for each character of the region.
        on_overflow: ``"redact"`` or ``"emit"``: what becomes of more than ``max_hold`` uncertain characters.
    """

    what: str | bytes | Pattern | Between
    replace: str | bytes | Callable[[Any], Any] = ""
    name: str | None = None
    mask: str | bytes | None = None
    on_overflow: str = "redact"

    def __post_init__(self) -> None:
        if not isinstance(self.what, (Pattern, Between)) and not utf8(self.what, "what"):
            raise ValueError("what is empty")
        if isinstance(self.what, Pattern) and lazy_at(self.what) is not None:
            raise ValueError(
                f"pattern {self.what.pattern!r}: a lazy repeat means nothing in a filter "
                f"(use Between) at position {lazy_at(self.what)}"
            )
        if self.name is not None and not isinstance(self.name, str):
            raise TypeError(f"name must be str, not {type(self.name).__name__}")
        if not callable(self.replace) and len(utf8(self.replace, "replace")) > MAX_REPLACEMENT:
            raise ValueError(f"replace is longer than {MAX_REPLACEMENT}")
        if self.mask is not None:
            if len(utf8(self.mask, "mask")) == 0 or len(self.mask) != 1:
                raise ValueError(f"mask must be one character, not {self.mask!r}")
            if self.replace != "":
                raise ValueError("replace and mask cannot both be given")
        if self.on_overflow not in ("redact", "emit"):
            raise ValueError(f'on_overflow must be "redact" or "emit", not {self.on_overflow!r}')

    @property
    def max_hold(self) -> int | None:
        """That of the pattern or the `Between`."""
        return self.what.max_hold if isinstance(self.what, (Pattern, Between)) else None

    @property
    def written(self) -> Any:
        """The replacement with the name filled in."""
        if isinstance(self.replace, str) and self.name is not None:
            return self.replace.replace("{name}", self.name)
        return self.replace


@dataclass(frozen=True)
class Edit:
    """One region that was replaced.

    Offsets are characters (byte streams: bytes) of what came and of what went out.
    """

    rule: int
    name: str | None
    start: int
    end: int
    out_start: int
    out_end: int
    start_chunk: int
    end_chunk: int
    text: Any = None  # only with keep_text=True
