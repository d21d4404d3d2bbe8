"""`gemini`: Google's `generateContent` and `streamGenerateContent`, of Gemini and of Vertex AI."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from holdback.dialects import _parts
from holdback.dialects._pieces import Text, closed, merge
from holdback.dialects._spec import Asked, Body, Events, Spec

_WORDS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


def _model(path: str, _body: Body) -> str:
    return path.rpartition("/")[2].partition(":")[0]


def _wants_stream(path: str, _body: Body) -> bool:
    return path.endswith(":streamGenerateContent")


def _ask_for_stream(
    path: str, query: str, _body: MutableMapping[str, Any], _usage: bool
) -> tuple[str, str]:
    return path.replace(":generateContent", ":streamGenerateContent"), with_events(query)


def with_events(query: str) -> str:
    """The query of a stream that comes as events, not as one JSON array."""
    parts = [part for part in query.split("&") if part and not part.startswith("alt=")]
    return "&".join([*parts, "alt=sse"])


def _choices(body: Body) -> int:
    settings = body.get("generationConfig", body.get("generation_config"))
    if not isinstance(settings, dict):
        return 1
    return _parts.whole(settings.get("candidateCount", settings.get("candidate_count")))


def _error(status: int, message: str, _code: str, _param: str | None) -> dict[str, Any]:
    default = "INVALID_ARGUMENT" if status < 500 else "INTERNAL"
    word = _parts.word_for(status, _WORDS, default)
    return {"error": {"code": status, "message": message, "status": word}}


def _error_event(status: int, message: str, code: str) -> Any:
    return _error(status, message, code, None)


def _frame(event: Any) -> bytes:
    return f"data: {_parts.dumped(event)}\r\n\r\n".encode()


class _Gemini:
    """Every event is a whole answer with a piece of text in it."""

    def __init__(self) -> None:
        self.error: dict[str, Any] | None = None
        self._head: dict[str, Any] = {}
        self._candidates: dict[int, dict[str, Any]] = {}

    def add(self, event: dict[str, Any]) -> None:
        if event.get("error"):
            self.error = event
            return
        self._head.update((key, value) for key, value in event.items() if key != "candidates")
        for piece in event.get("candidates") or ():
            candidate = self._candidates.setdefault(piece.get("index", 0), {})
            for key, value in piece.items():
                if key == "content" and isinstance(value, dict):
                    content = candidate.setdefault("content", {"parts": []})
                    self._add_parts(content["parts"], value.get("parts") or [])
                    content.update(
                        (name, inner) for name, inner in value.items() if name != "parts"
                    )
                elif key == "citationMetadata" and isinstance(value, dict):
                    have = candidate.setdefault(key, {}).get("citations") or []
                    more = [
                        cite for cite in value.get("citations") or [] if cite not in have
                    ]  # each event brings its own
                    candidate[key] = {**value, "citations": [*have, *more]}
                elif key == "logprobsResult" and isinstance(value, dict):
                    merge(candidate.setdefault(key, {}), value)
                else:
                    candidate[key] = value

    @staticmethod
    def _add_parts(parts: list[dict[str, Any]], more: list[dict[str, Any]]) -> None:
        """Text goes on in the part before if that is of the same kind, an answer or a thought; all
        else is a part of its own.
        """
        for part in more:
            last = parts[-1] if parts else {}
            if isinstance(last.get("text"), Text) and isinstance(part.get("text"), str):
                same = last.get("thought") == part.get("thought")
                if same:
                    last["text"].append(part["text"])
                    last.update((key, value) for key, value in part.items() if key != "text")
                    continue
                if not part["text"] and len(part) == 1:
                    continue
            text = part.get("text")
            parts.append({**part, **({"text": Text((text,))} if isinstance(text, str) else {})})

    def body(self) -> Any:
        candidates = [self._candidates[index] for index in sorted(self._candidates)]
        blocked = "promptFeedback" in self._head
        if not blocked and (
            not candidates or any(not candidate.get("finishReason") for candidate in candidates)
        ):
            return None
        return closed({"candidates": candidates, **self._head} if candidates else self._head)


def _assemble(_path: str, _body: Body) -> _Gemini:
    return _Gemini()


def _events(pieces: Sequence[str], _asked: Asked) -> Events:
    for place, piece in enumerate(pieces, 1):
        usage = {
            "promptTokenCount": 14,
            "candidatesTokenCount": place,
            "totalTokenCount": 14 + place,
        }
        content = {"parts": [{"text": piece}], "role": "model"}
        candidate: dict[str, Any] = {"content": content, "index": 0}
        if place == len(pieces):
            candidate["finishReason"] = "STOP"
        event = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "demo"}
        yield True, {**event, "responseId": "demo"}


GEMINI = Spec(
    name="gemini",
    paths=(":generateContent", ":streamGenerateContent"),
    other_paths=("/v1beta/", "/v1beta1/", "/v1alpha/", "/v1/projects/"),
    other_posts=(":countTokens", ":embedContent", ":batchEmbedContents", ":computeTokens"),
    headers=(b"x-goog-api-key",),
    native_to=("gemini", "vertex"),
    spoken_by=(),
    facts=(),
    assumed="gemini",
    stop_fields=(  # it takes underscores as well
        ("generationConfig", "stopSequences"),
        ("generationConfig", "stop_sequences"),
        ("generation_config", "stop_sequences"),
        ("generation_config", "stopSequences"),
    ),
    has_stop_field=True,
    reads=tuple(
        (settings, count)
        for settings in ("generationConfig", "generation_config")
        for count in ("candidateCount", "candidate_count")
    ),
    model=_model,
    wants_stream=_wants_stream,
    ask_for_stream=_ask_for_stream,
    event_query=with_events,
    choices=_choices,
    echoed=_parts.no_echo,
    has_stream_form=_parts.always,
    refusal=_parts.no_refusal,
    framing="events",
    takes_comments=False,  # google-genai takes a comment for broken JSON
    frame=_frame,
    assemble=_assemble,
    error_words=_WORDS,
    error=_error,
    error_event=_error_event,
    events=_events,
)
