"""The coordinator of a ``vllm serve --tokens-only`` server: stop strings, where only token ids come
out.

Such a server has no detokenizer, so it refuses ``stop`` and leaves stop strings to whoever turns
its tokens into text. The coordinator sends token ids to ``/inference/v1/generate``, detokenizes
what streams back, judges each token, and closes the response at the end, which aborts the request
in the engine. End tokens stay with the engine (``stop_token_ids``), which can act on them within
the step.

    python examples/vllm_tokens_only.py        (reads a recorded stream; no server needed)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any

from holdback import Finish, StoppingCriteria

Detokenize = Callable[[int], bytes]  # the bytes of one token


def request(prompt_ids: list[int], criteria: StoppingCriteria, max_tokens: int) -> dict[str, Any]:
    """The body to send: what the engine can do itself, and no stop strings."""
    ending = sorted({*criteria.eos_token_ids, *criteria.stop_token_ids})  # type: ignore[misc]  # sets, once compiled
    sampling = {"max_tokens": max_tokens, "stop_token_ids": ending}
    return {"token_ids": prompt_ids, "sampling_params": sampling, "stream": True}


async def answers(
    lines: AsyncIterable[str], criteria: StoppingCriteria, detokenize: Detokenize, choices: int = 1
) -> AsyncIterator[tuple[int, str, Finish | None]]:
    """(choice, text, finish) of each step; ends when all choices have ended.

    Args:
        lines: the lines of the response's event stream, as ``httpx.Response.aiter_lines`` gives them.
        criteria: what ends each choice.
        detokenize: the bytes of a token id.
        choices: how many sequences were asked for.
    """
    runs = [criteria.start() for _ in range(choices)]
    async for line in lines:
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            continue
        for choice in json.loads(data)["choices"]:
            run = runs[choice["index"]]
            if run.finish is not None:  # the engine goes on with a choice until all have ended
                continue
            tokens = choice.get("token_ids") or []
            emit, finish = run.step_block(tokens, map(detokenize, tokens))
            if finish is None and choice.get("finish_reason") is not None:
                rest, finish = run.end("length" if choice["finish_reason"] == "length" else "eos")
                emit += rest
            yield choice["index"], emit, finish
        if all(run.finish is not None for run in runs):
            return


WORDS = {1: b"Red", 2: b" or", 3: b" blue", 4: b"?\n", 5: b"\nQ", 6: b":", 9: b"</s>"}
RECORDED = [[1], [2, 3], [4, 5], [6, 2], [2, 2]]


async def main() -> None:
    """Cut a recorded stream."""

    async def recorded() -> AsyncIterator[str]:
        for tokens in RECORDED:
            yield "data: " + json.dumps(
                {"choices": [{"index": 0, "token_ids": tokens, "finish_reason": None}]}
            )

    lines = recorded()
    criteria = StoppingCriteria(stop=["\n\nQ:"], eos_token_ids=9)
    print(request([7, 7], criteria, max_tokens=64))
    async for index, text, finish in answers(lines, criteria, WORDS.__getitem__):
        print(index, repr(text), finish and (finish.reason, finish.stop, finish.tokens))
    await lines.aclose()  # type: ignore[attr-defined]  # of an HTTP response: leave its `async with` block


if __name__ == "__main__":
    asyncio.run(main())
