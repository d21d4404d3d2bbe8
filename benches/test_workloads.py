"""The workloads are what they say: otherwise every figure would be about something else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benches import workloads

TEXTS = [workloads.mixed_text, workloads.cjk_text, workloads.emoji_text, workloads.library_text]
CUTS = [workloads.every(4), workloads.like_tokens, workloads.like_lexemes]


@pytest.mark.parametrize("make", TEXTS)
@pytest.mark.parametrize("cut", CUTS)
def test_a_cut_changes_no_text_and_makes_new_objects(
    make: Callable[[int], str], cut: workloads.Cut
) -> None:
    text = make(1000)
    chunks, again = cut(text), cut(text)
    assert "".join(chunks) == text
    assert len(text) == 1000
    # CPython shares strings of one Latin-1 character.
    assert not any(a is b for a, b in zip(chunks, again, strict=True) if len(a) > 1)


@pytest.mark.parametrize("make", TEXTS)
def test_texts_hold_no_stop(make: Callable[[int], str]) -> None:
    text = make(20_000)
    assert not [stop for stop in {*workloads.stops(256), *workloads.WIDE} if stop in text]


@pytest.mark.parametrize("name", list(workloads.adversaries(100)))
def test_adversaries_hold_no_stop(name: str) -> None:
    stops, text = workloads.adversaries(5000)[name]
    assert len(text) == 5000
    assert not [stop for stop in stops if stop in text]


@pytest.mark.parametrize("count", [1, 4, 16, 256, 10_000])
def test_stop_lists_are_as_long_as_asked_and_the_same_each_time(count: int) -> None:
    stops = workloads.stops(count)
    assert len(set(stops)) == count
    assert stops == workloads.stops.__wrapped__(count)
    assert stops[: len(workloads.NATURAL)] == workloads.NATURAL[:count]
