"""Errors in the words of the API that a client speaks, so that its SDK reads them as its own.

An error before the answer is a body (:func:`body`) with a status; once a stream is under way it is
a frame in it (:func:`frame`).
"""

from __future__ import annotations

from typing import Any

from holdback.dialects import DIALECTS
from holdback.wire import Dialect


def body(
    dialect: Dialect | None, status: int, message: str, *, code: str, param: str | None = None
) -> dict[str, Any]:
    """The JSON of an error; `code` is a word for programs such as `upstream_unreachable`.

    Without a dialect it is OpenAI's, which most programs read.
    """
    return DIALECTS[dialect or "openai.chat"].error(status, message, code, param)


def frame(dialect: Dialect, status: int, message: str, *, code: str) -> bytes:
    """The same as a frame of a stream."""
    spec = DIALECTS[dialect]
    return spec.frame(spec.error_event(status, message, code))
