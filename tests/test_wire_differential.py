"""The cutter against its slow twin: random streams, any cutting, frame by frame."""

from __future__ import annotations

import itertools
import json
import re
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_shapes import DIALECTS
from wire_streams import PIECES, STOPS, Case, cases, event_cases, options_for, written
from wire_twin import SHAPES, Frame, Twin
from wire_twin_events import TWINS

from holdback import reference, wire


def cutter_for(case: Case) -> wire.Cutter:
    options = case.options
    return wire.Cutter(
        case.dialect,
        case.stops,
        choices=options.choices,
        skip_chars=options.skip_chars,
        cut_reasoning=options.cut_reasoning,
        stop_field=options.stop_field,
        on_match=options.on_match,  # type: ignore[arg-type]
        on_error=options.on_error,  # type: ignore[arg-type]
        on_unread="fail",
        **options.stream,
    )


def frames_of(case: Case, out: bytes) -> list[bytes]:
    """The frames of the output, as bytes; a comment that stands alone is a frame."""
    if case.dialect.startswith("ollama"):
        return re.findall(rb"[^\n]*\n", out)
    end = case.line_end.encode()
    frames, block = [], b""
    for line in out.split(end)[:-1]:
        block += line + end
        if not line or (line.startswith(b":") and block == line + end):
            frames.append(block)
            block = b""
    assert not block, "the last frame is complete"
    return frames


def meaning(frame: bytes) -> tuple[str | None, Any]:
    """The name and the data of a frame."""
    name = re.search(rb"^event: ?([^\r\n]*)", frame, re.MULTILINE)
    data = re.search(rb"^(?:data: ?)?([\[{].*?)\r?$", frame, re.MULTILINE)
    text = data[1].decode() if data else ""
    return (name[1].decode() if name else None), text if text == "[DONE]" else json.loads(text)


def compare(case: Case, twin: Any, cutter: wire.Cutter, out: bytes) -> None:
    expected: list[Frame] = twin.out
    got = frames_of(case, out)
    for at, (frame, want) in enumerate(zip(got, expected, strict=False)):
        if want.raw is not None:
            assert frame == want.raw, f"frame {at} should have passed as it came"
        else:
            assert meaning(frame) == (want.name, want.data), f"frame {at}"
    assert len(got) == len(expected)
    assert cutter.ended == twin.ended
    assert cutter.texts_read == twin.characters
    assert cutter.frames_unread == 0
    found = [
        (
            m.stop,
            m.choice if m.block is None else (m.choice, m.block),
            m.reasoning,
            (m.start, m.end),
        )
        for m in cutter.matches
    ]
    assert found == twin.matches


