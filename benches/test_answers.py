"""Answers: how many plain cases of tests/cases each peer gets right, whole chunks and single
characters. Speed is worth that much.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benches.measure import Timer, answer
from benches.peers import Peer

CASES = Path(__file__).parent.parent / "tests" / "cases"


def plain(value: Any) -> bool:
    """Text as such: no bytes, no halves of characters, no calls; and nothing empty, which most
    peers do not define.
    """
    return isinstance(value, str) and bool(value)


def cases() -> Iterator[tuple[list[str], list[str], tuple[str, str | None]]]:
    """Stops, chunks, and what has to come out, of the cases without options and errors."""
    for name in ("bytes", "peers", "probes", "reports", "scopes"):  # literals
        for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines():
            case = json.loads(line)
            stops, chunks, expect = case["stops"], case["chunks"], case["expect"]
            if (
                not case["options"]
                and "error" not in expect
                and stops
                and all(map(plain, [*stops, *chunks]))
            ):
                wanted = expect["emitted"], expect["stop"]
                yield stops, chunks, wanted
                yield stops, list("".join(chunks)), wanted


def test_how_many_are_right(timer: Timer, peers: dict[str, type[Peer]]) -> None:
    known = list(cases())
    assert len(known) > 100

    def gives(peer: type[Peer], stops: list[str], chunks: list[str]) -> object:
        try:
            return answer(peer, stops, chunks)
        except (
            Exception
        ) as error:  # some libraries refuse some lists, each with an error of its own
            return error

    def right(peer: type[Peer]) -> int:
        return sum(gives(peer, stops, chunks) == wanted for stops, chunks, wanted in known)

    assert timer.benchmark.pedantic(
        right, args=(peers["holdback"],), rounds=1, iterations=1
    ) == len(known)
    found: dict[str, int] = {}
    for name, peer in peers.items():
        if name == "floor":
            ascii_only = [case for case in known if all(map(str.isascii, case[0]))]
            assert [answer(peer, *case[:2]) for case in ascii_only] == [
                case[2] for case in ascii_only
            ]
        else:
            found[name] = right(peer)
    timer.tell(workload="answers on plain cases", right=found, cases=len(known))
