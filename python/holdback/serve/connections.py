"""Limits that only the connection itself can keep: on clients that do not send, and on clients that
do not read.

A server of ASGI hands a request on when its head is there, and takes an answer as fast as it can be
written. Half a head, or a client that never reads, is therefore not seen by an application; here is
uvicorn's own protocol with two timers.
"""

from __future__ import annotations

from typing import Any

from holdback.serve.extras import need


def limited_protocol(request_timeout: float, send_timeout: float) -> Any:
    """A protocol for `uvicorn.Config(http=...)`.

    Args:
        request_timeout: seconds until the head of a request has to be there, from the opening of the
            connection or from the first byte after an answer. (Between requests the server's own
            keep-alive holds, and the body is up to the application.)
        send_timeout: seconds in which what waits for a client has to be read by it.
    """
    base: Any = need("uvicorn.protocols.http.httptools_impl").HttpToolsProtocol

    class LimitedProtocol(base):  # type: ignore[misc]  # a base that is imported when asked for
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._head_timer: Any = None
            self._send_timer: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end_head_timer()
            self._end_send_timer()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            if self._send_timer is None:
                self._send_timer = self.loop.call_later(send_timeout, self.transport.abort)

        def resume_writing(self) -> None:
            self._end_send_timer()
            super().resume_writing()

        def _watch_head(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._end_head_timer()
            elif self._head_timer is None:
                self._head_timer = self.loop.call_later(request_timeout, self.transport.close)

        def _end_head_timer(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

        def _end_send_timer(self) -> None:
            if self._send_timer is not None:
                self._send_timer.cancel()
                self._send_timer = None

    return LimitedProtocol
