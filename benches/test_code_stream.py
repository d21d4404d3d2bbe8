"""Code stream: Python sources in chunks of one lexeme each. Line ends and angle brackets, where
stops begin, are frequent here.
"""

from __future__ import annotations

import pytest

from benches import workloads
from benches.measure import Timer, stream_sides
from benches.peers import Peer


@pytest.mark.parametrize("count", [4, 256])
def test_the_lexemes_of_a_file(timer: Timer, peers: dict[str, type[Peer]], count: int) -> None:
    stops = workloads.stops(count)
    text = workloads.library_text(timer.size(8000, 400))
    chunks = workloads.like_lexemes(text)
    timer.tell(workload=f"code stream, {count} stops", stops=count)
    sides = stream_sides(peers, stops, text, workloads.like_lexemes)
    timer.compare(sides, per=len(chunks), unit="ns/chunk", rounds=150)
