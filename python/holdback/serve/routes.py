"""Which dialect a path belongs to, and which upstream it is for.

Paths are those of the providers, so that a client only changes its base address. In front may stand
`/NAME` to choose an upstream. Without it, an upstream is chosen by the path's dialect: one that is
said to be for it (`dialects`), else one whose own interface it is, else one that speaks it, else one
of which nothing is known. A key is never sent to another provider because of the order of a file:
where several providers are as good, the client has to name one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from holdback.dialects import DIALECTS, dialect_of, kin_of, placed
from holdback.serve.config import KNOWN_BEGINNINGS, Upstream
from holdback.wire import Dialect


class RouteError(Exception):
    """A path that leads nowhere. `status` is that of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: the upstream, the path there, and the dialect, `None` for what is not a
    request for an answer.
    """

    upstream: Upstream
    path: str
    dialect: Dialect | None


def find_target(
    method: str,
    path: str,
    upstreams: Sequence[Upstream],
    headers: Iterable[tuple[bytes, bytes]] = (),
) -> Target:
    """The target of a request for a raw path. Raises `RouteError`.

    >>> up = [Upstream("vllm", "http://b", "vllm"), Upstream("claude", "http://a", "anthropic")]
    >>> find_target("POST", "/v1/chat/completions", up).upstream.name
    'vllm'
    >>> find_target("POST", "/v1/messages", up).upstream.name
    'claude'
    >>> find_target("POST", "/vllm/v1/messages/", up).path
    '/v1/messages'
    """
    path = spelled_out(path)
    first, slash, rest = path[1:].partition("/")
    for upstream in upstreams:
        if upstream.name == first:
            path = f"/{rest}" if slash else "/"
            return Target(upstream, *_judged(method, path))
    path, dialect = _judged(method, path)
    if not _is_known(first) and path != "/":
        names = ", ".join(upstream.name for upstream in upstreams) or "none"
        raise RouteError(404, f"no upstream is called {first[:40]!r}; there are: {names}")
    kin = dialect or kin_of(path, headers)
    if kin is None:
        raise RouteError(404, "no upstream is configured for this path")
    return Target(chosen(kin, upstreams), path, dialect)


def spelled_out(path: str) -> str:
    """A raw path without the escapes that need not be: `/%63hat` is `/chat`.

    >>> spelled_out("/v1/%63hat/a%2Fb%20")
    '/v1/chat/a%2Fb%20'
    """

    def plain(escape: re.Match[str]) -> str:
        character = chr(int(escape[1], 16))
        return character if re.fullmatch(r"[A-Za-z0-9._~:-]", character) else escape[0]

    return re.sub("%([0-9A-Fa-f]{2})", plain, path)


def _judged(method: str, path: str) -> tuple[str, Dialect | None]:
    """The path as it is forwarded, and the dialect by which its answer is cut.

    What is judged is what is forwarded. A path that some servers take for one of a dialect, and
    that is none as it is written, is refused.
    """
    if method != "POST":
        return path, None
    found = placed(path)
    if any(dialect_of(read) != (found and found[1]) for read in _readings(path)):
        raise RouteError(400, "the path is written in a way that servers read differently")
    return found or (path, None)


def _readings(path: str) -> Iterator[str]:
    """The path as servers may read it: decoded, without parameters, with a backslash for a slash,
    without what is not seen.
    """
    for text in (path, unquote(path)):
        shown = re.sub(r"[\x00-\x20\x7f]", "", text)
        for other in (shown, shown.replace("\\", "/")):
            yield other
            yield "/".join(part.partition(";")[0] for part in other.split("/"))


def _is_known(first: str) -> bool:
    return (
        first in KNOWN_BEGINNINGS
        or re.fullmatch(r"v\d{1,2}(?:(?:alpha|beta)\d*)?", first) is not None
    )


def chosen(dialect: Dialect, upstreams: Sequence[Upstream]) -> Upstream:
    """The upstream for a path of a dialect that names none. Raises `RouteError`."""
    ranked = [(rank, one) for one in upstreams if (rank := _rank(one, dialect)) is not None]
    if not ranked:
        raise RouteError(404, f"no upstream that speaks {dialect} is configured")
    best = min(rank for rank, _ in ranked)
    equal = [one for rank, one in ranked if rank == best]
    if best > 0 and len({one.provider or f"/{one.name}" for one in equal}) > 1:
        names = " or ".join(f"/{one.name}/..." for one in equal)
        raise RouteError(404, f"several upstreams speak {dialect}: choose one by the path, {names}")
    return equal[0]


def _rank(upstream: Upstream, dialect: Dialect) -> int | None:
    """How well an upstream fits a dialect, 0 the best; `None` if it does not speak it."""
    if upstream.dialects:
        return 0 if dialect in upstream.dialects else None
    if upstream.provider in DIALECTS[dialect].native_to:
        return 1
    if not upstream.speaks(dialect):
        return None
    return 3 if upstream.provider is None else 2


def table(upstreams: Sequence[Upstream]) -> dict[str, str]:
    """Where paths go that name no upstream, for the log: the upstream's name by dialect, or why
    there is none.
    """
    made = dict[str, str]()
    for dialect in DIALECTS:
        try:
            made[dialect] = chosen(dialect, upstreams).name
        except RouteError as error:
            made[dialect] = f"none: {error}"
    return made


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
