"""What the log and the metrics report of one request, once it is over."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from uuid import uuid4

from holdback._failures import UNREAD
from holdback._requests import Job, Mode
from holdback.serve.log import log_event
from holdback.serve.meter import Meter
from holdback.serve.metrics import Metrics
from holdback.serve.routes import Target
from holdback.wire import Dialect, WireMatch


class Record:
    """One request as an operator sees it."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._begin = perf_counter()
        self.id = uuid4().hex
        self.target: Target | None = None
        self.job: Job | None = None
        self.meter = Meter()
        self.matches: Sequence[WireMatch] = ()
        self.unread = 0
        """Frames of the answer in which no stop could be looked for."""
        self.end = "upstream"
        self.error: str | None = None
        self._first_byte: float | None = None

    @property
    def dialect(self) -> Dialect | None:
        """Of the request; `None` if it is not for an answer, or nobody is there to give one."""
        return self.target.dialect if self.target else None

    @property
    def upstream(self) -> str:
        """Its name, empty without one."""
        return self.target.upstream.name if self.target else ""

    @property
    def mode(self) -> Mode | None:
        """How the answer comes back; `None` for what is not an answer."""
        return self.job.mode if self.job else None

    def failed(self, kind: str) -> None:
        """It ended with an error of this kind."""
        self.end, self.error = "error", kind

    def hung_up(self, reason: str) -> None:
        """The gateway left its upstream."""
        self._metrics.cancels.labels(self.upstream, reason).inc()

    def opened(self, count: int) -> None:
        """An upstream is being asked (1), or no longer (-1)."""
        self._metrics.open.labels(self.upstream).inc(count)

    def got_head(self) -> None:
        """The head of the upstream's answer is there."""
        self._first_byte = perf_counter() - self._begin

    def report(self, method: str, path: str, status: int) -> None:
        """Tell the metrics and the log. A client that left before the head got 499."""
        metrics, name, dialect = self._metrics, self.upstream, self.dialect or ""
        mode, status, meter, job = self.mode or "other", status or 499, self.meter, self.job
        metrics.requests.labels(name, dialect, mode, str(status)).inc()
        metrics.chunks.inc(meter.chunks)
        metrics.added.take(meter.added)
        metrics.held.take(meter.held)
        if self.matches:
            metrics.fired.labels(name, dialect).inc(len(self.matches))
        if self._first_byte is not None:
            metrics.first_byte.labels(name).observe(self._first_byte)
        if self.error:
            metrics.errors.labels(name, self.error).inc()
        if self.unread and self.error != UNREAD:  # it was let through
            metrics.errors.labels(name, UNREAD).inc()
        log_event(
            "request",
            id=self.id,
            method=method,
            path=path[:200],
            upstream=name or None,
            dialect=self.dialect,
            model=job.ask.model[:100] if job and job.ask.model else None,
            mode=mode,
            status=status,
            end=self.end,
            error=self.error,
            stops_sent=len(job.split.send) if job else None,
            stops_enforced=len(job.split.enforce) if job else None,
            unread=self.unread or None,
            fired=[match.index for match in self.matches] or None,
            chunks=meter.chunks or None,
            bytes_in=meter.bytes_in,
            bytes_out=meter.bytes_out,
            first_byte_ms=_ms(self._first_byte),
            ms=_ms(perf_counter() - self._begin),
        )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)
