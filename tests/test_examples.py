"""The recipes in examples/: each one runs as it stands, and its functions keep their promises on
any input.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback import StoppingCriteria, StopSet

EXAMPLES = Path(__file__).parent.parent / "examples"
RECIPES = [
    "engine_loop",
    "speculative_block",
    "llama_cpp_python",
    "vllm_tokens_only",
    "beam_search",
]
STOPS = ["\n\nUser:", "###", "</answer>", "Observation:", "<|im_end|>", "。。"]
PIECES = [
    "a",
    " b",
    "\n",
    "\nUs",
    "er",
    ":",
    "#",
    "##x",
    "</",
    "answer",
    ">",
    "Obs",
    "ervation: ",
    "。",
    "<|im_",
    "end|>",
    "é",
]

tokens = st.lists(st.integers(0, len(PIECES) - 1), max_size=24)


def recipe(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


engine_loop, speculative_block, llama_cpp_python, vllm_tokens_only, beam_search = map(
    recipe, RECIPES
)


@pytest.mark.thread_unsafe
@pytest.mark.parametrize("name", RECIPES)
def test_it_runs_as_it_stands(name):
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"User:" in done.stdout or b"Q:" in done.stdout or name == "beam_search"


def whole(ids) -> tuple[str, str | None]:
    text, match = StopSet(STOPS).truncate("".join(PIECES[token] for token in ids))
    return text, match and match.stop


# --- engine loop
# -----------------------------------------------------------------------------------------------------------


@given(tokens)
def test_the_engine_loop_sends_each_entry_with_its_text_and_none_behind_the_cut(ids):
    answer = engine_loop.Answer()
    sampled = ((token, -float(at)) for at, token in enumerate(ids))
    pieces = [piece.encode() for piece in PIECES]
    deltas = list(engine_loop.generate(sampled, pieces, StoppingCriteria(stop=STOPS), answer))
    text, stop = whole(ids)
    assert (answer.text, answer.finish.stop) == (text, stop)
    assert "".join(delta.text for delta in deltas) == text
    assert [entry for delta in deltas for entry in delta.logprobs] == answer.logprobs
    ends, entries = 0, []
    for at, token in enumerate(ids):
        ends += len(PIECES[token])
        if ends <= len(text):
            entries.append((token, -float(at)))
    assert answer.logprobs == entries
    assert len(answer.token_ids) == answer.finish.tokens
    assert next(sampled, None) is None, "the sampler is closed"


@given(st.lists(st.binary(min_size=1, max_size=3), max_size=12))
def test_no_entry_goes_out_before_its_text_whatever_the_bytes(pieces):
    answer = engine_loop.Answer()
    sampled = [(at, 0.0) for at in range(len(pieces))]
    for _ in engine_loop.generate(iter(sampled), pieces, StoppingCriteria(stop=["XYZ"]), answer):
        sent = len(answer.logprobs)
        assert len(b"".join(pieces[:sent]).decode(errors="ignore")) <= len(answer.text)
    assert answer.text == b"".join(pieces).decode(errors="replace")
    assert answer.logprobs == sampled


# --- speculative block
# -------------------------------------------------------------------------------------------------------


@given(tokens, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8))
def test_a_speculative_answer_does_not_depend_on_the_draft(truth, luck):
    end = len(PIECES)
    truth = [*truth, end]
    calls = []

    def propose(so_far):
        right, wrong = luck[len(calls) % len(luck)]
        calls.append(so_far)
        return truth[len(so_far) : len(so_far) + right] + [0] * wrong

    def verify(so_far, guesses):
        rest = truth[len(so_far) :]
        right = 0
        while right < len(guesses) and right < len(rest) - 1 and guesses[right] == rest[right]:
            right += 1
        return rest[: right + 1]

    criteria = StoppingCriteria(stop=STOPS, eos_token_ids=end)
    text, ids, finish = speculative_block.generate(propose, verify, [*PIECES, "</s>"], criteria)
    run, one_by_one = criteria.start(), ""
    for token in truth:
        emit, expected = run.step(token, [*PIECES, "</s>"][token])
        one_by_one += emit
        if expected is not None:
            break
    assert (text, finish.reason, finish.stop, finish.tokens) == (
        one_by_one,
        expected.reason,
        expected.stop,
        expected.tokens,
    )
    assert ids == truth[: finish.tokens]


# --- llama-cpp-python
# ----------------------------------------------------------------------------------------------------------


def chat(pieces):
    """Streams like ``create_chat_completion(stream=True)``."""
    yield {"choices": [{"index": 0, "delta": {"role": "assistant"}, "finish_reason": None}]}
    for piece in pieces:
        yield {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}


@given(tokens, st.sampled_from(["completion", "chat"]))
def test_llama_chunks_are_cut_and_the_model_is_closed(ids, kind):
    make = llama_cpp_python.pretend if kind == "completion" else chat
    pieces = [PIECES[token] for token in ids]
    model = make(pieces)
    out = list(llama_cpp_python.cut_stream(model, STOPS))
    text, stop = whole(ids)
    assert "".join(llama_cpp_python._text(chunk["choices"][0]) or "" for chunk in out) == text
    last = out[-1]["choices"][0]
    assert (last["finish_reason"], last.get("stop_reason")) == (
        ("length", None) if stop is None else ("stop", stop)
    )
    assert next(model, None) is None


def test_llama_chunks_with_nothing_to_cut_are_the_very_objects():
    chunks = list(llama_cpp_python.pretend(["plain", " text"]))
    assert [id(chunk) for chunk in llama_cpp_python.cut_stream(iter(chunks), STOPS)] == [
        id(chunk) for chunk in chunks
    ]


def test_an_error_of_the_llama_model_is_passed_on_and_a_client_that_leaves_closes_it():
    def failing():
        yield from llama_cpp_python.pretend(["a", "\n"])
        raise RuntimeError("out of memory")

    out = llama_cpp_python.cut_stream(failing(), STOPS)
    with pytest.raises(RuntimeError, match="out of memory"):
        list(out)
    model = llama_cpp_python.pretend(["a", "b", "c"])
    out = llama_cpp_python.cut_stream(model, STOPS)
    next(out)
    out.close()
    assert next(model, None) is None


# --- vLLM, tokens only
# ---------------------------------------------------------------------------------------------------------


@given(st.tuples(tokens, tokens), st.data())
def test_the_coordinator_ends_each_choice_by_itself(choices, data):
    """Two choices, interleaved at random, in events of a few tokens."""
    left = [list(ids) for ids in choices]
    events = []
    while any(left):
        at = data.draw(st.sampled_from([at for at in (0, 1) if left[at]]))
        size = data.draw(st.integers(1, 4))
        piece, left[at] = left[at][:size], left[at][size:]
        events.append(
            {"index": at, "token_ids": piece, "finish_reason": None if left[at] else "length"}
        )
    read = []

    async def lines():
        for event in events:
            read.append(event)
            yield "data: " + json.dumps({"choices": [event]})
            yield ""
        yield "data: [DONE]"

    async def collect():
        texts, ends = ["", ""], [None, None]
        criteria = StoppingCriteria(stop=STOPS)
        async for at, text, finish in vllm_tokens_only.answers(
            lines(), criteria, lambda t: PIECES[t].encode(), choices=2
        ):
            assert ends[at] is None
            texts[at] += text
            ends[at] = finish
        return texts, ends

    texts, ends = asyncio.run(collect())
    expected = [whole(ids) for ids in choices]
    assert texts == [text for text, _ in expected]
    for (_, stop), finish, ids in zip(expected, ends, choices, strict=True):
        assert (finish and finish.stop) == stop
        if finish is None:
            assert not ids
    if all(stop is not None for _, stop in expected):
        after = max(
            max(at for at, event in enumerate(read) if event["index"] == choice)
            for choice in (0, 1)
        )
        assert after == len(read) - 1, (
            "nothing is read behind the event in which the last choice ended"
        )


# --- beam search
# ---------------------------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 16), st.floats(-5, -0.1)), min_size=1, max_size=3),
        min_size=1,
        max_size=6,
    )
)
def test_every_beam_is_what_its_tokens_say(steps):
    def expand(so_far):
        return steps[min(len(so_far), len(steps) - 1)]

    criteria = StoppingCriteria(stop=STOPS, max_tokens=8)
    beams = beam_search.search(expand, PIECES, criteria, width=3)
    assert 1 <= len(beams) <= 3
    for beam in beams:
        text, stop = whole(beam.tokens)
        assert (beam.text, beam.finish.stop) == (text, stop)
        assert beam.finish.tokens == len(beam.tokens)
