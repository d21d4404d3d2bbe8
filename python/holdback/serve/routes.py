"""Which dialect a path belongs to, and which upstream it is for.

Paths are those of the providers, so that a client only changes its base address. In front may stand
``/NAME`` to choose an upstream; without it, the first upstream in the order of the configuration
that speaks the path's dialect is taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from holdback.dialects import dialect_of
from holdback.serve.config import Upstream
from holdback.wire import Dialect


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: the upstream, the path there, and the dialect, ``None`` for what is not
    a request for an answer.
    """

    upstream: Upstream
    path: str
    dialect: Dialect | None


def find_target(method: str, path: str, upstreams: Sequence[Upstream]) -> Target | None:
    """The target of a request for ``path``, ``None`` if there is no upstream for it.

    >>> up = [Upstream("claude", "http://a", "anthropic"), Upstream("vllm", "http://b", "vllm")]
    >>> find_target("POST", "/v1/chat/completions", up).upstream.name, find_target("POST", "/claude/v1/messages", up).path
    ('vllm', '/v1/messages')
    """
    first, slash, rest = path[1:].partition("/")
    for upstream in upstreams:
        if upstream.name == first:
            path = f"/{rest}" if slash else "/"
            return Target(upstream, path, dialect_of(path) if method == "POST" else None)
    dialect = dialect_of(path) if method == "POST" else None
    for upstream in upstreams:
        if dialect is None or upstream.speaks(dialect):
            return Target(upstream, path, dialect)
    return None


def address(upstream: Upstream, path: str, query: str) -> str:
    """The full address at the upstream. A version in both its own path and the request's is written
    once.

    >>> address(Upstream("x", "https://host/api/v1"), "/v1/chat/completions", "a=1")
    'https://host/api/v1/chat/completions?a=1'
    """
    base = upstream.url
    _, _, last = urlsplit(base).path.rpartition("/")
    if re.fullmatch(r"v\d+(?:beta)?", last) and path.startswith(f"/{last}/"):
        path = path[len(last) + 1 :]
    return base + path + (f"?{query}" if query else "")


def has_dot_segments(path: str) -> bool:
    """Whether a raw path has dot segments, plain or escaped, which could leave the upstream's own
    path.
    """
    parts = re.split(r"/|%2f|\\|%5c", path.lower())
    return any(part.replace("%2e", ".") in (".", "..") for part in parts)
