"""What a body is, told by its first bytes and not by its label alone.

Labels lie: event streams come as `application/json`, `text/plain` or without a type, JSON comes as
`text/event-stream`, and an answer in one piece where a stream was asked for. Whoever believed the
label would let text pass unread. One function for the gateway and all adapters.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["stream", "body", "array", "other"]
"""`stream`: frames of the dialect. `body`: one JSON value. `array`: Gemini's events as one JSON
array. `other`: nothing that a reader of the dialect could read.
"""

LINES = ("ollama.chat", "ollama.generate")
"""Dialects whose frames are lines of JSON; those of all others are event streams."""

BOM = b"\xef\xbb\xbf"
BLANK = b" \t\r\n"
_FIELDS = (b"data", b"event", b"id", b"retry")


def body_kind(
    dialect: str, start: bytes, *, streams: bool, label: str = "", over: bool = False
) -> Kind | None:
    r"""What the body that begins with `start` is; `None` while that cannot be told yet.

    Args:
        dialect: whose answer it is.
        start: its first bytes, decoded.
        streams: a stream was asked for.
        label: its content type, lower case, without parameters. It decides only where the bytes
            leave it open.
        over: there is no more than `start`.

    >>> body_kind("openai.chat", b'\xef\xbb\xbf\r\n: ping', streams=True)
    'stream'
    >>> body_kind("openai.chat", b'event', streams=True), body_kind("openai.chat", b' {', streams=True)
    (None, 'body')
    >>> body_kind("openai.chat", b"<html>", streams=True)
    'other'
    """
    if not over and len(start) < len(BOM) and BOM.startswith(start):
        return None
    text = start.removeprefix(BOM).lstrip(BLANK)
    if not text:
        return ("stream" if streams else "body") if over else None
    if dialect in LINES:
        return _kind_of_lines(text, streams=streams, over=over)
    if text[:1] == b"{":
        return "body"
    if text[:1] == b"[":
        return "array" if dialect == "gemini" and streams else "body"
    return _kind_of_fields(text, label, over=over)


def _kind_of_fields(text: bytes, label: str, *, over: bool) -> Kind | None:
    """An event stream begins with a comment or one of four fields."""
    if text[:1] == b":":
        return "stream"
    for field in _FIELDS:
        if text.startswith(field):
            after = text[len(field) : len(field) + 1]
            if after in (b":", b"\r", b"\n"):
                return "stream"
            if not after and not over:
                return None
        elif not over and field.startswith(text):
            return None
    # Readers skip fields that they do not know, so what says that it is a stream is one.
    return "stream" if label == "text/event-stream" else "other"


def _kind_of_lines(text: bytes, *, streams: bool, over: bool) -> Kind | None:
    """A line that has more than a brace is a frame, or was to be one; a brace alone in its line
    opens a body. Whether the line is complete must not matter: that would depend on the pieces.
    """
    if text[:1] != b"{":
        return "body" if text[:1] == b"[" else "other"
    if not streams:
        return "body"
    line, end, _ = text.partition(b"\n")
    if len(line.rstrip(BLANK)) > 1:
        return "stream"
    return "body" if end or over else None
