"""The GIL experiment (benches/gil.py), recorded with the other results."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from benches import gil
from benches.measure import Timer

pytestmark = pytest.mark.thread_unsafe


def test_when_to_release_it(timer: Timer) -> None:
    sizes, seconds = (gil.SIZES, 0.2) if timer.real else ([8, 32 << 10], 0.002)
    found = timer.benchmark.pedantic(
        lambda: list(gil.experiment(sizes, seconds)), rounds=1, iterations=1
    )
    assert {figures.size for figures in found} == set(sizes)
    timer.tell(
        workload="GIL kept or released, by size", figures=[asdict(figures) for figures in found]
    )
