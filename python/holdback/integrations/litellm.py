"""LiteLLM's proxy, with any stops on any model.

In its configuration:

```yaml
litellm_settings:
  callbacks: holdback.integrations.litellm.stops
```

LiteLLM forwards four stops, drops or refuses them for models that take none, and does not say which
one fired. With this callback all stops hold, on `/v1/chat/completions`, `/v1/completions` and
`/v1/messages`, streamed or not: the model is sent those that it can take, everything is cut here,
the answer ends with the stop that fired, and the connection upstream is closed at the match.

`stops` is :func:`stop_logger` with its defaults; for others, make one in a file of your own beside
the configuration::

    from holdback.integrations.litellm import stop_logger
    mine = stop_logger(ignore_inside=[("<think>", "</think>")])
"""

from __future__ import annotations

import json
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import holdback
from holdback import providers
from holdback._answers import AnswerCutter
from holdback.integrations._cutting import AsyncCutStream, make_cutter
from holdback.integrations._requests import stay_here
from holdback.wire import Cutter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from holdback import StopSet, StopStream

NOTE = "holdback_stops"
"""The key under which a request's stops wait in its metadata."""

# The field of a request that has the stops, by LiteLLM's name of the call.
_FIELDS = {
    "acompletion": "stop",
    "completion": "stop",
    "atext_completion": "stop",
    "text_completion": "stop",
    "anthropic_messages": "stop_sequences",
}


def stop_logger(*, must_name: bool = False, **options: Any) -> Any:
    """A `CustomLogger` for the proxy's `callbacks`.

    Args:
        must_name: send no stops of which the model would not say that they fired: all answers are then cut here, and tell the stop.
            One that is not streamed is generated to its end and paid for.
        options: those of `StopSet.stream`: `include_stop`, `ignore_inside`, `start_inside`, `min_chars`, `atomic`.

    Raises:
        ImportError: if LiteLLM is not installed.
        ValueError: for options that do not fit together.
    """
    holdback.StopSet().stream(**options)
    return _logger_class()(must_name, options)


def __getattr__(name: str) -> Any:
    """`stops`, made when it is asked for: until then LiteLLM is not needed."""
    if name != "stops":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = stop_logger()
    return made


@cache
def _logger_class() -> Any:
    try:
        from litellm.integrations.custom_logger import CustomLogger
    except ImportError as error:
        raise ImportError("this needs LiteLLM's proxy: pip install 'litellm[proxy]'") from error

    class StopLogger(CustomLogger):  # type: ignore[misc]  # a base that is imported when asked for
        """Enforces the stops of each request."""

        def __init__(self, must_name: bool, options: dict[str, Any]) -> None:
            super().__init__()
            self.must_name, self.options = must_name, options

        async def async_pre_call_hook(
            self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: str
        ) -> Any:
            """Note the stops, and leave those in the request that the model takes."""
            return prepare(data, call_type, must_name=self.must_name, local=stay_here(self.options))

        async def async_post_call_streaming_iterator_hook(
            self, user_api_key_dict: Any, response: Any, request_data: dict[str, Any]
        ) -> AsyncIterator[Any]:
            """Cut a stream."""
            stops = noted(request_data)
            async for chunk in (
                response
                if stops is None
                else cut_stream(response, stops, request_data, self.options)
            ):
                yield chunk

        async def async_post_call_success_hook(
            self, data: dict[str, Any], user_api_key_dict: Any, response: Any
        ) -> Any:
            """Cut a whole answer."""
            stops = noted(data)
            return response if stops is None else cut_answer(response, stops, self.options)

    return StopLogger


# --- the request
# -------------------------------------------------------------------------------------------------------------


def prepare(
    data: dict[str, Any], call_type: str, *, must_name: bool = False, local: bool = False
) -> dict[str, Any]:
    """Take from a request the stops that its model would refuse, and note all of them in its
    metadata.

    With `local` none is left: `must_name` and the options of the stream decide, see `stay_here`.

    Stops that are no list of strings, or that cannot be compiled, stay: LiteLLM or the provider
    will say so.
    """
    field = _FIELDS.get(call_type)
    given = data.get(field) if field else None
    listed = [given] if isinstance(given, str) else given
    if not field or not listed or not isinstance(listed, list):
        return data
    try:
        compiled = holdback.compile(listed)
        made = providers.plan(compiled, _limits(data.get("model"), field), must_name=must_name)
    except (TypeError, ValueError):
        return data
    # On /v1/messages `metadata` belongs to the client and goes to Anthropic.
    notes = data.setdefault(
        "litellm_metadata"
        if field == "stop_sequences" or "litellm_metadata" in data
        else "metadata",
        {},
    )
    if not isinstance(notes, dict):
        return data
    notes[NOTE] = list(listed)
    if made.send and not local:
        data[field] = made.send
    else:
        del data[field]
    return data


