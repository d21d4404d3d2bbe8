"""`tgi`: text-generation-inference's own `/generate`, `/generate_stream` and `/`."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from holdback.dialects import _parts
from holdback.dialects._spec import Asked, Body, Events, Spec

_WORDS = {"validation": 422, "generation": 424, "overloaded": 429, "incomplete_generation": 500}


def _wants_stream(path: str, body: Body) -> bool:
    return body.get("stream") is True if path == "/" else path.endswith("/generate_stream")


def _ask_for_stream(
    path: str, query: str, body: MutableMapping[str, Any], _usage: bool
) -> tuple[str, str]:
    if path != "/":
        return f"{path}_stream", query
    body["stream"] = True
    return path, query


def _parameters(body: Body) -> Body:
    parameters = body.get("parameters")
    return parameters if isinstance(parameters, dict) else {}


def _has_stream_form(body: Body) -> bool:
    best = _parameters(body).get("best_of")
    return not (type(best) is int and best > 1)


def _error(status: int, message: str, _code: str, _param: str | None) -> dict[str, Any]:
    return {"error": message, "error_type": "validation" if status < 500 else "generation"}


def _error_event(status: int, message: str, code: str) -> Any:
    return _error(status, message, code, None)


def _frame(event: Any) -> bytes:
    return f"data:{_parts.dumped(event)}\n\n".encode()


class _Tgi:
    """The text stands whole in the last event, the tokens in all of them."""

    def __init__(self, *, details: bool, listed: bool) -> None:
        self.error: dict[str, Any] | None = None
        self._tokens: list[Any] = []
        self._top: list[Any] = []
        self._last: dict[str, Any] = {}
        self._details = details
        self._listed = listed

    def add(self, event: dict[str, Any]) -> None:
        if event.get("error"):
            self.error = event
            return
        if self._details:
            self._tokens.append(event.get("token"))
            if event.get("top_tokens"):
                self._top.append(event["top_tokens"])
        if event.get("generated_text") is not None:
            self._last = event

    def body(self) -> Any:
        if not self._last:
            return None
        made = {"generated_text": self._last["generated_text"]}
        if self._details:
            made["details"] = {
                **(self._last.get("details") or {}),
                "prefill": [],
                "tokens": self._tokens,
            }
            if self._top:
                made["details"]["top_tokens"] = self._top
        return [made] if self._listed else made


def _assemble(path: str, body: Body) -> _Tgi:
    parameters = _parameters(body)
    details = parameters.get("details") is True or bool(parameters.get("top_n_tokens"))
    return _Tgi(details=details, listed=path == "/")


def _events(pieces: Sequence[str], _asked: Asked) -> Events:
    for place, piece in enumerate(pieces, 1):
        token = {"id": place, "text": piece, "logprob": -0.25, "special": False}
        yield True, {"index": place, "token": token, "generated_text": None, "details": None}
    details = {"finish_reason": "eos_token", "generated_tokens": 21, "seed": None}
    details["input_length"] = 14
    token = {"id": 2, "text": "</s>", "logprob": -0.25, "special": True}
    end = {"index": len(pieces) + 1, "token": token, "generated_text": "".join(pieces)}
    yield False, {**end, "details": details}


TGI = Spec(
    name="tgi",
    paths=("/generate", "/generate_stream", "/"),
    other_paths=("/info",),
    other_posts=(),
    headers=(),
    native_to=("tgi",),
    spoken_by=(),
    facts=("generate",),
    assumed="tgi",
    stop_fields=(("parameters", "stop"),),
    has_stop_field=True,
    reads=(
        ("model",),
        ("stream",),
        ("parameters", "best_of"),
        ("parameters", "details"),
        ("parameters", "top_n_tokens"),
    ),
    model=_parts.model_in_body,
    wants_stream=_wants_stream,
    ask_for_stream=_ask_for_stream,
    event_query=_parts.same_query,
    choices=_parts.one,
    echoed=_parts.no_echo,
    has_stream_form=_has_stream_form,
    refusal=_parts.no_refusal,
    framing="events",
    takes_comments=True,
    frame=_frame,
    assemble=_assemble,
    error_words=_WORDS,
    error=_error,
    error_event=_error_event,
    events=_events,
)
