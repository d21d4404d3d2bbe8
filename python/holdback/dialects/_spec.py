"""The record of a dialect, and what it asks of its parts.

It has no defaults: a part that a new dialect forgot is an error at import, not an answer put
together as if it were another API's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from holdback.wire import Dialect

Field = tuple[str, ...]
"""Where something stands in a body: keys, from the outside in."""

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Large:
    """A value in a request that is too large to be read."""

    prompts: int | None
    """How many prompts a list of that many elements would be; `None` for what is no list."""


class Assembly(Protocol):
    """Events of a stream in, one body out."""

    error: dict[str, Any] | None
    """An error that the upstream reported in mid-stream."""

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event."""
        ...

    def body(self) -> Any:
        """The answer, `None` if its end has not come."""
        ...


class Asked(Protocol):
    """What a canned answer depends on."""

    @property
    def body(self) -> Body:
        """The request."""
        ...

    @property
    def model(self) -> str | None:
        """Its model."""
        ...

    @property
    def stream(self) -> bool:
        """Whether it asks for a stream."""
        ...

    @property
    def choices(self) -> int:
        """How many answers it asks for."""
        ...


Events = Iterator[tuple[bool, Any]]
"""Events of a stream, each with whether it brings a piece of the text; a `str` is no JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Everything that Python knows about a dialect."""

    name: Dialect
    paths: tuple[str, ...]
    """How the paths of its requests end; `/` stands for itself only. The longest that fits counts,
    because what stands in front differs: /v1, /openai/deployments/x, /proxy/..."""
    other_paths: tuple[str, ...]
    """How paths of the same API begin that are not for an answer, such as `/api/`."""
    other_posts: tuple[str, ...]
    """How such paths end whose POSTs change nothing and bring no text of a model: embeddings, counts
    of tokens."""
    headers: tuple[bytes, ...]
    """Headers that only clients of this API send."""
    native_to: tuple[str, ...]
    """Providers (`holdback.providers`) whose own interface it is."""
    spoken_by: tuple[str, ...]
    """Those that speak it as well."""
    facts: tuple[str, ...]
    """How a provider's facts are called when they differ by route: `chat` for `vllm.chat`. Without
    such facts those of the provider hold, if they speak of the same field."""
    assumed: str
    """The provider whose limits are kept to where nothing is known but the dialect."""

    stop_fields: tuple[Field, ...]
    """Where stops stand in a body. The first is the usual one."""
    has_stop_field: bool
    """The API has that field; if not, it is for the gateway and is never sent on, also not empty."""
    reads: tuple[Field, ...]
    """The fields that the functions below look at; they see no others."""
    model: Callable[[str, Body], str | None]
    """The model, from path and body."""
    wants_stream: Callable[[str, Body], bool]
    """Whether path and body ask for a stream."""
    ask_for_stream: Callable[[str, str, MutableMapping[str, Any], bool], tuple[str, str]]
    """Change a request (path, query, body) into one for a stream, with usage figures if the last
    argument says that they may be asked for; gives the new path and query."""
    event_query: Callable[[str], str]
    """The query of a stream that comes as events, where an API has other forms."""
    choices: Callable[[Body], int]
    """How many answers are asked for."""
    echoed: Callable[[Body], int | None]
    """Characters of the prompt that come back in front of the answer, `None` if that cannot be
    known."""
    has_stream_form: Callable[[Body], bool]
    """A stream can bring all that is asked for."""
    refusal: Callable[[Body], tuple[str, str] | None]
    """The field because of which stops cannot be enforced on the answer, and why."""

    framing: Literal["events", "lines"]
    """Event streams, or lines of JSON."""
    takes_comments: bool
    """Its clients skip the comments of event streams."""
    frame: Callable[[Any], bytes]
    """An event as it goes over the wire."""
    assemble: Callable[[str, Body], Assembly]
    """What makes a body of the stream that answers a request (path, body)."""
    error_words: Mapping[str, int]
    """Its words for kinds of errors, with their HTTP status."""
    error: Callable[[int, str, str, str | None], dict[str, Any]]
    """The body of an error: status, message, a word for programs, the field at fault."""
    error_event: Callable[[int, str, str], Any]
    """The same as an event of a stream: status, message, word."""
    events: Callable[[Sequence[str], Asked], Events]
    """A canned answer with these pieces of text."""
