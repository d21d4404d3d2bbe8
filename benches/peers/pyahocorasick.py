"""pyahocorasick: an automaton in C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ahocorasick

from .contract import Found, Window, window


class PyAhoCorasick(Window):
    """`iter` over tail and chunk, as far as the first hit: the stop that ends first."""

    name = "pyahocorasick"
    rule = "Automaton.iter over tail and chunk; earliest end decides"

    @classmethod
    def build(cls, stops: Sequence[str]) -> Any:
        automaton = ahocorasick.Automaton()
        for stop in stops:
            automaton.add_word(stop, stop)
        automaton.make_automaton()
        find = automaton.iter

        def search(text: str) -> Found | None:
            for last, stop in find(text):
                return last + 1 - len(stop), stop
            return None

        return search, window(stops)
