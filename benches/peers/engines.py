"""The rules of serving engines, restated: what they do with decoded text, with the tokenizer taken
out.

Written from how these engines behave, so that the cost of a rule can be compared; none of their
code is here. The time that some of them spend on decoding again is not counted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .contract import Peer


class VLLM(Peer):
    """Keeps the whole answer; looks for each stop near its end; the one that ends first wins; holds
    a full window.
    """

    name = "vLLM's rule"
    rule = "str.find for each stop near the end of the whole answer; earliest end decides"

    def __init__(self, shared: Any) -> None:
        self.stops = shared
        self.window = max(map(len, shared)) - 1
        self.answer, self.sent = "", 0

    def feed(self, text: str) -> tuple[str, str | None]:
        before = len(self.answer)
        self.answer += text
        best: tuple[int, str] | None = None
        for stop in self.stops:
            at = self.answer.find(stop, max(0, before - len(stop) + 1))
            if at >= 0 and (best is None or at + len(stop) < best[0]):
                best = at + len(stop), stop
        if best:
            return self.take(best[0] - len(best[1])), best[1]
        return self.take(len(self.answer) - self.window), None

    def take(self, end: int) -> str:
        begin, self.sent = self.sent, max(self.sent, end)
        return self.answer[begin : self.sent]

    def flush(self) -> str:
        return self.take(len(self.answer))


class SGLang(Peer):
    """Joins the last tokens, as many as the longest stop could have; sends nothing while their end
    may begin a stop.
    """

    name = "SGLang's rule"
    rule = "the last tokens joined, each stop looked for with `in`; nothing is sent while a suffix begins a stop"

    def __init__(self, shared: Any) -> None:
        self.stops = shared
        self.most = max(map(len, shared)) + 1
        self.tokens: list[str] = []
        self.answer, self.sent = "", 0

    def feed(self, text: str) -> tuple[str, str | None]:
        self.tokens.append(text)
        self.answer += text
        tail = "".join(self.tokens[-self.most :])
        for stop in self.stops:
            if stop in tail:
                end = max(self.sent, self.answer.find(stop))
                out, self.sent = self.answer[self.sent : end], len(self.answer)
                return out, stop
        for stop in self.stops:
            for size in range(1, min(len(stop), len(tail)) + 1):
                if tail[-size:] == stop[:size]:
                    return "", None
        return self.flush(), None

    def flush(self) -> str:
        out, self.sent = self.answer[self.sent :], len(self.answer)
        return out


class TGI(Peer):
    """A pattern for each stop that must match at the end of a token; holds nothing, so the stop is
    sent too.
    """

    name = "TGI's rule"
    rule = (
        "one pattern for each stop, at the end of the last 200 to 300 characters; nothing is held"
    )

    def __init__(self, shared: Any) -> None:
        self.patterns, self.tail = shared, ""

    @classmethod
    def build(cls, stops: Sequence[str]) -> Any:
        return [(stop, re.compile(re.escape(stop) + "$")) for stop in stops]

    def feed(self, text: str) -> tuple[str, str | None]:
        self.tail += text
        if len(self.tail) > 300:
            self.tail = self.tail[-200:]
        for stop, pattern in self.patterns:
            if pattern.search(self.tail):
                return text, stop
        return text, None

    def flush(self) -> str:
        return ""


class LlamaCppPython(Peer):
    """Joins the bytes of all tokens every time; the stop that begins first wins; holds the longest
    possible beginning.
    """

    name = "llama-cpp-python's rule"
    rule = "all bytes joined and searched at every token; earliest start decides"
    most_stops = 256

    def __init__(self, shared: Any) -> None:
        self.stops = shared
        self.tokens: list[bytes] = []
        self.sent = 0

    @classmethod
    def build(cls, stops: Sequence[str]) -> Any:
        return [(stop, stop.encode()) for stop in stops]

    def feed(self, text: str) -> tuple[str, str | None]:
        self.tokens.append(text.encode())
        answer = b"".join(self.tokens)
        found = [(answer.index(raw), stop) for stop, raw in self.stops if raw in answer]
        if found:
            at, stop = min(found)
            return self.take(answer, at), stop
        held = 0
        for _, raw in self.stops:
            for size in range(min(len(raw), len(answer)), held, -1):
                if answer.endswith(raw[:size]):
                    held = size
                    break
        return self.take(answer, len(answer) - held), None

    def take(self, answer: bytes, end: int) -> str:
        begin, self.sent = self.sent, max(self.sent, end)
        return answer[begin : self.sent].decode("utf-8", "ignore")

    def flush(self) -> str:
        answer = b"".join(self.tokens)
        return self.take(answer, len(answer))
