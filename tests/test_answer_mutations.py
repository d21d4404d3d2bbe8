"""No text after a stop in any mutation of a stream that a lenient reader still accepts, unless the
client is told: what such a reader shows of the cut answer is what it shows of the answer as it came,
up to the first stop.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback import StopSet
from holdback._answers import AnswerCutter
from holdback._body_kind import LINES
from holdback._failures import error_frame
from holdback.wire import Cutter, WireError

STOPS = ["END", "##"]
BORDER = "\0"
TEXTS = ["a E", "ND b", "c", "#", "# d", "EN", "D", " END ", ""]
SCRAPS = [
    b" ", b"\t", b"\n", b"\r", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b":", b"data: ", b"data:", b"\x00",
    b",", b"{", b"}", b"[", b"]", b'"', b"\\", b"\\u0045", b"null", b"0", b"1", b"[DONE]", b'"index":0,',
    b'"text":"END x",', b'"content":"END x",', b'"choices":[],', b"id: 1\n", b"event: x\n", b"\xff", b"END",
]  # fmt: skip


# --- streams


def chat(text: str, finish: str | None) -> Any:
    delta = {"content": text}
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def completions(text: str, finish: str | None) -> Any:
    return {"id": "c", "choices": [{"index": 0, "text": text, "finish_reason": finish}]}


def gemini(text: str, finish: str | None) -> Any:
    more = {"finishReason": "STOP"} if finish else {}
    return {"candidates": [{"content": {"parts": [{"text": text}]}, "index": 0, **more}]}


def anthropic(text: str, finish: str | None) -> Any:
    if finish:
        return {"type": "message_stop"}
    delta = {"type": "text_delta", "text": text}
    return {"type": "content_block_delta", "index": 0, "delta": delta}


def ollama(text: str, finish: str | None) -> Any:
    return {"model": "m", "response": text, "done": bool(finish)}


def llama_cpp(text: str, finish: str | None) -> Any:
    return {"index": 0, "content": text, "stop": bool(finish)}


MAKE = {
    "openai.chat": chat,
    "openai.completions": completions,
    "gemini": gemini,
    "anthropic.messages": anthropic,
    "ollama.generate": ollama,
    "llama.cpp": llama_cpp,
}


def streamed(dialect: str, texts: list[str]) -> bytes:
    events = [*(MAKE[dialect](text, None) for text in texts), MAKE[dialect]("", "stop")]
    if dialect in LINES:
        return b"".join(json.dumps(event).encode() + b"\n" for event in events)
    made = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    return b"".join(made) + (b"data: [DONE]\n\n" if dialect.startswith("openai") else b"")


# --- a reader that takes what it can


def payloads(dialect: str, raw: bytes) -> list[str]:
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff").lstrip(" \t\r\n")
    lines = re.split("\r\n|\r|\n", text)
    if dialect in LINES:
        return lines
    made, data = [], list[str]()
    for line in [*lines, ""]:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            made.append("\n".join(data))
            data = []
    return made


def shown(dialect: str, raw: bytes) -> tuple[dict[Any, str], bool]:
    """The text of each choice, and whether all of the stream was accepted."""
    texts: dict[Any, str] = defaultdict(str)
    for payload in payloads(dialect, raw):
        if payload.strip() == "[DONE]":
            break
        try:
            event = json.loads(payload, strict=False)
        except (ValueError, RecursionError):
            if payload.strip():
                return texts, False  # here it raises
            continue
        if not isinstance(event, dict) or event.get("error"):
            continue
        for key, text in read(dialect, event):
            if isinstance(text, str):
                texts[key] += text
    return texts, True


def read(dialect: str, event: dict[str, Any]) -> list[tuple[Any, Any]]:
    def entries(value: Any, key: str) -> list[dict[str, Any]]:
        found = value.get(key) if isinstance(value, dict) else None
        return (
            [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
        )

    def inside(value: Any, key: str) -> Any:
        return value.get(key) if isinstance(value, dict) else None

    def index(value: dict[str, Any]) -> str:
        return str(value.get("index") or 0)

    if dialect == "openai.chat":
        choices = entries(event, "choices")
        return [(index(choice), inside(choice.get("delta"), "content")) for choice in choices]
    if dialect == "openai.completions":
        return [(index(choice), choice.get("text")) for choice in entries(event, "choices")]
    if dialect == "gemini":  # a part without text is a border
        return [
            (index(candidate), part.get("text", BORDER))
            for candidate in entries(event, "candidates")
            for part in entries(candidate.get("content"), "parts")
            if not part.get("thought")
        ]
    if dialect == "anthropic.messages":
        return [(index(event), inside(event.get("delta"), "text"))]
    return [(index(event), event.get("response" if dialect == "ollama.generate" else "content"))]


# --- the property


def mutated(raw: bytes, seed: int, count: int) -> bytes:
    random = Random(seed)
    for _ in range(count):
        at = random.randrange(len(raw) + 1)
        step = random.random()
        if step < 0.6:
            raw = raw[:at] + random.choice(SCRAPS) + raw[at:]
        elif step < 0.8:
            raw = raw[:at] + raw[at + random.randrange(1, 9) :]
        else:
            raw = raw[:at] + raw[at : at + random.randrange(1, 60)] * 2 + raw[at:]
    return raw


def cut(dialect: Any, raw: bytes, size: int) -> tuple[bytes, bool]:
    """What the client gets, and whether it is told."""
    cutting = AnswerCutter(Cutter(dialect, STOPS, on_unread="fail"), streams=True)
    out = b""
    try:
        for place in range(0, len(raw), size):
            out += cutting.feed(raw[place : place + size])
            if cutting.ended and cutting.matches:
                return out, False
        return out + cutting.finish(), False
    except WireError as error:
        return out + error.output + error_frame(dialect, error, cutting), True


def without_reason(out: bytes) -> bytes:
    """The message shows a beginning, as far as it had come."""
    return out.partition(b"the answer cannot be cut")[0]


@pytest.mark.parametrize("dialect", MAKE)
@given(
    texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=6),
    seed=st.integers(0, 2**32),
    count=st.integers(0, 3),
    size=st.sampled_from([1, 7, 64, 4096]),
)
def test_a_lenient_reader_shows_nothing_after_a_stop(
    dialect: str, texts: list[str], seed: int, count: int, size: int
) -> None:
    raw = mutated(streamed(dialect, texts), seed, count)
    out, told = cut(dialect, raw, size)
    again, too = cut(dialect, raw, len(raw) or 1)
    assert (without_reason(again), too) == (without_reason(out), told), "the pieces do not matter"
    (came, accepted), (went, _) = shown(dialect, raw), shown(dialect, out)
    for key, text in went.items():
        assert StopSet(STOPS).truncate(text)[1] is None, (raw, out)
        if not accepted:
            continue  # the cutter does not look at all that this reader stumbles over
        expected, match = StopSet(STOPS).truncate(came[key])
        if told:
            assert came[key].startswith(text), (raw, out)
        else:
            assert expected.startswith(text), (raw, out)
            assert match is None or text == expected, (raw, out)
