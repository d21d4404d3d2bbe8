"""Long documents: real text in chunks of 1 MB, as offline work and proxies of whole answers bring
them.
"""

from __future__ import annotations

import pytest

from benches import workloads
from benches.measure import Timer, stream_sides
from benches.peers import Peer

MEGABYTE = 1 << 20


@pytest.mark.parametrize("count", [1, 4, 16, 256, 10_000])
def test_megabyte_chunks(timer: Timer, peers: dict[str, type[Peer]], count: int) -> None:
    """The rules of the engines are left out: they rescan the answer, or do nothing else than the
    textbook buffer here.
    """
    stops = workloads.stops(timer.size(count, min(count, 64)))
    chunk = timer.size(MEGABYTE, 2000)
    text = workloads.library_text(4 * chunk)
    taking = {name: peer for name, peer in peers.items() if not name.endswith("rule")}
    timer.tell(workload=f"long documents, {count:,} stops", stops=count)
    sides = stream_sides(taking, stops, text, workloads.every(chunk))
    timer.compare(sides, per=len(text), unit="ns/byte", rounds=25)