def noted(data: dict[str, Any]) -> StopSet | None:
    """The stops that :func:`prepare` noted."""
    for key in ("litellm_metadata", "metadata"):
        notes = data.get(key)
        if isinstance(notes, dict) and notes.get(NOTE):
            return holdback.compile(notes[NOTE])
    return None


def _limits(model: Any, field: str) -> providers.Provider:
    """Whose limits hold for a model of the proxy: those of all systems that its name may be routed
    to.
    """
    import litellm

    known = providers.get("litellm")
    try:
        systems = [litellm.get_llm_provider(name)[:2] for name in _deployments(model)]
    except Exception:  # of LiteLLM's own kinds; what it thinks of a model it will say to the client, we must not fail the request
        systems = []
    if not systems:
        return known.with_facts(
            name="unknown", accepts=False
        )  # enforced here, whatever is behind it
    if field == "stop_sequences" and all(provider == "anthropic" for _, provider in systems):
        return providers.get("anthropic")
    takes = [
        litellm.get_supported_openai_params(name, custom_llm_provider=provider) or ()
        for name, provider in systems
    ]
    if not all("stop" in params for params in takes):
        return known.with_facts(name="refuses", accepts=False)
    # One behind the proxy may be Anthropic's, which refuses white space.
    return known.with_facts(name="routed", whitespace_stop="refused")


def _deployments(model: Any) -> list[str]:
    """The models, with their providers, that a name of the proxy stands for."""
    from litellm.proxy import proxy_server

    router = getattr(proxy_server, "llm_router", None)
    listed = router.get_model_list(model_name=model) if router is not None else None
    return [entry["litellm_params"]["model"] for entry in listed or ()]


# --- streams
# -----------------------------------------------------------------------------------------------------------------


async def cut_stream(
    response: Any, stops: StopSet, request: dict[str, Any], options: dict[str, Any]
) -> AsyncIterator[Any]:
    """The chunks of a stream up to the stops: LiteLLM's objects, or the bytes of `/v1/messages`.

    The response is closed (`aclose`) at the match, when the client leaves, and when it breaks off;
    without that the model would go on until the object is collected.
    """
    chunks = aiter(response)
    try:
        first = await anext(chunks, None)
        if first is None:
            return
        whole = _chained(first, chunks)
        if isinstance(first, bytes | str):
            cutter = make_cutter(_messages_cutter(stops), **options)
            cutting = AnswerCutter(cutter, streams=True)
            pieces = AsyncCutStream(_encoded(whole), cutting, lambda: _close(response))
            async for out in pieces:
                yield out
        else:
            async for chunk in _cut_objects(
                whole, stops, request.get("n") or 1, options, lambda: _close(response)
            ):
                yield chunk
    finally:
        await _close(response)


def _messages_cutter(stops: StopSet) -> Callable[..., Cutter]:
    return partial(Cutter, "anthropic.messages", stops)


async def _chained(first: Any, rest: Any) -> AsyncIterator[Any]:
    yield first
    async for chunk in rest:
        yield chunk


async def _encoded(chunks: Any) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield chunk.encode() if isinstance(chunk, str) else chunk


async def _close(response: Any) -> None:
    close = getattr(response, "aclose", None)
    if close is not None:
        await close()


