"""An answer in one piece, for a client that does not stream: what the upstream sent as one, or put
together of the stream that was asked for in the client's stead.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from holdback._answers import AnswerCutter
from holdback._failures import MALFORMED, TOO_LONG
from holdback.dialects import DIALECTS
from holdback.serve.sse import objects
from holdback.serve.upstream import BROKE_OFF, Answer, UpstreamError
from holdback.wire import Dialect, WireMatch

GRACE = 1.0
"""Seconds of silence after which an answer that has its end is over, though its stream has not:
some servers send no `[DONE]` and leave the connection open.
"""


class Whole:
    """Collects an answer that is being cut.

    Args:
        cutting: what cuts it.
        dialect: of the answer.
        path: of the request.
        request: its body.
        limit: bytes of the answer at the most.
    """

    def __init__(
        self,
        cutting: AnswerCutter,
        dialect: Dialect,
        path: str,
        request: Mapping[str, Any],
        limit: int,
    ) -> None:
        self._cutting, self._limit = cutting, limit
        self._assembly = DIALECTS[dialect].assemble(path, request)
        self._kept = list[bytes]()
        self._size = 0
        self.events = 0
        """That came so far."""

    @property
    def matches(self) -> tuple[WireMatch, ...]:
        """The stops that were found."""
        return self._cutting.matches

    @property
    def error(self) -> dict[str, Any] | None:
        """An error that the upstream reported in mid-stream."""
        return self._assembly.error

    @property
    def own(self) -> bytes | None:
        """The upstream's own body, cut, if it sent one."""
        return b"".join(self._kept) if self._cutting.kind in ("body", "other") else None

    @property
    def ended(self) -> bool:
        """The protocol's own end has come: `[DONE]`, `message_stop`, `done: true`."""
        return self._cutting.kind == "stream" and self._cutting.ended

    def add(self, piece: bytes) -> None:
        """Take what the cutter gave out. Raises `UpstreamError` for a shape that no answer has."""
        self._size += len(piece)
        if self._size > self._limit:
            raise UpstreamError(
                TOO_LONG, f"the upstream's answer is longer than {self._limit} bytes"
            )
        if self._cutting.kind != "stream":
            self._kept.append(piece)
            return
        try:
            for event in objects(piece):
                self.events += 1
                self._assembly.add(event)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise UpstreamError(
                MALFORMED, "the upstream sends events that no answer can be made of"
            ) from error

    def is_complete(self) -> bool:
        """All of the answer is there, as far as its events tell."""
        return self._assembly.body() is not None

    def value(self) -> Any:
        """The answer. Raises `UpstreamError` if its end has not come."""
        if self._cutting.kind == "array":
            try:
                for event in json.loads(b"".join(self._kept)):
                    self._assembly.add(event)
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                raise UpstreamError(
                    MALFORMED, "the upstream sends events that no answer can be made of"
                ) from error
        made = self._assembly.body()
        if made is None and self.error is None:
            raise UpstreamError(BROKE_OFF, "the upstream ended before its answer did")
        return made


class Source:
    """The pieces of an upstream's answer.

    What is put together is over at the protocol's end, whatever the connection does. A stream that
    goes on to its client is read to the last byte.
    """

    def __init__(self, answer: Answer, whole: Whole | None) -> None:
        self._answer, self._whole = answer, whole
        self._over = False

    async def pieces(self) -> AsyncIterator[bytes]:
        """Raises `UpstreamError`."""
        whole, watch = self._whole, None
        if whole is not None:
            watch = asyncio.ensure_future(self._watch(whole))
        try:
            while piece := await self._answer.next():
                yield piece
                if whole is not None and whole.ended:
                    return
        except UpstreamError:
            if not self._over:
                raise
        finally:
            if watch is not None:
                watch.cancel()

    async def _watch(self, whole: Whole) -> None:
        """End an answer that is complete and silent. Comments and pings are silence, too."""
        seen = -1
        while whole.events != seen or not whole.is_complete():
            seen = whole.events
            await asyncio.sleep(GRACE)
        self._over = True
        self._answer.close()
