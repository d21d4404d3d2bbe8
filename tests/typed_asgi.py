"""What a user of the ASGI adapter writes, for the type checkers (`make types`), with starlette's own
types.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import StreamingResponse

from holdback.integrations.asgi import (
    AsyncCutStream,
    CutStream,
    StopMiddleware,
    cut_response,
    cut_sse,
)
from holdback.wire import WireMatch


def applications() -> list[Starlette]:
    """The middleware, in both of starlette's ways."""
    first = Starlette()
    first.add_middleware(StopMiddleware)
    first.add_middleware(StopMiddleware, stop=["END"], provider="vllm", on_match="drain")
    return [first, Starlette(middleware=[Middleware(StopMiddleware, must_name=True)])]


def endpoint(pieces: AsyncIterator[bytes], dialect: str) -> StreamingResponse:
    """A dialect from a configuration, and what fired."""
    cut: AsyncCutStream = cut_sse(pieces, dialect, ["END"], choices=2)
    matches: tuple[WireMatch, ...] = cut.matches
    assert not cut.ended
    assert not matches
    return StreamingResponse(cut, media_type="text/event-stream")


def plain(pieces: Iterator[str]) -> CutStream:
    """A callback in place of the option."""
    return cut_sse(pieces, "openai.chat", "END", on_match=lambda match: print(match.stop))


def whole(body: bytes) -> bytes:
    """A body is bytes again."""
    return cut_response(body, "openai.chat", ["END"])
