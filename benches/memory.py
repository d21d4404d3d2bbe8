"""Memory, measured in a process of its own: a heap that others have used tells nothing.

    python -m benches.memory stream NAME          bytes of one stream, made and after 20 tokens
    python -m benches.memory set NAME COUNT       bytes of a compiled list

NAME is holdback, floor, or a peer's name in the tables. Prints JSON. Resident memory is read from
/proc."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

from benches import floor, workloads
from benches.peers import Peer, installed
from benches.peers.ours import Floor, Holdback

STATM = Path("/proc/self/statm")
STREAMS = 50_000


def resident() -> int:
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def named(name: str) -> type[Peer]:
    known: dict[str, type[Peer]] = {Holdback.name: Holdback, Floor.name: Floor, **installed()}
    return known[name]


def of_streams(peer: type[Peer]) -> dict[str, float]:
    """Many streams of one set, so that a page more or less does not matter."""
    shared = peer.build(workloads.stops(4))
    tokens = workloads.every(4)(workloads.mixed_text(80))
    peer(shared).feed("warm")
    streams: list[object] = [None] * STREAMS
    gc.collect()
    before = resident()
    for at in range(STREAMS):
        streams[at] = peer(shared)
    made = resident()
    for stream in streams:
        for token in tokens:
            stream.feed(token)  # type: ignore[attr-defined]  # ours or a peer's
    gc.collect()
    return {
        "made": (made - before) / STREAMS,
        "fed": (resident() - before) / STREAMS,
        "getsizeof": sys.getsizeof(streams[0]),
    }


def of_set(peer: type[Peer], count: int) -> dict[str, float]:
    """What stays when a long list has been compiled, and the most that was needed meanwhile."""
    stops = workloads.stops(count)
    kept = [peer.build(stops[:2])]
    gc.collect()
    before = resident()
    kept.append(peer.build(stops))
    gc.collect()
    return {"bytes": resident() - before}


def apart(*arguments: str) -> dict[str, float]:
    """This script in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "benches.memory", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    what, name, *count = sys.argv[1:]
    if name == Floor.name:
        floor.load()
    print(
        json.dumps(
            of_streams(named(name)) if what == "stream" else of_set(named(name), int(count[0]))
        )
    )


if __name__ == "__main__":
    main()
