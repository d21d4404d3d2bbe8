"""A request as an adapter sees it on its way: what is to be done about it, if anything, by its path
and its host.

Shared by the adapters for httpx and ASGI. A request that is not one to a model, or asks for no
stops, is none of their business. One whose stops cannot be enforced is refused in the words of its
API (`RefusedError`), never passed on as if they had been.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holdback import _requests, providers
from holdback._json import dump_json
from holdback._requests import BadRequestError, Job
from holdback.dialects import DIALECTS, dialect_of
from holdback.wire import Cutter, Dialect

MAX_BODY_BYTES = 64 << 20
"""Of a compressed request, decoded."""

_HOSTS = (
    (r"^api\.openai\.com$|\.openai\.azure\.com$", "openai"),
    (r"^api\.anthropic\.com$", "anthropic"),
    (r"^generativelanguage\.googleapis\.com$", "gemini"),
    (r"-?aiplatform\.googleapis\.com$", "vertex"),
    (r"^api\.deepseek\.com$", "deepseek"),
    (r"^api\.mistral\.ai$", "mistral"),
    (r"^api\.x\.ai$", "xai"),
)
"""Whose facts hold for a host."""


class RefusedError(ValueError):
    """A request that cannot be served: its answer is `status` and `body`, JSON in the words of its
    API.
    """

    def __init__(self, dialect: Dialect, error: BadRequestError) -> None:
        super().__init__(str(error))
        made = DIALECTS[dialect].error(error.status, str(error), error.code, error.param)
        self.status, self.body = error.status, dump_json(made)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request whose answer is to be cut."""

    job: Job

    @property
    def dialect(self) -> Dialect:
        """Of request and answer."""
        return self.job.ask.dialect

    @property
    def streams(self) -> bool:
        """A stream was asked for."""
        return self.job.ask.stream

    @property
    def body(self) -> bytes:
        """The request as it is to be sent, not encoded: the bytes that came, if nothing in them has
        to change.
        """
        return self.job.body

    def cutter(self, **options: Any) -> Cutter:
        """A cutter for the answer.

        Frames that it cannot read pass: it was only guessed what they are.
        """
        return self.job.cutter(**{"on_malformed": "pass", **options})


def stay_here(options: Mapping[str, Any]) -> bool:
    """True if these options of a stream say that stops count in some places only, or are to be
    seen.

    An upstream knows nothing of that: it would end inside a region, too early, or without the stop.
    So it is sent no stops then.
    """
    return any(options.get(name) for name in ("include_stop", "ignore_inside", "min_chars"))


def provider_at(host: str) -> str | None:
    """Whose facts hold for a host.

    >>> provider_at("api.x.ai"), provider_at("localhost")
    ('xai', None)
    """
    return next((name for pattern, name in _HOSTS if re.search(pattern, host)), None)


def read_exchange(
    path: str,
    query: str,
    raw: bytes,
    *,
    coding: str = "",
    host: str = "",
    provider: str | providers.Provider | None = None,
    stop: Iterable[str] | None = None,
    must_name: bool = False,
    local: bool = False,
) -> Exchange | None:
    """Read a POST; `None` if its answer is none of our business.

    Args:
        path: of the request, without the query.
        query: of the request.
        raw: its body.
        coding: its `content-encoding`; what is sent on is not encoded.
        host: of the request; it tells whose limits hold. Where that is not known those that the
            dialect suggests are kept to, and all stops are enforced here too.
        provider: whose limits hold, for hosts that do not tell.
        stop: stops for requests that bring none.
        must_name: as for `providers.plan`.
        local: send no stops, see `stay_here`.

    Raises:
        RefusedError: it asks for stops, and they cannot be enforced.
    """
    dialect = dialect_of(path)
    if dialect is None:
        return None
    try:
        raw = _requests.decoded(coding, raw, MAX_BODY_BYTES)
        if not raw.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            return None  # no request of any dialect
        ask = _requests.read_ask(dialect, path, raw)
        job = _requests.prepare(
            ask,
            query,
            more=() if ask.stops else tuple(stop or ()),
            provider=provider or provider_at(host),
            must_name=must_name,
            local=local,
            guess=True,
        )
    except BadRequestError as error:
        raise RefusedError(dialect, error) from error
    # Without stops to enforce, a request is changed only where the API has no field for its own.
    return Exchange(job) if job.stops is not None else None
