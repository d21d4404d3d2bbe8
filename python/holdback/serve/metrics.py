"""What an operator can watch, in Prometheus' text form.

| metric | labels | meaning |
| --- | --- | --- |
| ``holdback_requests_total`` | upstream, dialect, mode, code | requests answered; mode as in ``_requests.Mode``, or ``other`` |
| ``holdback_streams_open`` | upstream | answers under way |
| ``holdback_stops_fired_total`` | upstream, dialect | stops found here |
| ``holdback_upstream_cancels_total`` | upstream, reason | times the gateway hung up: ``match``, ``client_gone``, ``error``, ``shutdown`` |
| ``holdback_errors_total`` | upstream, kind | what went wrong, such as ``upstream_unreachable``, ``malformed``, ``unread`` |
| ``holdback_held_seconds`` | | how long bytes waited in the gateway because a stop might have begun or a frame was not complete |
| ``holdback_added_seconds`` | | time a chunk spent being cut (of one in 16): what cutting adds to its latency |
| ``holdback_chunks_total`` | | chunks cut |
| ``holdback_upstream_seconds`` | upstream | from a request to the first byte of its answer at the gateway |

Every gateway has a registry of its own. A stream counts for itself and reports once, at its end: a
counter of prometheus_client costs more than cutting a frame.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from holdback.serve.extras import need

ADDED_BOUNDS = (5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 5e-3, 2e-2, 0.1)
HELD_BOUNDS = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


class Tally:
    """A histogram as plain numbers: no locks, no labels."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def take(self, other: Tally) -> None:
        """Add another tally of the same bounds to this one."""
        self.total += other.total
        for place, count in enumerate(other.counts):
            self.counts[place] += count

    def buckets(self) -> list[tuple[str, float]]:
        """Bounds and how many values are not above them."""
        made, below = [], 0
        for bound, count in zip((*map(repr, self.bounds), "+Inf"), self.counts, strict=True):
            below += count
            made.append((bound, float(below)))
        return made


class Metrics:
    """The metrics of one gateway."""

    def __init__(self) -> None:
        client = need("prometheus_client")
        registry = client.CollectorRegistry()
        self._client, self._registry = client, registry

        def counter(name: str, about: str, *labels: str) -> Any:
            return client.Counter(f"holdback_{name}", about, labels, registry=registry)

        self.requests = counter(
            "requests", "Requests answered.", "upstream", "dialect", "mode", "code"
        )
        self.fired = counter("stops_fired", "Stops found by the gateway.", "upstream", "dialect")
        self.cancels = counter(
            "upstream_cancels", "Times the gateway hung up on an upstream.", "upstream", "reason"
        )
        self.errors = counter("errors", "What went wrong.", "upstream", "kind")
        self.chunks = counter("chunks", "Chunks cut.")
        self.open = client.Gauge(
            "holdback_streams_open", "Answers under way.", ("upstream",), registry=registry
        )
        self.first_byte = client.Histogram(
            "holdback_upstream_seconds",
            "From a request to the first byte of its answer.",
            ("upstream",),
            registry=registry,
        )
        self.added = Tally(ADDED_BOUNDS)
        self.held = Tally(HELD_BOUNDS)
        registry.register(self)

    def collect(self) -> Iterator[Any]:
        """The tallies, as prometheus_client asks for them."""
        core = need("prometheus_client.core")
        about = "Time a chunk spent being cut."
        yield core.HistogramMetricFamily(
            "holdback_added_seconds", about, self.added.buckets(), self.added.total
        )
        about = "How long bytes waited because a stop might have begun or a frame was not complete."
        yield core.HistogramMetricFamily(
            "holdback_held_seconds", about, self.held.buckets(), self.held.total
        )

    def text(self) -> tuple[bytes, str]:
        """The metrics in Prometheus' text form, and its content type."""
        made: bytes = self._client.generate_latest(self._registry)
        return made, self._client.CONTENT_TYPE_LATEST
