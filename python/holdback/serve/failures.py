"""Errors in the words of the API that a client speaks, so that its SDK reads them as its own.

An error before the answer is a body (:func:`body`) with a status; once a stream is under way it is
a frame in it (:func:`frame`).
"""

from __future__ import annotations

import json
from typing import Any

from holdback.wire import Dialect

_GOOGLE = {
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_ANTHROPIC = {
    400: "invalid_request_error",
    404: "not_found_error",
    413: "request_too_large",
    503: "overloaded_error",
}
_OPENAI = {400: "invalid_request_error", 404: "invalid_request_error", 413: "invalid_request_error"}


def body(
    dialect: Dialect | None, status: int, message: str, *, code: str, param: str | None = None
) -> dict[str, Any]:
    """The JSON of an error; ``code`` is a word for programs such as ``upstream_unreachable``."""
    if dialect == "anthropic.messages":
        return {
            "type": "error",
            "error": {"type": _ANTHROPIC.get(status, "api_error"), "message": message},
        }
    if dialect == "gemini":
        return {
            "error": {"code": status, "message": message, "status": _GOOGLE.get(status, "INTERNAL")}
        }
    if dialect in ("ollama.chat", "ollama.generate"):
        return {"error": message}
    if dialect == "tgi":
        return {"error": message, "error_type": "validation" if status < 500 else "generation"}
    kind = _OPENAI.get(status, "server_error")
    if dialect == "llama.cpp":
        return {"error": {"code": status, "message": message, "type": kind}}
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def frame(dialect: Dialect, status: int, message: str, *, code: str) -> bytes:
    """The same as a frame of a stream."""
    made = body(dialect, status, message, code=code)
    if dialect == "openai.responses":
        made = {
            "type": "error",
            "code": code,
            "message": message,
            "param": None,
            "sequence_number": 0,
        }
    text = json.dumps(made, separators=(",", ":")).encode()
    if dialect in ("ollama.chat", "ollama.generate"):
        return text + b"\n"
    if dialect in ("openai.responses", "anthropic.messages"):
        return b"event: error\ndata: " + text + b"\n\n"
    if dialect == "gemini":
        return b"data: " + text + b"\r\n\r\n"
    return b"data: " + text + b"\n\n"
