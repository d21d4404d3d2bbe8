"""What the suites share: the timer, the peers, and the refusal to time a debug build."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from benches import floor
from benches.measure import Timer
from benches.peers import Peer, installed
from benches.peers.ours import Floor, Holdback
from holdback import _core

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("benchmark_enable", False) and _core.__profile__ != "release":
        pytest.exit(
            f"holdback._core is a {_core.__profile__} build: its numbers mean nothing. Run `make build`.",
            2,
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.benchmark(timer=time.thread_time, disable_gc=True))


@pytest.fixture
def timer(benchmark: Any) -> Timer:
    """Where benchmarks are disabled, as in the ordinary test run, everything runs once on little
    text.
    """
    return Timer(benchmark)


@pytest.fixture(scope="session")
def c_floor() -> type[Peer]:
    """The floor; what needs it is skipped where it cannot be built."""
    try:
        floor.load()
    except floor.NoFloor as reason:
        pytest.skip(f"no floor: {reason}")
    return Floor


@pytest.fixture(scope="session")
def peers() -> dict[str, type[Peer]]:
    """Holdback, the floor if there is one, and all that is installed.

    `HOLDBACK_BENCH_PEERS=none` leaves the last out.
    """
    found: dict[str, type[Peer]] = {Holdback.name: Holdback}
    try:
        floor.load()
        found[Floor.name] = Floor
    except floor.NoFloor:
        pass  # test_floor.py says why
    if os.environ.get("HOLDBACK_BENCH_PEERS") != "none":
        found |= installed()
    return found
