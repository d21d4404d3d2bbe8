"""A request as the configuration has it served: whose facts hold, which stops are added, how the
answer is cut.
"""

from __future__ import annotations

from holdback import _requests
from holdback._requests import Ask, BadRequestError, Job, Limits
from holdback.serve.config import Config, Upstream, field_for
from holdback.wire import Cutter


def limits_of(config: Config) -> Limits:
    """What a request may ask for."""
    return Limits(config.max_stops, config.max_stop_bytes)


def prepare(ask: Ask, upstream: Upstream, query: str, config: Config) -> Job:
    """Decide how a request to `upstream` is served.

    Raises `BadRequestError` for what cannot be.
    """
    job = _requests.prepare(
        ask,
        query,
        more=upstream.stops,
        provider=upstream.provider,
        must_name=config.must_name,
        local=bool(upstream.ignore_inside),  # an upstream would end inside a region
        assemble=(upstream.buffered or config.buffered) == "stream",
        as_events=True,  # where the client wants an array, it is made here of the events
    )
    if job.stops is not None and upstream.ignore_inside:
        try:
            job.stops.stream(ignore_inside=list(upstream.ignore_inside))
        except ValueError as error:
            # The words of the error would tell the operator's markers.
            name = ".".join(ask.field)
            raise BadRequestError(
                f"{name}: a stop meets a marker of the regions in which no stop counts here", name
            ) from error
    return job


def make_cutter(job: Job, upstream: Upstream, config: Config) -> Cutter:
    """The cutter of one answer to `job`."""
    return job.cutter(
        ignore_inside=list(upstream.ignore_inside) or None,
        start_inside=upstream.start_inside,
        cut_reasoning=upstream.cut_reasoning,
        stop_field=field_for(job.ask.dialect, config.stop_field),
        on_match="drain" if config.on_match == "drain" else "cancel",
        on_unread="pass" if config.on_unread == "pass" else "fail",
    )
