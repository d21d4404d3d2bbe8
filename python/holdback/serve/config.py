"""What an operator can choose: the upstreams, and how the gateway treats them and its clients.

A configuration comes from a TOML file (:func:`read_toml`), from the command line, or from code.
Wrong values are a ``ValueError`` that names the key.

>>> parse_upstream("openai=https://api.openai.com")
Upstream(name='openai', url='https://api.openai.com', provider='openai')
>>> parse_upstream("big:vllm=http://gpu-1:8000/").provider
'vllm'
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from holdback import StopSet, providers
from holdback.dialects import DIALECTS, dialects_of
from holdback.wire import Cutter, Dialect

KNOWN_BEGINNINGS = frozenset(
    path.split("/")[1]
    for spec in DIALECTS.values()
    for path in (*spec.paths, *spec.other_paths)
    if path.startswith("/")
) - {""}
"""First parts of paths of the known APIs; versions (`v1`, `v1beta`) are known beside them."""

MAX_TIMEOUT = 10_000_000
"""Seconds; four months, and nothing overflows."""

RESERVED = (
    *("healthz", "metrics", "readyz", "v1", "v2", "v1beta"),
    *sorted(KNOWN_BEGINNINGS - {"v1", "v2", "v1beta", "openai"}),
)
"""First parts of paths that mean something already, so that no upstream can be called that."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """One system that the gateway forwards to."""

    name: str
    """How clients choose it: by the path ``/NAME/...``."""
    url: str
    """Its address; a path in it goes in front of every request's own."""
    provider: str | None = None
    """Whose facts say which stops can be sent (``holdback.providers``).

    ``None``: nothing is known, so all are enforced here.
    """
    dialects: tuple[Dialect, ...] = field(default=(), repr=False)
    """What it is asked for when a path names no upstream; empty: what its provider speaks, or
    everything.
    """
    stops: tuple[str, ...] = field(default=(), repr=False)
    """Stops that every request gets, behind its own."""
    ignore_inside: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Regions of the text in which stops do not count, such as ``("<think>", "</think>")``."""
    start_inside: bool = field(default=False, repr=False)
    """Answers begin inside the first of these regions: the chat template has opened it."""
    cut_reasoning: bool = field(default=False, repr=False)
    """Look for stops in reasoning fields too."""
    buffered: str | None = field(default=None, repr=False)
    """As the setting of the whole gateway, for this upstream alone; `None`: as there."""

    def __post_init__(self) -> None:
        where = f"upstream {self.name!r}"
        if (
            not self.name
            or not all(c.isalnum() or c in "-_." for c in self.name)
            or self.name.startswith(".")
        ):
            raise ValueError(
                f"{where}: a name has letters, digits, '-', '_' and '.', because it stands in paths"
            )
        if self.name in RESERVED:
            raise ValueError(
                f"{where}: this name is taken by paths of the gateway itself: {', '.join(RESERVED)}"
            )
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{where}: the address is http://... or https://..., not {self.url!r}")
        try:
            _ = parts.port
        except ValueError as error:
            raise ValueError(f"{where}: the address has no port like that: {self.url!r}") from error
        if parts.query or parts.fragment or parts.username or parts.password:
            raise ValueError(
                f"{where}: the address has no user, query or fragment; keys come from the clients' own headers"
            )
        if self.provider is not None:
            try:
                providers.get(self.provider)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from error
        if self.start_inside and not self.ignore_inside:
            raise ValueError(f"{where}: start_inside needs the regions of ignore_inside")
        if self.buffered not in (None, "stream", "pass"):
            raise ValueError(f"{where}: buffered is 'stream' or 'pass', not {self.buffered!r}")
        for dialect in self.dialects:
            if dialect not in DIALECTS:
                raise ValueError(
                    f"{where}: no dialect is called {dialect!r}; there are {', '.join(DIALECTS)}"
                )

        try:
            stops = StopSet(self.stops)
        except ValueError as error:
            raise ValueError(f"{where}: stops: {error}") from error
        try:
            stops.stream(
                ignore_inside=list(self.ignore_inside) or None, start_inside=self.start_inside
            )
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error

    def speaks(self, dialect: Dialect) -> bool:
        """Whether it may be chosen for a path of this dialect that names no upstream."""
        # One of another provider, or of none, is taken to speak everything.
        spoken = self.dialects or dialects_of(self.provider or "") or tuple(DIALECTS)
        return dialect in spoken


@dataclass(frozen=True, slots=True)
class Config:
    """The whole gateway. Times are in seconds, sizes in bytes."""

    upstreams: tuple[Upstream, ...] = ()
    """In the order in which they are considered for a path that names none."""
    listen: str = "127.0.0.1:8080"
    on_match: str = "cancel"
    """``cancel``: hang up on the upstream at the match; ``drain``: read on for its usage figures,
    and pay for them.
    """
    buffered: str = "stream"
    """For clients that do not stream. ``stream``: ask the upstream for a stream, cut it, hang up at
    the match, answer as one body; ``pass``: forward as asked and cut the body."""
    must_name: bool = True
    """Keep stops here if the upstream does not say which one fired.

    ``False`` sends as many as it takes.
    """
    stop_field: str | None = "auto"
    """The key that names the stop where the provider has none of its own; ``None``: no such key. As
    in ``holdback.wire.Cutter``, but a dialect that has that key itself keeps it (Anthropic's
    ``stop_reason``)."""
    on_unread: str = "fail"
    """For answers in which nothing could be read that a stop could stand in.

    ``fail``: the client gets an error; ``pass``: the answer, uncut."""
    stop_comment: bool = True
    """End event streams that were cut with the comment ``: x-holdback-stop: ...`` (not Gemini's,
    whose SDK takes none).
    """
    other_paths: str = "read"
    """Requests that are not for an answer, such as the list of models.

    ``read``: GET and HEAD are forwarded; ``all``; ``none``.
    """
    max_streams: int = 10_000
    """Requests in flight; more are answered with 503."""
    max_request_bytes: int = 64 << 20
    max_answer_bytes: int = 64 << 20
    """The longest answer that is kept as a whole: those of clients that do not stream."""
    max_stops: int = 256
    max_stop_bytes: int = 65_536
    """All stops of one request together."""
    connect_timeout: float = 10.0
    idle_timeout: float = 600.0
    """Longest silence of an upstream, before its answer and inside it."""
    request_timeout: float = 60.0
    """Longest silence of a client that is sending its request."""
    send_timeout: float = 60.0
    """How long a client may not read what is sent to it."""
    drain_timeout: float = 30.0
    """How long open streams may go on after SIGTERM."""

    def __post_init__(self) -> None:
        for key, words in (
            ("on_match", ("cancel", "drain")),
            ("buffered", ("stream", "pass")),
            ("on_unread", ("fail", "pass")),
            ("other_paths", ("read", "all", "none")),
        ):
            if getattr(self, key) not in words:
                raise ValueError(
                    f"{key} is {' or '.join(map(repr, words))}, not {getattr(self, key)!r}"
                )
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name.startswith("max_") and value < 1:
                raise ValueError(f"{entry.name} is at least 1, not {value!r}")
            if entry.name.endswith("_timeout") and not 0 < value <= MAX_TIMEOUT:
                raise ValueError(
                    f"{entry.name} is more than 0 and at most {MAX_TIMEOUT} seconds, not {value!r}"
                )
        if self.stop_field == "":
            raise ValueError("stop_field is empty: the key that names the stop needs a name")
        split_address(self.listen)
        names = [upstream.name for upstream in self.upstreams]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two upstreams are called {name!r}")


@lru_cache(maxsize=64)
def field_for(dialect: Dialect, stop_field: str | None) -> str | None:
    """The setting `stop_field`, which is for all dialects, as this one can have it: a key that it
    has itself stays its own.

    >>> field_for("gemini", "stop_reason"), field_for("anthropic.messages", "stop_reason")
    ('stop_reason', 'auto')
    """
    try:
        Cutter(dialect, (), stop_field=stop_field)
    except ValueError:
        return "auto"
    return stop_field


def split_address(text: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``, ``:PORT`` (all addresses) or ``[IPV6]:PORT``.

    >>> split_address("[::1]:8080"), split_address(":80")
    (('::1', 8080), ('', 80))
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"listen is HOST:PORT, not {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def parse_upstream(text: str) -> Upstream:
    """The upstream that ``NAME=URL`` or ``NAME:PROVIDER=URL`` describes; the provider is the name's
    if that is one.
    """
    head, equals, url = text.partition("=")
    if not equals:
        raise ValueError(f"an upstream is NAME=URL or NAME:PROVIDER=URL, not {text!r}")
    name, _, provider = head.partition(":")
    return Upstream(name, url.rstrip("/"), provider or _provider_called(name))


def read_toml(path: str | Path) -> Config:
    """The configuration of a TOML file: the fields of :class:`Config`, and a table
    ``[upstreams.NAME]`` for each upstream.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    try:
        return Config(**parse_toml(text))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse_toml(text: str) -> dict[str, Any]:
    """The fields of :class:`Config` that ``text`` sets.

    >>> found = parse_toml('on_match = "drain"\\n[upstreams.vllm]\\nurl = "http://gpu-1:8000"')
    >>> found["on_match"], found["upstreams"]
    ('drain', (Upstream(name='vllm', url='http://gpu-1:8000', provider='vllm'),))
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        from holdback.serve.extras import need

        tomllib = need("tomli")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not TOML: {error}") from error
    tables = document.pop("upstreams", {})
    if not isinstance(tables, dict) or not all(
        isinstance(table, dict) for table in tables.values()
    ):
        raise ValueError("upstreams are tables: [upstreams.NAME]")
    found = _checked(Config, document, "")
    found["upstreams"] = tuple(_upstream(name, table) for name, table in tables.items())
    return found


def _upstream(name: str, table: dict[str, Any]) -> Upstream:
    where = f"[upstreams.{name}] "
    values = _checked(Upstream, table, where)
    if "url" not in values:
        raise ValueError(f"{where}has no url")
    values["url"] = values["url"].rstrip("/")
    values.setdefault("provider", _provider_called(name))
    return Upstream(name=name, **values)


def _provider_called(name: str) -> str | None:
    try:
        return providers.get(name).name
    except ValueError:
        return None


def _checked(kind: type, table: dict[str, Any], where: str) -> dict[str, Any]:
    """The table's values, with lists made tuples, after a look at their names and types."""
    wanted = {
        entry.name: str(entry.type)
        for entry in fields(kind)
        if entry.name not in ("name", "upstreams")
    }
    made = {}
    for key, value in table.items():
        if key not in wanted:
            close = get_close_matches(key, wanted, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(wanted)}"
            raise ValueError(f"{where}no setting is called {key!r}{hint}")
        made[key] = _converted(value, wanted[key], f"{where}{key}")
    return made


def _converted(value: Any, kind: str, where: str) -> Any:
    if kind in ("str", "str | None") and isinstance(value, str):
        return (value or None) if "None" in kind else value
    if kind == "bool" and isinstance(value, bool):
        return value
    if kind == "int" and type(value) is int:
        return value
    if kind == "float" and type(value) in (int, float):
        return float(value)
    if kind.startswith("tuple[tuple") and isinstance(value, list):
        pairs = [tuple(pair) if isinstance(pair, list) else () for pair in value]
        if all(len(pair) == 2 and all(isinstance(text, str) for text in pair) for pair in pairs):
            return tuple(pairs)
    elif (
        kind.startswith("tuple[")
        and isinstance(value, list)
        and all(isinstance(entry, str) for entry in value)
    ):
        return tuple(value)
    named = {
        "str | None": "a string, empty for none",
        "str": "a string",
        "bool": "true or false",
        "int": "a whole number",
    }
    named |= {"float": "a number of seconds"}
    wanted = named.get(
        kind, "a list of pairs of strings" if "tuple[tuple" in kind else "a list of strings"
    )
    raise ValueError(f"{where} is {wanted}, not {value!r}")