async def _cut_objects(
    chunks: Any, stops: StopSet, choices: int, options: dict[str, Any], close: Any
) -> AsyncIterator[Any]:
    """LiteLLM's chunks, each choice with a stream of its own.

    A chunk in which nothing changes is passed on as the object that came.
    """
    streams: dict[int, StopStream[str]] = {}
    last: Any = None
    try:
        async for chunk in chunks:
            edits = {}  # position in the chunk: what becomes of the choice, None for nothing
            for at, choice in enumerate(chunk.choices):
                stream = streams.setdefault(choice.index, stops.stream(**options))
                edits[at] = _edit(choice, stream)
            last = chunk if chunk.choices else last
            made = _edited(chunk, edits)
            ended = sum(map(_is_over, streams.values()))
            if ended >= choices:
                await close()
            if made is not None:
                yield made
            if ended >= choices:
                return
    except Exception:
        # The model broke off. What was held is the client's; then it hears of the error.
        for index, stream in streams.items():
            if stream.held and last is not None:  # nothing is held behind a match
                yield _carrier(last, index, stream.flush())
        raise


_KEEP: Any = object()
_DROP: Any = object()


def _text_of(choice: Any) -> str:
    delta = getattr(choice, "delta", None)
    return (delta.content if delta is not None else getattr(choice, "text", None)) or ""


def _is_over(stream: StopStream[str]) -> bool:
    return stream.match is not None


def _edit(choice: Any, stream: StopStream[str]) -> Any:
    """What becomes of a choice: `_KEEP`, `_DROP`, or its new text and stop."""
    if _is_over(stream):
        return _DROP  # ended before; the model goes on until all choices have ended
    text = _text_of(choice)
    emit, match = stream.feed(text)
    if match is None and (
        choice.finish_reason or getattr(getattr(choice, "delta", None), "tool_calls", None)
    ):
        emit += (
            stream.flush()
        )  # no more text comes, or something comes that the text must not come behind
        match = stream.match
        if match is None and not choice.finish_reason:
            stream.reset()
    if match is not None:
        return emit, match.stop
    return _KEEP if emit == text else (emit, None)


def _edited(chunk: Any, edits: dict[int, Any]) -> Any:
    """The chunk with its edits; itself if there are none, `None` if nothing is left of it."""
    if all(edit is _KEEP for edit in edits.values()):
        return chunk
    if all(edit is _DROP for edit in edits.values()):
        return None
    made = chunk.model_copy(deep=True)
    for at, edit in edits.items():
        if edit not in (_KEEP, _DROP):
            _write(made.choices[at], *edit)
    made.choices = [choice for at, choice in enumerate(made.choices) if edits[at] is not _DROP]
    return made


def _write(choice: Any, text: str, stop: str | None) -> None:
    if getattr(choice, "delta", None) is not None:
        choice.delta.content = text
    else:
        choice.text = text
    if stop is not None:
        choice.finish_reason = "stop"
        choice.stop_reason = stop
        if getattr(choice, "delta", None) is not None:
            # Also LiteLLM's own place for such things: without it the proxy writes chunks of plain
            # text with the fields it knows only.
            choice.delta.provider_specific_fields = {"stop_reason": stop}
        if getattr(choice, "logprobs", None) is not None:
            choice.logprobs = None  # they may be those of the text that was cut off


def _carrier(chunk: Any, index: int, text: str) -> Any:
    """A chunk of one choice that brings just this text."""
    made = chunk.model_copy(deep=True)
    made.choices = made.choices[:1]
    made.choices[0].index = index
    made.choices[0].finish_reason = None
    _write(made.choices[0], text, None)
    return made


# --- whole answers
# -------------------------------------------------------------------------------------------------------------


def cut_answer(response: Any, stops: StopSet, options: dict[str, Any]) -> Any:
    """An answer that was not streamed, cut in place: LiteLLM's objects, or the dictionary of
    `/v1/messages`.

    Raises `WireError` for one that cannot be cut; the proxy answers with an error then.
    """
    if isinstance(response, dict) and response.get("type") == "message":
        cutter = make_cutter(_messages_cutter(stops), **options)
        made = cutter.body(json.dumps(response).encode())
        response.update(json.loads(made))
        return response
    whole = {
        key: value for key, value in options.items() if key != "atomic"
    }  # says when text goes out: here, at once
    for choice in getattr(response, "choices", None) or ():
        message = getattr(choice, "message", None)
        text = message.content if message is not None else getattr(choice, "text", None)
        if not isinstance(text, str):
            continue
        kept, match = stops.truncate(text, **whole)
        if match is None:
            continue
        if message is not None:
            message.content = kept
        else:
            choice.text = kept
        choice.finish_reason = "stop"
        choice.stop_reason = match.stop
    return response
