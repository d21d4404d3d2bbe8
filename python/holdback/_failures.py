"""What cannot be cut, told to the client in the words of its own API: as a body before an answer
has begun, as a frame once a stream is under way.
"""

from __future__ import annotations

import json
from typing import Any

from holdback._answers import AnswerCutter, TooLongError, UnreadError
from holdback._sse import payloads
from holdback.dialects import DIALECTS
from holdback.wire import Dialect, WireError

STATUS = 502
"""The answer is what is at fault, so it is the upstream's."""

TOO_LONG, MALFORMED, UNREAD = "answer_too_long", "malformed", "unread"
"""Words for programs."""

NO_RETRY = ("x-should-retry", "false")
"""A header that the SDKs of OpenAI and Anthropic obey: the next try would be generated, and paid
for, and fail like this one.
"""


def code_of(error: WireError, cutting: AnswerCutter | None) -> str:
    """The word for an answer that cannot be cut."""
    if isinstance(error, TooLongError):
        return TOO_LONG
    if isinstance(error, UnreadError) or (cutting is not None and cutting.cutter.frames_unread):
        return UNREAD
    return MALFORMED


def error_body(dialect: Dialect, error: WireError, cutting: AnswerCutter | None = None) -> bytes:
    """The body of an error, for status 502."""
    message = f"the answer cannot be cut at its stops: {error}"
    made = DIALECTS[dialect].error(STATUS, message, code_of(error, cutting), None)
    return json.dumps(made).encode()


def error_frame(dialect: Dialect, error: WireError, cutting: AnswerCutter) -> bytes:
    """The end of a stream that was under way."""
    message = f"the answer cannot be cut at its stops: {error}"
    return failure_frame(dialect, STATUS, message, code_of(error, cutting), cutting)


def failure_frame(
    dialect: Dialect, status: int, message: str, code: str, cutting: AnswerCutter | None
) -> bytes:
    """A frame that says that a stream failed; what was sent of it is known to `cutting`."""
    spec = DIALECTS[dialect]
    event: Any = None
    if dialect == "openai.responses" and cutting is not None:
        event = _failed_response(*cutting.first_and_last, message)
    return spec.frame(event or spec.error_event(status, message, code))


def _failed_response(first: bytes, last: bytes, message: str) -> dict[str, Any] | None:
    """`response.failed`, the end that clients of the Responses API wait for, with the response that
    was begun and the next number. `None` if none was begun.
    """
    begun = next((event.get("response") for event in _events(first)), None)
    numbers = [event.get("sequence_number") for event in _events(last)]
    if not isinstance(begun, dict):
        return None
    number = max((number for number in numbers if type(number) is int), default=-1) + 1
    error = {"code": "server_error", "message": message}
    response = {**begun, "status": "failed", "error": error}
    return {"type": "response.failed", "sequence_number": number, "response": response}


def _events(frames: bytes) -> list[dict[str, Any]]:
    made = []
    for payload in payloads(frames):
        try:
            event = json.loads(payload)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            made.append(event)
    return made
