"""`integrations.vllm` on a stand-in for vLLM's detokenizer, held against vLLM's rule in our words.

The stand-in has the attributes and the calls of the class in vLLM 0.33; a token is a letter, or a
word of a small table."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback.integrations import vllm

WORDS = ["", "a", "b", "ab", "ba.", ".", "é", "aab", "b.a"]
EOS = 99


class Base:
    """What requests need of vLLM's class, without its own search."""

    def __init__(self, stop: list[str], min_tokens: int, *, include: bool, prompt: int) -> None:
        self.stop = stop
        self.min_tokens = min_tokens
        self.include_stop_str_in_output = include
        self._last_output_text_offset = 0
        self.output_text = ""
        self.prompt = prompt  # some detokenizers keep the ids of the prompt in front
        self.token_ids = [0] * prompt

    def num_output_tokens(self) -> int:
        return len(self.token_ids) - self.prompt

    def decode_next(self, token_id: int) -> str:
        return "</s>" if token_id == EOS else WORDS[token_id]

    def update(self, new_token_ids: list[int], stop_terminated: bool) -> str | None:
        raise NotImplementedError

    get_next_output_text = update


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("vllm", "vllm.v1", "vllm.v1.engine", "vllm.v1.engine.detokenizer"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    engine: Any = sys.modules["vllm.v1.engine"]
    engine.detokenizer = sys.modules["vllm.v1.engine.detokenizer"]
    engine.detokenizer.BaseIncrementalDetokenizer = Base
    vllm.install()
    vllm.install()


def theirs(
    stop: list[str], steps: list[list[int]], min_tokens: int, *, include: bool, by_token: bool
) -> tuple[str, str | None, int]:
    """Text, stop and number of tokens: the stop that ends first among those that end in a token
    after the first `min_tokens`, of several the first in the list.
    """
    text, count = "", 0
    flat = [
        (token, by_token and step is steps[-1] and at == len(step) - 1)
        for step in steps
        for at, token in enumerate(step)
    ]
    for token, ends in flat:
        count += 1
        if ends and not include:
            break
        for character in Base.decode_next(None, token):  # type: ignore[arg-type]  # it asks for nothing of self
            text += character
            if count > min_tokens:
                for one in stop:
                    if text.endswith(one):
                        return (text if include else text[: -len(one)]), one, count
    return text, None, count


steps_of = st.lists(st.lists(st.integers(0, len(WORDS) - 1), min_size=1, max_size=4), max_size=5)
stops = st.lists(st.text("ab.é", min_size=1, max_size=3), max_size=3)


@pytest.mark.thread_unsafe  # a module of Python's is replaced
@given(
    stops,
    steps_of,
    st.integers(0, 4),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 3]),
)
def test_answers_end_as_in_vllm_and_nothing_waits_needlessly(
    stop, steps, min_tokens, include, by_token, delta, prompt
):
    if by_token:
        steps = [*steps[:-1], [*(steps[-1] if steps else []), EOS]]
    request = Base(stop, min_tokens, include=include, prompt=prompt)
    text, found = "", None
    for at, step in enumerate(steps):
        last = at == len(steps) - 1
        found = request.update(step, by_token and last)
        finished = found is not None or last
        part = request.get_next_output_text(finished, delta)
        text = text + part if delta else part
        if found is not None:
            break
        if not finished:
            read = "".join(map(request.decode_next, request.token_ids[prompt:]))
            waits = read[len(text) :]
            assert read.startswith(text)
            assert not waits or any(one.startswith(waits) or waits in one for one in stop), (
                "held text is part of a stop"
            )
    expected = theirs(stop, steps, min_tokens, include=include, by_token=by_token)
    assert (text, found, request.num_output_tokens()) == expected


@pytest.mark.thread_unsafe
def test_another_vllm_is_refused(monkeypatch):
    detokenizer = sys.modules["vllm.v1.engine.detokenizer"]
    monkeypatch.delattr(detokenizer, "BaseIncrementalDetokenizer")
    with pytest.raises(RuntimeError, match="BaseIncrementalDetokenizer"):
        vllm.install()
