"""The options of a cutter, for signatures that take all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypedDict

from holdback.wire import WireMatch


class CutterOptions(TypedDict, total=False):
    """As in `holdback.wire.Cutter`, but for the choices of a request, which its body tells."""

    tie: Literal["longest", "first"] | None
    include_stop: bool | Iterable[Any] | None
    min_chars: int | None
    ignore_inside: Iterable[Sequence[str]] | None
    start_inside: bool | None
    atomic: Iterable[str] | None
    cut_reasoning: bool | None
    stop_field: str | None
    on_match: Literal["cancel", "drain"] | None
    on_error: Literal["flush", "drop"] | None
    on_malformed: Literal["fail", "pass"] | None
    on_unread: Literal["fail", "pass"] | None
    max_frame_bytes: int | None
    max_choices: int | None
    max_held_bytes: int | None
    max_text_bytes: int | None


class AnswerOptions(TypedDict, total=False):
    """The same where one answer is cut, and not all that pass."""

    tie: Literal["longest", "first"] | None
    include_stop: bool | Iterable[Any] | None
    min_chars: int | None
    ignore_inside: Iterable[Sequence[str]] | None
    start_inside: bool | None
    atomic: Iterable[str] | None
    choices: int | None
    skip_chars: int | None
    cut_reasoning: bool | None
    stop_field: str | None
    on_match: Literal["cancel", "drain"] | Callable[[WireMatch], object] | None
    on_error: Literal["flush", "drop"] | None
    on_malformed: Literal["fail", "pass"] | None
    on_unread: Literal["fail", "pass"] | None
    max_frame_bytes: int | None
    max_choices: int | None
    max_held_bytes: int | None
    max_text_bytes: int | None
