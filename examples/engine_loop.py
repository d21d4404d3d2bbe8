"""An engine loop: token ids and log-probabilities in, text out, and an answer whose parts all end
at the same place.

The sampler gives (token id, log-probability); the detokenizer gives each token's bytes, which may
be half a character. What is streamed is text with the entries of its tokens: a token's entry goes
out with the last character of its text, so no entry leaves before its text is safe, and none
belongs to text after the cut.

    python examples/engine_loop.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from holdback import Finish, StoppingCriteria


@dataclass
class Delta:
    """What is sent to the client at once."""

    text: str
    logprobs: list[tuple[int, float]] = field(default_factory=list)


@dataclass
class Answer:
    """What a request gets in the end."""

    text: str = ""
    token_ids: list[int] = field(
        default_factory=list
    )  # all that were generated, the stop's tokens included: usage counts them
    logprobs: list[tuple[int, float]] = field(
        default_factory=list
    )  # those of the emitted text only
    finish: Finish | None = None


def generate(
    sampled: Iterable[tuple[int, float]],
    pieces: Sequence[bytes],
    criteria: StoppingCriteria,
    answer: Answer,
) -> Iterator[Delta]:
    """Run one sequence to its end and yield what may be sent.

    Args:
        sampled: (token id, log-probability), one a step. It is closed when the answer ends.
        pieces: the bytes of each token id.
        criteria: what ends the answer.
        answer: filled as it goes.
    """
    run = criteria.start()
    waiting: list[tuple[int, float]] = []  # entries of tokens whose text is not all out yet
    for token, logprob in sampled:
        answer.token_ids.append(token)
        waiting.append((token, logprob))
        emit, answer.finish = run.step(token, pieces[token])
        finish = answer.finish
        held = len(run.held_tokens) if finish is None else finish.tokens - (finish.kept_tokens or 0)
        ready, waiting = waiting[: len(waiting) - held], waiting[len(waiting) - held :]
        answer.text += emit
        answer.logprobs += ready
        if emit or ready:
            yield Delta(emit, ready)
        if finish is not None:
            break
    else:
        emit, answer.finish = run.cancel()  # the sampler broke off: nothing is lost
        answer.text += emit
        answer.logprobs += waiting
        if emit or waiting:
            yield Delta(emit, waiting)
    close = getattr(sampled, "close", None)
    if close is not None:
        close()


VOCABULARY = [
    b"The ",
    b"answer ",
    b"is ",
    b"\xe5\x9b",
    b"\x9b",
    b".\n",
    b"\nUs",
    b"er:",
    b" and",
    b"</s>",
]

if __name__ == "__main__":
    answer = Answer()
    tokens = iter(
        [
            (0, -0.1),
            (1, -0.2),
            (2, -0.3),
            (3, -0.9),
            (4, -0.1),
            (5, -0.4),
            (6, -1.2),
            (7, -0.1),
            (8, -0.5),
        ]
    )
    for delta in generate(
        tokens, VOCABULARY, StoppingCriteria(stop=["\n\nUser:"], eos_token_ids=9), answer
    ):
        print(repr(delta.text), delta.logprobs)
    assert answer.finish is not None
    print(
        answer.finish.to("vllm"),
        "after",
        answer.finish.tokens,
        "tokens;",
        next(tokens, None),
        "was never sampled",
    )
