"""An upstream without a model: it streams one canned answer in every dialect, a piece at a time,
and takes no stops at all.

``holdback serve --demo`` puts the gateway in front of it. It also says what it saw: a line on
standard error when a client left early, and ``GET /seen``, a JSON list of the requests it had, with
the pieces it sent of each. The project's tests use it as well.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from holdback.serve.asking import Ask, BadRequestError, read_ask
from holdback.serve.bodies import assembly
from holdback.serve.config import Config
from holdback.serve.sse import objects
from holdback.stop_fields import dialect_of
from holdback.wire import Dialect

ANSWER = (
    "The capital of France is Paris.\n",
    "Obs", "ervation", ": it lies on the Seine.\n",
    "Thought: that will do.\n",
    "</ans", "wer>\n",
    "##", "# END ###\n",
    "\n\nUs", "er: and of Italy?\n",
    "\n\nHuman", ": and of Spain?\n",
    "This model never stops by itself, ", "and every word of it costs money. ",
    "It goes on, ", "and on, ", "and on, ", "and on, ", "and on.",
)  # fmt: skip
"""The pieces of the answer: several stops that people use, most of them cut in half, and then more
text than anybody wants.
"""

_USAGE = {"prompt_tokens": 14, "completion_tokens": 20, "total_tokens": 34}


@dataclass(slots=True)
class Seen:
    """What the upstream saw of one request."""

    path: str
    dialect: str
    stream: bool
    stops: tuple[str, ...]
    """Those that were sent; it ignores them."""
    authorization: bool
    sent: int = 0
    """Pieces of the answer that were sent."""
    pieces: int = 0
    client_left: bool = False


class Demo:
    """The upstream, as an ASGI application."""

    def __init__(
        self,
        pieces: Sequence[str] = ANSWER,
        *,
        delay: Callable[[int], float] = lambda _: 0.05,
        told: Callable[[Seen], None] | None = None,
    ) -> None:
        self.pieces = pieces
        self.delay = delay  # seconds before each piece
        self.seen: deque[Seen] = deque(maxlen=1000)
        self._told = told
        self._config = Config()

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        path = scope["path"]
        dialect = dialect_of(path) if scope["method"] == "POST" else None
        if dialect is None:
            await _whole(send, *self._other(path))
            return
        raw, more = b"", True
        while more:
            message = await receive()
            raw, more = raw + message.get("body", b""), message.get("more_body", False)
        try:
            ask = read_ask(dialect, path, raw, self._config)
        except BadRequestError as error:
            await _whole(send, 400, {"error": str(error)})
            return
        authorized = any(
            name in (b"authorization", b"x-api-key", b"x-goog-api-key")
            for name, _ in scope["headers"]
        )
        seen = Seen(path, dialect, ask.stream, ask.stops, authorized, pieces=len(self.pieces))
        self.seen.append(seen)
        if ask.stream:
            await self._stream(ask, seen, receive, send)
        else:
            whole = assembly(dialect, path, ask.body)
            for _, frame in frames(dialect, self.pieces, ask):
                for event in objects(frame):
                    whole.add(event)
            await _whole(send, 200, whole.body())
            seen.sent = seen.pieces
            if self._told:
                self._told(seen)

    def _other(self, path: str) -> tuple[int, Any]:
        if path == "/seen":
            return 200, [asdict(seen) for seen in self.seen]
        if path == "/v1/models":
            return 200, {
                "object": "list",
                "data": [{"id": "demo", "object": "model", "owned_by": "holdback"}],
            }
        return 404, {"error": {"message": "not found"}}

    async def _stream(self, ask: Ask, seen: Seen, receive: Any, send: Any) -> None:
        kind = (
            b"application/x-ndjson"
            if ask.dialect.startswith("ollama")
            else b"text/event-stream; charset=utf-8"
        )
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]}
        )
        left = asyncio.ensure_future(receive())
        try:
            for is_piece, frame in frames(ask.dialect, self.pieces, ask):
                if is_piece:
                    await asyncio.wait((left,), timeout=self.delay(seen.sent))
                if left.done():
                    seen.client_left = True
                    break
                await send({"type": "http.response.body", "body": frame, "more_body": True})
                seen.sent += is_piece
            else:
                await send({"type": "http.response.body", "body": b""})
        finally:
            left.cancel()
            if self._told:
                self._told(seen)


async def _whole(send: Any, status: int, value: Any) -> None:
    body = json.dumps(value).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def frames(dialect: Dialect, pieces: Sequence[str], ask: Ask) -> Iterator[tuple[bool, bytes]]:
    """The frames of an answer in `dialect`, each with whether it brings a piece of the text."""
    made: Iterator[tuple[bool, Any]] = _EVENTS[dialect](pieces, ask)
    named = dialect in ("anthropic.messages", "openai.responses")
    for is_piece, event in made:
        text = (
            event
            if isinstance(event, str)
            else json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        )
        if dialect.startswith("ollama"):
            yield is_piece, f"{text}\n".encode()
        elif named:
            yield is_piece, f"event: {event['type']}\ndata: {text}\n\n".encode()
        else:
            end = "\r\n" if dialect == "gemini" else "\n"
            space = "" if dialect == "tgi" else " "
            yield is_piece, f"data:{space}{text}{end}{end}".encode()


_Events = Iterator[tuple[bool, Any]]


def _chat(pieces: Sequence[str], ask: Ask) -> _Events:
    def chunk(choices: list[Any], **more: Any) -> dict[str, Any]:
        head = {
            "id": "chatcmpl-demo",
            "object": "chat.completion.chunk",
            "created": 1790000000,
            "model": ask.model or "demo",
        }
        return {**head, "choices": choices, **more}

    def delta(index: int, value: dict[str, Any], finish: str | None = None) -> list[Any]:
        return [{"index": index, "delta": value, "logprobs": None, "finish_reason": finish}]

    every = range(ask.choices)
    for index in every:
        yield False, chunk(delta(index, {"role": "assistant", "content": ""}))
    for piece in pieces:
        for index in every:
            yield index == 0, chunk(delta(index, {"content": piece}))
    for index in every:
        yield False, chunk(delta(index, {}, "stop"))
    if not ask.stream or (ask.body.get("stream_options") or {}).get("include_usage"):
        yield False, chunk([], usage=_USAGE)
    yield False, "[DONE]"


def _completions(pieces: Sequence[str], ask: Ask) -> _Events:
    head = {
        "id": "cmpl-demo",
        "object": "text_completion",
        "created": 1790000000,
        "model": ask.model or "demo",
    }
    for place, piece in enumerate((*pieces, "")):
        finish = "stop" if place == len(pieces) else None
        for index in range(ask.choices):
            choice = {"index": index, "text": piece, "logprobs": None, "finish_reason": finish}
            yield index == 0 and not finish, {**head, "choices": [choice]}
    yield False, {**head, "choices": [], "usage": _USAGE}
    yield False, "[DONE]"


def _responses(pieces: Sequence[str], ask: Ask) -> _Events:
    text, number = "".join(pieces), 0
    usage: dict[str, Any] = {
        "input_tokens": 14,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20,
    }
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 34}
    where = {"item_id": "msg_demo", "output_index": 0, "content_index": 0}

    def response(status: str, output: list[Any], usage: Any = None) -> dict[str, Any]:
        fixed = {
            "id": "resp_demo",
            "object": "response",
            "created_at": 1790000000,
            "model": ask.model or "demo",
            "error": None,
        }
        fixed |= {
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
        }
        return {**fixed, "status": status, "output": output, "tools": [], "tool_choice": "auto", "temperature": 1.0,
                "top_p": 1.0, "usage": usage}  # fmt: skip

    def part(text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def item(status: str, content: list[Any]) -> dict[str, Any]:
        return {
            "id": "msg_demo",
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": content,
        }

    events: list[tuple[bool, str, dict[str, Any]]] = [
        (False, "response.created", {"response": response("in_progress", [])}),
        (False, "response.in_progress", {"response": response("in_progress", [])}),
        (False, "response.output_item.added", {"output_index": 0, "item": item("in_progress", [])}),
        (False, "response.content_part.added", {**where, "part": part("")}),
        *(
            (True, "response.output_text.delta", {**where, "delta": piece, "logprobs": []})
            for piece in pieces
        ),
        (False, "response.output_text.done", {**where, "text": text, "logprobs": []}),
        (False, "response.content_part.done", {**where, "part": part(text)}),
        (
            False,
            "response.output_item.done",
            {"output_index": 0, "item": item("completed", [part(text)])},
        ),
        (
            False,
            "response.completed",
            {"response": response("completed", [item("completed", [part(text)])], usage)},
        ),
    ]
    for number, (is_piece, kind, fields) in enumerate(events):
        yield is_piece, {"type": kind, "sequence_number": number, **fields}


def _messages(pieces: Sequence[str], ask: Ask) -> _Events:
    message: dict[str, Any] = {
        "id": "msg_demo",
        "type": "message",
        "role": "assistant",
        "model": ask.model or "demo",
        "content": [],
    }
    message |= {
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 14, "output_tokens": 1},
    }
    yield False, {"type": "message_start", "message": message}
    yield (
        False,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    )
    yield False, {"type": "ping"}
    for piece in pieces:
        yield (
            True,
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": piece},
            },
        )
    yield False, {"type": "content_block_stop", "index": 0}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    yield False, {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}}
    yield False, {"type": "message_stop"}


def _gemini(pieces: Sequence[str], ask: Ask) -> _Events:
    for place, piece in enumerate(pieces, 1):
        usage = {
            "promptTokenCount": 14,
            "candidatesTokenCount": place,
            "totalTokenCount": 14 + place,
        }
        candidate: dict[str, Any] = {
            "content": {"parts": [{"text": piece}], "role": "model"},
            "index": 0,
        }
        if place == len(pieces):
            candidate["finishReason"] = "STOP"
        yield (
            True,
            {
                "candidates": [candidate],
                "usageMetadata": usage,
                "modelVersion": "demo",
                "responseId": "demo",
            },
        )


def _ollama(pieces: Sequence[str], ask: Ask) -> _Events:
    head = {"model": ask.model or "demo", "created_at": "2026-11-30T00:00:00Z"}
    end = {
        "done": True,
        "done_reason": "stop",
        "total_duration": 5,
        "load_duration": 1,
        "prompt_eval_count": 14,
    }
    end |= {"prompt_eval_duration": 1, "eval_count": 20, "eval_duration": 3}
    for place, piece in enumerate((*pieces, "")):
        said: dict[str, Any] = {"response": piece}
        if ask.dialect == "ollama.chat":
            said = {"message": {"role": "assistant", "content": piece}}
        last = place == len(pieces)
        yield not last, {**head, **said, **(end if last else {"done": False})}


def _llama_cpp(pieces: Sequence[str], ask: Ask) -> _Events:
    for place, piece in enumerate(pieces, 1):
        event = {
            "index": 0,
            "content": piece,
            "tokens": [place],
            "stop": False,
            "id_slot": 0,
            "tokens_predicted": place,
        }
        yield True, {**event, "tokens_evaluated": 14}
    event = {
        "index": 0,
        "content": "",
        "tokens": [],
        "id_slot": 0,
        "stop": True,
        "model": "demo.gguf",
        "tokens_predicted": 20,
    }
    yield (
        False,
        {
            **event,
            "tokens_evaluated": 14,
            "stop_type": "eos",
            "stopping_word": "",
            "truncated": False,
        },
    )


def _tgi(pieces: Sequence[str], ask: Ask) -> _Events:
    for place, piece in enumerate(pieces, 1):
        token = {"id": place, "text": piece, "logprob": -0.25, "special": False}
        yield True, {"index": place, "token": token, "generated_text": None, "details": None}
    details = {
        "finish_reason": "eos_token",
        "generated_tokens": 21,
        "seed": None,
        "input_length": 14,
    }
    token = {"id": 2, "text": "</s>", "logprob": -0.25, "special": True}
    yield (
        False,
        {
            "index": len(pieces) + 1,
            "token": token,
            "generated_text": "".join(pieces),
            "details": details,
        },
    )


_EVENTS: dict[Dialect, Callable[[Sequence[str], Ask], _Events]] = {
    "openai.chat": _chat,
    "openai.completions": _completions,
    "openai.responses": _responses,
    "anthropic.messages": _messages,
    "gemini": _gemini,
    "ollama.chat": _ollama,
    "ollama.generate": _ollama,
    "llama.cpp": _llama_cpp,
    "tgi": _tgi,
}
