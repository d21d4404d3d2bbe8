"""Peers at the same job, each behind one adapter, each the way its own users would use it. What is
not installed is left out.

A `Peer` is a class: `build` makes what streams may share (once for a stop list), an instance is one
stream with `feed` and `flush`. `feed` gives (text that may be sent, stop or None); after a stop the
stream is over. Adding a peer is adding a class to one of the modules here, and to `PEERS`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache

from .contract import Peer

# The order of the tables. Module, then classes; a module that cannot be imported has nothing to
# show.
PEERS = {
    "plain": ["Textbook", "Alternation"],
    "engines": ["VLLM", "SGLang", "TGI", "LlamaCppPython"],
    "pyahocorasick": ["PyAhoCorasick"],
    "ahocorasick_rs": ["AhoCorasickRs"],
    "daachorse": ["Daachorse"],
    "hyperscan": ["Hyperscan"],
    "pyperscan": ["Pyperscan"],
}


def find() -> Iterator[type[Peer]]:
    """Every peer whose library is here."""
    for module, names in PEERS.items():
        try:
            found = importlib.import_module(f".{module}", __name__)
        except ImportError:
            continue
        yield from (getattr(found, name) for name in names)


@cache
def installed() -> dict[str, type[Peer]]:
    """Peers by their names in the tables."""
    return {peer.name: peer for peer in find()}


__all__ = ["PEERS", "Peer", "installed"]
