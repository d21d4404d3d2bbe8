"""The words in which other systems say how a generation ended, as tables. `Finish.to` writes them
and `Finish.parse` reads them.

Every system has one `Vocabulary`: which fields it uses, which word it writes for a reason, and what
each of its words may stand for. Two kinds of loss are here for everyone to see:

* A word with several meanings (`meanings`): OpenAI's `"stop"` is the model's own end and a stop
  string alike.
* A reason without a word (`fallbacks`): `"time"` is written as the token limit, and `"stop_token"` as
  the model's own end in systems where a caller cannot name stop tokens. Such a word reads back as
  what that system itself means by it.

`None` as the word for `"cancelled"` is what a broken-off answer has in that field: nothing. It
reads as no end at all. The words are those of the systems' own schemas and client packages, as of
November 2026.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

__all__ = ["ALIASES", "VOCABULARIES", "Vocabulary", "vocabulary"]


@dataclasses.dataclass(frozen=True, slots=True)
class Vocabulary:
    """The fields and words of one system.

    Paths are dotted where the field sits inside another object.
    """

    system: str
    field: str
    """Where the word is."""
    words: Mapping[str, str | bool | None]
    """Reason to word, for writing."""
    meanings: Mapping[str | bool, tuple[str, ...]]
    """Word to the reasons it may stand for, for reading."""
    fallbacks: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Reasons without a word of their own, and the reason whose word they are written as."""
    stop_field: str | None = None
    """Where the stop that ended it is named."""
    token_named_for: tuple[str, ...] = ()
    """The reasons for which `stop_field` gets the id of the ending token."""
    token_meanings: tuple[str, ...] = ()
    """What an integer in `stop_field` may stand for."""
    stop_field_words: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """What `stop_field` holds for other reasons."""
    when_null: tuple[str, ...] = ()
    """What remains when `stop_field` is there and null, out of the meanings of the word."""
    no_stop: str | None = None
    """What `stop_field` holds when no stop ended it."""
    constant: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Fields that say no more than that it is over."""
    may_be_absent: bool = False
    """Whether answers that go on leave the field out (else its absence means that these are another
    system's fields).
    """
    detail_field: str | None = None
    """Where a word written as `"word:detail"` puts its second half."""


_TEXT_END = {"json_end": "eos", "fence_end": "eos"}
_NO_WORD = {"time": "length", "repetition": "eos", **_TEXT_END}
_OWN_END = {
    "stop_token": "eos",
    **_NO_WORD,
}  # fallbacks of a system where stop tokens cannot be named
_ANY_STOP = ("eos", "stop_string", "stop_token")
_DONE = (
    *_ANY_STOP,
    *("repetition", "json_end", "fence_end", "length", "time", "cancelled", "custom"),
)
_ENGINE = {"error": "error", "repetition": "repetition"}


def _same(*words: str) -> dict[str | bool, tuple[str, ...]]:
    return {word: (word,) for word in words}


def _table(*vocabularies: Vocabulary) -> dict[str, Vocabulary]:
    return {one.system: one for one in vocabularies}


_OPENAI_WORDS: dict[str, str | bool | None] = {
    **dict.fromkeys(("eos", "stop_token", "stop_string"), "stop"),
    "length": "length",
    "content_filter": "content_filter",
    "cancelled": None,
}
_OPENAI_MEAN: dict[str | bool, tuple[str, ...]] = {
    "stop": _ANY_STOP,
    **_same("length", "content_filter"),
}
_TOOLS = {"tool_calls": "tool_calls", "function_call": "function_call"}

VOCABULARIES: Mapping[str, Vocabulary] = _table(
    Vocabulary(
        "openai",
        "finish_reason",
        {**_OPENAI_WORDS, **_TOOLS},
        {**_OPENAI_MEAN, **_same("tool_calls", "function_call")},
        fallbacks=_NO_WORD,
    ),
    Vocabulary(
        "openai.completions",
        "finish_reason",
        _OPENAI_WORDS,
        _OPENAI_MEAN,
        fallbacks=_NO_WORD,
    ),
    Vocabulary(
        # The Responses API has no stop field of its own; servers that speak it (vLLM) do. A tool
        # call is "completed" too.
        "openai.responses",
        "status",
        {
            **dict.fromkeys((*_ANY_STOP, "tool_calls"), "completed"),
            "length": "incomplete:max_output_tokens",
            "content_filter": "incomplete:content_filter",
            "cancelled": "cancelled",
            "error": "failed",
        },
        {
            "completed": (*_ANY_STOP, "tool_calls"),
            "incomplete:max_output_tokens": ("length",),
            "incomplete:content_filter": ("content_filter",),
            "cancelled": ("cancelled",),
            "failed": ("error",),
            "in_progress": (),
            "queued": (),
        },
        fallbacks=_NO_WORD,
        detail_field="incomplete_details.reason",
    ),
    Vocabulary(
        "anthropic",
        "stop_reason",
        {
            "eos": "end_turn",
            "stop_string": "stop_sequence",
            "length": "max_tokens",
            "tool_calls": "tool_use",
            "context_length": "model_context_window_exceeded",
            "cancelled": None,
        },
        {
            "end_turn": ("eos",),
            "stop_sequence": ("stop_string",),
            "max_tokens": ("length",),
            "tool_use": ("tool_calls",),
            "model_context_window_exceeded": ("context_length",),
            **_same("pause_turn", "refusal", "compaction"),
        },
        fallbacks=_OWN_END,
        stop_field="stop_sequence",
    ),
    Vocabulary(
        "bedrock",
        "stopReason",
        {
            "eos": "end_turn",
            "stop_string": "stop_sequence",
            "length": "max_tokens",
            "tool_calls": "tool_use",
            "content_filter": "content_filtered",
            "context_length": "model_context_window_exceeded",
            "cancelled": None,
        },
        {
            "end_turn": ("eos",),
            "stop_sequence": ("stop_string",),
            "max_tokens": ("length",),
            "tool_use": ("tool_calls",),
            "content_filtered": ("content_filter",),
            "model_context_window_exceeded": ("context_length",),
            **_same("guardrail_intervened", "malformed_model_output", "malformed_tool_use"),
        },
        fallbacks=_OWN_END,
        stop_field="additionalModelResponseFields.stop_sequence",
    ),
    Vocabulary(
        "gemini",
        "finishReason",
        {
            **dict.fromkeys(("eos", "stop_string"), "STOP"),
            "length": "MAX_TOKENS",
            "content_filter": "SAFETY",
            "cancelled": None,
        },
        {
            "STOP": ("eos", "stop_string"),
            "MAX_TOKENS": ("length",),
            "SAFETY": ("content_filter",),
            "FINISH_REASON_UNSPECIFIED": (),
            **_same("RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
            **_same(
                "MALFORMED_FUNCTION_CALL",
                "UNEXPECTED_TOOL_CALL",
                "TOO_MANY_TOOL_CALLS",
                "MALFORMED_RESPONSE",
            ),
            **_same(
                "IMAGE_SAFETY",
                "IMAGE_PROHIBITED_CONTENT",
                "IMAGE_OTHER",
                "IMAGE_RECITATION",
                "NO_IMAGE",
            ),
            **_same(
                "MISSING_THOUGHT_SIGNATURE",
                "ESCALATION",
                "PUP_LIMITED_DISABLED",
                "CONTINUATION",
                "MODEL_ARMOR",
            ),
        },
        fallbacks=_OWN_END,
        may_be_absent=True,
    ),
    Vocabulary(
        # An integer is a stop token of the request, or one of the further end tokens of the model's
        # generation config.
        "vllm",
        "finish_reason",
        {
            **dict.fromkeys(_ANY_STOP, "stop"),
            "length": "length",
            "cancelled": "abort",
            "tool_calls": "tool_calls",
            **_ENGINE,
        },
        {
            "stop": _ANY_STOP,
            "abort": ("cancelled",),
            **_same("length", "tool_calls", "error", "repetition"),
        },
        fallbacks={"time": "length", **_TEXT_END},
        stop_field="stop_reason",
        token_named_for=("stop_token",),
        token_meanings=("stop_token", "eos"),
        stop_field_words={"repetition": "repetition_detected"},
        when_null=("eos",),
    ),
    Vocabulary(
        # The scheduler reports the end token's id too, so an integer alone does not tell whose
        # token it was.
        "sglang",
        "finish_reason",
        {
            **dict.fromkeys(_ANY_STOP, "stop"),
            "length": "length",
            "cancelled": "abort",
            "tool_calls": "tool_calls",
            "content_filter": "content_filter",
        },
        {
            "stop": _ANY_STOP,
            "abort": ("cancelled",),
            **_same("length", "tool_calls", "content_filter"),
        },
        fallbacks=_NO_WORD,
        stop_field="matched_stop",
        token_named_for=("eos", "stop_token"),
        token_meanings=("eos", "stop_token"),
        when_null=("eos",),
    ),
    Vocabulary(
        "sglang.native",
        "meta_info.finish_reason.type",
        {**dict.fromkeys(_ANY_STOP, "stop"), "length": "length", "cancelled": "abort"},
        {"stop": _ANY_STOP, "abort": ("cancelled",), **_same("length")},
        fallbacks=_NO_WORD,
        stop_field="meta_info.finish_reason.matched",
        token_named_for=("eos", "stop_token"),
        token_meanings=("eos", "stop_token"),
        when_null=("eos",),
        may_be_absent=True,
    ),
    Vocabulary(
        "tgi",
        "details.finish_reason",
        {"eos": "eos_token", "stop_string": "stop_sequence", "length": "length", "cancelled": None},
        {"eos_token": ("eos",), "stop_sequence": ("stop_string",), **_same("length")},
        fallbacks=_OWN_END,
        may_be_absent=True,
    ),
    Vocabulary(
        # "stop_sequence" is not a word of OpenAI's; this server says it all the same.
        "tgi.chat",
        "finish_reason",
        {
            "eos": "stop",
            "stop_string": "stop_sequence",
            "length": "length",
            "tool_calls": "tool_calls",
            "cancelled": None,
        },
        {"stop": ("eos",), "stop_sequence": ("stop_string",), **_same("length", "tool_calls")},
        fallbacks=_OWN_END,
    ),
    Vocabulary(
        "llama.cpp",
        "stop_type",
        {"eos": "eos", "stop_string": "word", "length": "limit", "cancelled": "none"},
        {"eos": ("eos",), "word": ("stop_string",), "limit": ("length",), "none": ()},
        fallbacks=_OWN_END,
        stop_field="stopping_word",
        no_stop="",
        constant={"stop": True},
        may_be_absent=True,
    ),
    Vocabulary(
        "ollama",
        "done_reason",
        {**dict.fromkeys(("eos", "stop_string"), "stop"), "length": "length", "cancelled": None},
        {"stop": ("eos", "stop_string"), **_same("length", "load", "unload")},
        fallbacks=_OWN_END,
        constant={"done": True},
        may_be_absent=True,
    ),
    Vocabulary(
        # `generate` returns ids and nothing else; a criterion only ever answers that a row is done.
        "transformers",
        "is_done",
        dict.fromkeys(_DONE, True),
        {True: _DONE, False: ()},
    ),
)
"""The vocabularies by system."""

ALIASES: Mapping[str, str] = {
    "openai.chat": "openai",
    "vllm.chat": "vllm",
    "vertex": "gemini",
    "tgi.generate": "tgi",
    "llamacpp": "llama.cpp",
    "ollama.chat": "ollama",
}
"""Other names of the same vocabularies."""


def vocabulary(system: str) -> Vocabulary:
    """The vocabulary of `system`; `ValueError` with the known names if there is none."""
    found = VOCABULARIES.get(ALIASES.get(system, system))
    if found is None:
        raise ValueError(
            f"no vocabulary for {system!r}; known: {', '.join(sorted({*VOCABULARIES, *ALIASES}))}"
        )
    return found


def __dir__() -> list[str]:
    return __all__  # completion offers what this module defines, not what it imports
