"""Speculative decoding: a block of accepted tokens at once, and a stop somewhere inside it.

A draft proposes a block, the model accepts a prefix of it and adds a token of its own.
``step_block`` judges what was accepted and says how many tokens of the block count; the cache is
rolled back to there. Since it gives what ``step`` would give token by token, the answer does not
depend on how lucky the draft was.

To look ahead without deciding, ``run.copy()`` takes constant time: here it tells the draft where
its own proposal would end, so that no time is spent on verifying tokens behind a stop.

    python examples/speculative_block.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdback import Finish, StoppingCriteria

Propose = Callable[[Sequence[int]], Sequence[int]]  # tokens so far -> a block of guesses
Verify = Callable[
    [Sequence[int], Sequence[int]], Sequence[int]
]  # tokens so far, guesses -> what is accepted, and one more token


def generate(
    propose: Propose, verify: Verify, pieces: Sequence[str], criteria: StoppingCriteria
) -> tuple[str, list[int], Finish]:
    """Text, the token ids that count, and the finish."""
    run = criteria.start()
    text, tokens = "", list[int]()
    while True:
        guesses = list(propose(tokens))
        _, would_end = run.copy().step_block(guesses, [pieces[guess] for guess in guesses])
        if would_end is not None:
            guesses = guesses[: would_end.block_tokens]
        accepted = list(verify(tokens, guesses))
        emit, finish = run.step_block(accepted, [pieces[token] for token in accepted])
        text += emit
        if finish is not None:
            return text, tokens + accepted[: finish.block_tokens], finish
        tokens += accepted


PIECES = ["It", " is", " 42", ".", "\n", "\nUser", ":", " Why", "?", "!"]
TRUTH = [0, 1, 2, 3, 4, 5, 6, 7, 8]


def perfect(tokens: Sequence[int]) -> Sequence[int]:
    """A draft that guesses four right."""
    return TRUTH[len(tokens) : len(tokens) + 4]


def check(tokens: Sequence[int], guesses: Sequence[int]) -> Sequence[int]:
    """Accepts the guesses that are right, and adds the token that comes next."""
    right = 0
    while right < len(guesses) and guesses[right] == TRUTH[len(tokens) + right]:
        right += 1
    return TRUTH[len(tokens) : len(tokens) + right + 1]


if __name__ == "__main__":
    text, tokens, finish = generate(
        perfect, check, PIECES, StoppingCriteria(stop=["\n\nUser:"], max_tokens=32)
    )
    print(repr(text), tokens, finish.reason, repr(finish.stop))
