"""A provider on loopback that sends what a test tells it to, piece by piece, and sees when its
client leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from dataclasses import dataclass, field
from typing import Any

PATIENCE = 20.0  # seconds the upstream waits for a client that should leave; a client that does so is never waited for
PAUSE = 0.01  # seconds between two pieces, so that they arrive one by one

SSE, NDJSON, JSON = "text/event-stream", "application/x-ndjson", "application/json"


@dataclass
class Reply:
    """What is sent to the next client."""

    pieces: list[bytes]
    kind: str = SSE
    leaves_after: int | None = (
        None  # the piece (from 0) after which the client is expected to leave: waited for
    )
    breaks_after: int | None = None  # the connection is cut off behind this piece
    status: int = 200


@dataclass
class Seen:
    """What the upstream saw of a request."""

    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    sent: int = 0  # pieces
    left: bool = False  # the client left before the end
    over: threading.Event = field(default_factory=threading.Event)

    def after(self) -> int:
        """How many pieces were sent in all, once it is over."""
        assert self.over.wait(PATIENCE + 10)
        return self.sent


class Upstream:
    """`with Upstream() as upstream: upstream.replies.append(Reply(...)); ... upstream.seen[-1]`."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.seen: list[Seen] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Upstream:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reply(self, *pieces: bytes, **rest: Any) -> None:
        self.replies.append(Reply(list(pieces), **rest))

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(
                asyncio.gather(*asyncio.all_tasks(self._loop), return_exceptions=True)
            )
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines if line)
        }
        if (
            not first.startswith("POST") or not self.replies
        ):  # some look around first, for a list of models
            writer.write(b"HTTP/1.1 404 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            writer.close()
            return
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        seen = Seen(first.split(" ")[1], headers, json.loads(body) if body else None)
        self.seen.append(seen)
        reply = self.replies.pop(0)
        try:
            await self._answer(reply, seen, reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            seen.left = True
        finally:
            seen.over.set()
            writer.close()

    async def _answer(
        self, reply: Reply, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = f"HTTP/1.1 {reply.status} X\r\ncontent-type: {reply.kind}\r\nconnection: close\r\n"
        if reply.kind == JSON:
            whole = b"".join(reply.pieces)
            writer.write(f"{head}content-length: {len(whole)}\r\n\r\n".encode() + whole)
            await writer.drain()
            return
        writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        for at, piece in enumerate(reply.pieces):
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            seen.sent += 1
            if reply.breaks_after == at:
                await asyncio.sleep(
                    20 * PAUSE
                )  # some clients drop what they have not read when the end is a bad one
                return  # without the end that the client was promised
            wait = PATIENCE if reply.leaves_after == at else PAUSE
            with contextlib.suppress(asyncio.TimeoutError):
                if await asyncio.wait_for(reader.read(1), wait) == b"":
                    seen.left = True
                    return
        writer.write(b"0\r\n\r\n")
        await writer.drain()


# --- frames
# ----------------------------------------------------------------------------------------------------------------


def data(value: Any) -> bytes:
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def chat(text: str | None, index: int = 0, finish: str | None = None) -> bytes:
    delta = {} if text is None else {"content": text}
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return data(
        {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }
    )


DONE = b"data: [DONE]\n\n"


def event(name: str, value: dict[str, Any]) -> bytes:
    return f"event: {name}\n".encode() + data({"type": name, **value})


def message_start() -> list[bytes]:
    usage = {"input_tokens": 3, "output_tokens": 1}
    message = {
        "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    block = {"index": 0, "content_block": {"type": "text", "text": ""}}
    return [event("message_start", {"message": message}), event("content_block_start", block)]


def message_text(text: str) -> bytes:
    return event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": text}})


def message_end() -> list[bytes]:
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    return [
        event("content_block_stop", {"index": 0}),
        event("message_delta", {"delta": delta, "usage": {"output_tokens": 9}}),
        event("message_stop", {}),
    ]


def gemini(text: str, finish: str | None = None, index: int = 0) -> bytes:
    candidate: dict[str, Any] = {
        "content": {"parts": [{"text": text}], "role": "model"},
        "index": index,
    }
    if finish:
        candidate["finishReason"] = finish
    return data({"candidates": [candidate], "modelVersion": "m"})


def ollama(text: str, *, done: bool = False) -> bytes:
    line: dict[str, Any] = {
        "model": "m",
        "created_at": "2026-11-30T00:00:00Z",
        "message": {"role": "assistant", "content": text},
    }
    line["done"] = done
    if done:
        line["done_reason"] = "stop"
    return json.dumps(line).encode() + b"\n"
