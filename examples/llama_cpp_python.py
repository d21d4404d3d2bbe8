"""llama-cpp-python: any number of stops on its streams, cut exactly, and the model stopped at once.

Its own ``stop`` detokenizes everything again for each token, lets the first listed stop win and
gives other results when it streams than when it does not. Here the model gets no stops; what it
streams is cut by ``cut_stream``. Closing the generator ends the model's loop.

    stream = llm.create_completion(prompt, stream=True, max_tokens=512)     # or create_chat_completion
    for chunk in cut_stream(stream, ["\\n\\nUser:", "###", ...]):
        print(chunk["choices"][0]["text"], end="")

    python examples/llama_cpp_python.py        (a stand-in for the model; no weights needed)
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Iterable, Iterator
from typing import Any

import holdback


def cut_stream(chunks: Iterable[dict[str, Any]], stops: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The chunks up to the first stop; the last one says which, under ``stop_reason``.

    A chunk with nothing to hold or cut is passed on as the very object that came.
    """
    stream = holdback.compile(stops).stream()
    last: dict[str, Any] | None = None
    try:
        for chunk in chunks:
            choice = chunk["choices"][0]
            text = _text(choice)
            emit, match = stream.feed(text or "")
            last = chunk
            if match is not None:
                yield _with(chunk, emit, "stop", match.stop)
                return
            if choice.get("finish_reason") is not None:
                rest = stream.flush()
                yield (
                    chunk
                    if not rest and emit == (text or "")
                    else _with(chunk, emit + rest, choice["finish_reason"], None)
                )
            elif emit or not text:
                yield chunk if emit == (text or "") else _with(chunk, emit, None, None)
        rest = stream.flush()  # empty, unless the model broke off
        if rest and last is not None:
            yield _with(last, rest, None, None)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


def _text(choice: dict[str, Any]) -> str | None:
    """A completion's text, or a chat delta's content (the first chat chunk has a role and no
    content).
    """
    text: str | None = choice["delta"].get("content") if "delta" in choice else choice["text"]
    return text


def _with(chunk: dict[str, Any], text: str, finish: str | None, stop: str | None) -> dict[str, Any]:
    made = copy.deepcopy(chunk)
    choice = made["choices"][0]
    if "delta" in choice:
        choice["delta"] = {"content": text}
    else:
        choice["text"] = text
    choice["finish_reason"] = finish
    if stop is not None:
        choice["stop_reason"] = stop
    return made


def pretend(pieces: Iterable[str]) -> Generator[dict[str, Any], None, None]:
    """Streams like ``Llama.create_completion(..., stream=True)``."""
    for piece in pieces:
        yield {
            "object": "text_completion",
            "choices": [{"index": 0, "text": piece, "logprobs": None, "finish_reason": None}],
        }
    yield {
        "object": "text_completion",
        "choices": [{"index": 0, "text": "", "logprobs": None, "finish_reason": "length"}],
    }


if __name__ == "__main__":
    for chunk in cut_stream(pretend(["Sure", ".\n", "\nUs", "er", ": next"]), ["\n\nUser:", "###"]):
        print(chunk["choices"][0])