def pieces(body: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    return [body[a:b] for a, b in itertools.pairwise(places)]


def check(case: Case, cuts: list[int], twin: Any) -> None:
    twin.run(case.frames)
    for parts in (
        pieces(case.body, []),
        pieces(case.body, cuts),
        [bytes([byte]) for byte in case.body],
    ):
        cutter = cutter_for(case)
        try:
            out = b"".join(cutter.feed(part) for part in parts) + cutter.finish()
        except wire.WireError as error:
            # What is held leaves at an error. If text goes on after it all the same, a stop over
            # that border shows only where the whole text is said again, and is refused there.
            if not (goes_on_after_an_error(case) and "said again" in str(error)):
                raise
            continue
        compare(case, twin, cutter, out)


def goes_on_after_an_error(case: Case) -> bool:
    types = [frame.data.get("type") for frame in case.frames if isinstance(frame.data, dict)]
    return "error" in types[:-1]


@pytest.mark.parametrize("dialect", list(SHAPES))
@given(data=st.data(), cuts=st.lists(st.integers(0, 1 << 30), max_size=6))
@settings(max_examples=settings().max_examples * 2 // 5)
def test_streams_with_choices(dialect: str, data: st.DataObject, cuts: list[int]) -> None:
    case = data.draw(cases(dialect))
    check(case, cuts, Twin(dialect, case.stops, case.options))


@pytest.mark.parametrize("dialect", list(TWINS))
@given(data=st.data(), cuts=st.lists(st.integers(0, 1 << 30), max_size=6))
@settings(max_examples=settings().max_examples * 3 // 5)
def test_streams_of_typed_events(dialect: str, data: st.DataObject, cuts: list[int]) -> None:
    case = data.draw(event_cases(dialect))
    check(case, cuts, TWINS[dialect](case.stops, case.options))


def whole_answer(dialect: str, text: str, stop: str | None) -> Any:
    """An answer in one piece, as a server that takes no stops sends it; or, with `stop`, as one
    that does and that ended at it.
    """
    shapes: dict[str, tuple[Any, Any]] = {
        "openai.chat": (
            {
                "message": {"role": "assistant", "content": text},
                "finish_reason": "length",
                "stop_reason": None,
            },
            {"finish_reason": "stop", "stop_reason": stop},
        ),
        "openai.completions": (
            {"text": text, "finish_reason": None},
            {"finish_reason": "stop", "stop_reason": stop},
        ),
        "openai.responses": ({"type": "output_text", "text": text}, {}),
        "anthropic.messages": (
            {
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "stop_sequence": None,
            },
            {"stop_reason": "stop_sequence", "stop_sequence": stop},
        ),
        "cohere.chat": (
            {"message": {"content": [{"type": "text", "text": text}]}, "finish_reason": "COMPLETE"},
            {"finish_reason": "STOP_SEQUENCE"},
        ),
        "gemini": (
            {"content": {"parts": [{"text": text}]}, "finishReason": "MAX_TOKENS"},
            {"finishReason": "STOP"},
        ),
        "ollama.chat": (
            {"message": {"content": text}, "done": True, "done_reason": "length"},
            {"done_reason": "stop"},
        ),
        "ollama.generate": (
            {"response": text, "done": True, "done_reason": "length"},
            {"done_reason": "stop"},
        ),
        "llama.cpp": (
            {"content": text, "stop": True, "stop_type": "limit", "stopping_word": ""},
            {"stop_type": "word", "stopping_word": stop},
        ),
        "tgi": ({"generated_text": text}, {}),
    }
    answer, end = shapes[dialect]
    if stop is not None:
        answer |= end
    if dialect.startswith("openai.c"):
        return {"id": "x", "choices": [{"index": 0, **answer}], "usage": {"total": 3}}
    if dialect == "gemini":
        return {"candidates": [answer], "usageMetadata": {"total": 3}}
    if dialect == "openai.responses":
        status = "incomplete" if stop is None else "completed"
        return {
            "status": status,
            "output": [{"type": "message", "status": status, "content": [answer]}],
        }
    if dialect == "tgi":
        return answer | {
            "details": {"finish_reason": "length" if stop is None else "stop_sequence"}
        }
    return answer


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data(), noise=st.randoms(use_true_random=False))
@settings(max_examples=settings().max_examples // 2)
def test_whole_answers(dialect: str, data: st.DataObject, noise: Random) -> None:
    """A body is cut where the reference cuts its text, and says so; one without a stop is the very
    bytes that came.
    """
    stops = data.draw(st.lists(st.sampled_from(STOPS), min_size=1, max_size=4, unique=True))
    text = "".join(data.draw(st.lists(st.sampled_from(PIECES), max_size=9)))
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    options = data.draw(options_for("openai.chat", 1)).stream
    body = written(whole_answer(dialect, text, None), noise).encode()
    cutter = wire.Cutter(dialect, stops, **options)
    out = cutter.body(body)
    seen = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    options.pop("atomic", None)  # a marker that is cut in two by a stop is cut all the same
    kept, match = reference.StopSet(stops).truncate(seen, **options)
    if match is None:
        assert out == body
        assert not cutter.matches
    else:
        expected = whole_answer(dialect, text[: len(kept)], str(match.stop))
        if dialect == "anthropic.messages" and not kept:
            expected["content"] = []  # an emptied block goes
        assert json.loads(out) == expected
        assert [(m.stop, m.start, m.end) for m in cutter.matches] == [
            (match.stop, match.start, match.end)
        ]
