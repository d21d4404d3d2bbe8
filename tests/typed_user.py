"""A user's file that touches every public name: `make types` checks it under mypy and pyright,
test_typed_user.py runs it.

Each `assert_type` is a promise about what an editor shows.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import pickle
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from typing_extensions import assert_type

import holdback
from holdback import (
    AmbiguousFinish,
    Criterion,
    Explanation,
    Finding,
    Finish,
    Generation,
    ParsedFinish,
    Plan,
    StopMatch,
    StoppingCriteria,
    StopSet,
    StopStream,
    Trace,
)
from holdback.wire import DIALECTS, Cutter, Dialect, WireError, WireMatch


def relay(chunks: Iterable[str | bytes], stops: StopSet) -> tuple[list[str], StopMatch[str] | None]:
    """The loop of a server."""
    stream: StopStream[str] = stops.stream(
        include_stop=False,
        errors="strict",
        ignore_inside=[("<think>", "</think>")],
        atomic="regions",
    )
    out: list[str] = []
    for chunk in chunks:
        emit, match = stream.feed(chunk)
        assert_type(emit, str)
        out.append(emit)
        if match is not None:
            assert_type(match.index, int)
            assert_type(match.start, int)
            assert_type(match.end, int)
            assert_type(match.start_chunk, int)
            assert_type(match.end_chunk, int)
            return out, match
    out.append(stream.flush())
    return out, None


def core() -> None:
    """Sets, streams, matches."""
    assert holdback.__version__
    stops = StopSet(["</answer>", "\n\nUser:"], tie="longest", max_stops=10, max_bytes=1000)
    assert_type(stops.stops, tuple[str | bytes, ...])
    assert_type(stops.unreachable, tuple[int, ...])
    assert_type(stops.nbytes, int)
    assert len(stops) == 2
    assert "</answer>" in stops
    assert list(stops) == list(stops.stops)
    assert {stops: 1}[pickle.loads(pickle.dumps(stops))] == 1
    assert holdback.compile("END", tie="first").tie == "first"

    emitted, match = relay(["<think>", "</answer>", b"</think>", "42</ans", "wer> more"], stops)
    assert "".join(emitted) == "<think></answer></think>42"
    assert match is not None
    assert match.stop == "</answer>"
    assert match.rest == " more"

    stream = stops.stream(min_chars=2)
    assert_type(stream.held, str)
    assert_type(stream.armed, bool)
    stream.arm()
    stream.disarm()
    assert stream.region is None
    assert_type(stream.copy(), StopStream[str])
    assert_type(stream.feed_many(["a", "b"])[0], str)
    other = pickle.loads(pickle.dumps(copy.copy(stream)))
    assert other.held == stream.held
    stream.reset()
    assert stream.match is None

    raw = StopSet([b"\xff"]).byte_stream(include_stop=True)
    assert_type(raw, StopStream[bytes])
    assert_type(raw.feed(b"a\xff")[0], bytes)

    text, found = stops.truncate("a</answer>b")
    assert_type(text, str)
    assert found is not None
    texts, _ = stops.truncate_many(["a", "b</answer>"])
    assert_type(texts, list[str])
    with contextlib.suppress(NotImplementedError):
        kept, _ = stops.truncate_many(Column())
        again, _ = stops.truncate_many(kept)
        assert len(again) == len(kept)
    emits, ended = holdback.feed_batch([stops.stream(), stops.stream()], ["a", "</answer>"])
    assert emits == ["a", ""]
    assert [position for position, _ in ended] == [1]


class Column:
    """What any Arrow package has."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        raise NotImplementedError


async def asynchronous() -> str:
    """Iterators."""

    async def source() -> AsyncIterator[str]:
        for piece in ("x", "</ans", "wer>"):
            yield piece

    stops = StopSet("</answer>")
    cut = stops.cut(["x", "</answer>"])
    assert_type(list(cut), list[str])
    assert cut.match is not None
    acut = stops.acut(source())
    out = "".join([text async for text in acut])
    assert_type(out, str)
    assert acut.match is not None
    return out


def ending() -> None:
    """Criteria and how they end."""

    def too_rude(run: Generation, token_id: int | None, emit: str) -> str | None:
        return "rude" if "damn" in emit else None

    rule: Criterion = too_rude
    criteria = StoppingCriteria(stop=["END"], eos_token_ids=[2], max_tokens=5, custom=[rule])
    run: Generation = criteria.start()
    emit, finish = run.step(1, "damn")
    assert emit == "damn"
    assert finish is not None
    assert_type(finish, Finish)
    assert finish.reason == "rude"
    block = criteria.start().step_block([1, 2], ["a", ""])
    assert_type(block, tuple[str, Finish | None])
    emits, ended = holdback.step_batch([criteria.start()], [1], ["a"])
    assert emits == ["a"]
    assert not ended

    told: ParsedFinish | AmbiguousFinish | None = Finish.parse(
        "anthropic", {"stop_reason": "stop_sequence", "stop_sequence": "END"}
    )
    assert isinstance(told, ParsedFinish)
    ambiguous = Finish.parse("openai", {"finish_reason": "stop"})
    assert isinstance(ambiguous, AmbiguousFinish)
    assert holdback.vocabularies.VOCABULARIES
    ends = StoppingCriteria(
        repetition=holdback.Repetition(cover=1000), custom=[holdback.JsonEnd(), holdback.FenceEnd()]
    )
    assert ends.start().step(1, None) == ("", None)
    assert holdback.wire.DIALECTS


def tools() -> None:
    """Facts, plans, lint, explain, trace."""
    plan: Plan = holdback.providers.plan(
        ["a", "b", "c", "d", "e"], provider="openai", model="gpt-4o"
    )
    assert_type(plan.send, list[str])
    findings: Sequence[Finding] = holdback.lint(["<|eot_id|>", "a"])
    assert findings
    explanation: Explanation = holdback.explain("the end", ["END"])
    assert explanation.match is None
    trace: Trace = holdback.trace(["a", "EN", "D"], ["END"])
    assert trace.emitted == "a"


def wire() -> None:
    """Provider streams."""
    dialect: Dialect = "ollama.generate"
    assert dialect in DIALECTS
    cutter = Cutter(dialect, ["END"])
    assert_type(cutter.feed(b'{"response":"a END","done":false}\n'), bytes)
    assert_type(cutter.finish(), bytes)
    assert_type(cutter.matches, tuple[WireMatch, ...])
    assert_type(cutter.ended, bool)
    try:
        Cutter("ollama.generate", ["END"]).feed(b"not JSON\n")
    except WireError as error:
        assert_type(error.output, bytes)


def main() -> dict[str, Any]:
    """All of it."""
    core()
    answer = asyncio.run(asynchronous())
    ending()
    tools()
    wire()
    return {"answer": answer}


if __name__ == "__main__":
    main()


def a_misspelt_option_is_found(stops: StopSet, chunks: AsyncIterator[str]) -> None:
    """Each comment is an error of its own when the checker finds nothing there."""
    with contextlib.suppress(TypeError):
        stops.cut(["a"], include_stp=True)  # type: ignore[call-arg]  # the point of it
    with contextlib.suppress(TypeError):
        stops.acut(chunks, min_char=3)  # type: ignore[call-arg]  # the point of it
    with contextlib.suppress(TypeError):
        holdback.trace(["a"], stops, atomics="a")  # type: ignore[call-arg]  # the point of it
    kept, _ = stops.truncate_many(["a", None])
    assert_type(kept, list[str | None])
