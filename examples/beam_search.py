"""Beam search with stop strings: each hypothesis has a run of its own, and a fork costs as much as
copying a few numbers.

A beam that meets a stop is finished with the text in front of it. The text of a beam never has to
be built again from its tokens, and two beams that share a prefix share the work on it.

    python examples/beam_search.py
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdback import Finish, Generation, StoppingCriteria

Expand = Callable[
    [Sequence[int]], Sequence[tuple[int, float]]
]  # tokens so far -> candidates with log-probabilities


@dataclass
class Beam:
    """A hypothesis."""

    run: Generation
    score: float = 0.0
    tokens: tuple[int, ...] = ()
    text: str = ""
    finish: Finish | None = None

    def extended(self, token: int, logprob: float, piece: str) -> Beam:
        """This beam with one more token.

        The run is copied, so the beam itself may be extended again.
        """
        run = self.run.copy()
        emit, finish = run.step(token, piece)
        return Beam(run, self.score + logprob, (*self.tokens, token), self.text + emit, finish)


def search(
    expand: Expand, pieces: Sequence[str], criteria: StoppingCriteria, width: int
) -> list[Beam]:
    """The finished hypotheses, best first by score for each token."""
    live, finished = [Beam(criteria.start())], list[Beam]()
    while live and len(finished) < width:
        grown = [
            beam.extended(token, logprob, pieces[token])
            for beam in live
            for token, logprob in expand(beam.tokens)
        ]
        best = heapq.nlargest(width, grown, key=lambda beam: beam.score)
        finished += [beam for beam in best if beam.finish is not None]
        live = [beam for beam in best if beam.finish is None]
    return sorted(finished, key=lambda beam: beam.score / len(beam.tokens), reverse=True)[:width]


PIECES = ["4", "5", ".", "\n", "\nQ:", "</s>"]


def model(tokens: Sequence[int]) -> Sequence[tuple[int, float]]:
    """Answers a digit, then a full stop, then begins the next question."""
    return [
        [(0, -0.4), (1, -1.1)],
        [(2, -0.2), (3, -1.8)],
        [(3, -0.3), (5, -1.4)],
        [(4, -0.1), (5, -2.3)],
    ][min(len(tokens), 3)]


if __name__ == "__main__":
    for beam in search(
        model, PIECES, StoppingCriteria(stop=["\n\nQ:"], eos_token_ids=5, max_tokens=8), width=3
    ):
        assert beam.finish is not None
        print(f"{beam.score:.1f} {beam.text!r} {beam.finish.reason}")
