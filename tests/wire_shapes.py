"""Small frames for the tests of the cutter, and what is read of what it gives."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from holdback.wire import Cutter

STOPS = ["END", "\n\nUser:"]


def _dialects() -> list[str]:
    try:
        Cutter("?")
    except ValueError as error:
        return str(error).split("there are ")[1].split(", ")
    raise AssertionError("a dialect of that name")


DIALECTS = _dialects()
"""All dialects that the compiled cutter knows."""


def sse(*events: Any, end: str = "\n", prefix: str = "data: ") -> bytes:
    """Events as a server sends them; a dict with a `type` gets an `event:` line if it is one of
    Anthropic's or the Responses API's.
    """
    out = []
    for event in events:
        text = event if isinstance(event, str) else json.dumps(event)
        name = event.get("type") if isinstance(event, dict) else None
        out.append((f"event: {name}{end}" if name else "") + prefix + text + end + end)
    return "".join(out).encode()


def chat(
    text: str | None = None, finish: str | None = None, index: int = 0, **more: Any
) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {
        "id": "c",
        "choices": [
            {
                "index": index,
                "delta": delta | more.pop("delta", {}),
                "finish_reason": finish,
                **more,
            }
        ],
    }


def run(cutter: Cutter, body: bytes | Iterable[bytes]) -> bytes:
    parts = [body] if isinstance(body, bytes) else body
    return b"".join(cutter.feed(part) for part in parts) + cutter.finish()


def events(out: bytes) -> list[Any]:
    text = out.decode().replace("\r\n", "\n").replace("\r", "\n")
    datas = [line[5:].strip() for line in text.split("\n") if line.startswith("data:")]
    datas = [data for data in datas if data]
    return [data if data == "[DONE]" else json.loads(data) for data in datas]


def choices(out: bytes, index: int = 0) -> list[dict[str, Any]]:
    found = [choice for event in events(out) if event != "[DONE]" for choice in event["choices"]]
    return [choice for choice in found if choice["index"] == index]


def said(out: bytes, index: int = 0, field: str = "content") -> str:
    return "".join(choice["delta"].get(field) or "" for choice in choices(out, index))


def entry(token: str) -> dict[str, Any]:
    return {"token": token, "logprob": -0.5, "bytes": list(token.encode()), "top_logprobs": []}


def with_logprobs(*tokens: str, finish: str | None = None) -> dict[str, Any]:
    return chat(
        "".join(tokens),
        finish,
        logprobs={"content": [entry(token) for token in tokens], "refusal": None},
    )
