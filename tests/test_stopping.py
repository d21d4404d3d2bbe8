"""`integrations.transformers.Stopping` without torch: rows of ids, letters for tokens.

The real `generate` is in tests/integrations."""

from __future__ import annotations

import pytest

from holdback.integrations.transformers import Stopping


class Ids:
    """As much of a tensor as a criterion is given."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows = rows

    def tolist(self) -> list[list[int]]:
        return self.rows

    def new_tensor(self, values: list[bool]) -> Ids:
        return Ids([values])  # type: ignore[list-item]  # one row of answers

    def bool(self) -> list[bool]:
        return self.rows[0]  # type: ignore[return-value]


class Letters:
    """A tokenizer: each letter is a token, `$` the end."""

    eos_token_id = ord("$")

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return "".join(map(chr, ids)).replace("$", "")


def ids(*rows: str) -> Ids:
    return Ids([list(map(ord, row)) for row in rows])


def generate(stopping: Stopping, prompts: list[str], scripts: list[str], longest: int = 99) -> int:
    """What `generate` does: a token for each row, then the question; the number of steps."""
    rows = list(prompts)
    done = [False] * len(rows)
    stopping.put(ids(*rows))
    for at in range(min(longest, max(map(len, scripts)))):
        rows = [
            row + ("_" if over or at >= len(script) else script[at])
            for row, script, over in zip(rows, scripts, done, strict=True)
        ]
        done = stopping(ids(*rows))
        if all(done):
            stopping.end()
            return at + 1
    stopping.end()
    return longest


# The prompt, what the model writes, and after how many tokens `generate` ends it by itself.
FIRST = [
    (["Q: "], ["answer END more"], 99),
    (["Q: "], ["answer"], 3),
    (["a", "b"], ["x END", "yEND"], 99),
]
SECOND = [
    (["Q: "], ["other END"], 99),
    (["Q: answer END Q: "], ["next END"], 99),
    (["Q: ans and a longer question"], ["next END"], 99),
    (["Another prompt"], ["text END"], 99),
    (["p", "q", "r"], ["1 END", "2 END", "END"], 99),
]


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("streamed", [True, False])
def test_another_call_starts_afresh(first, second, streamed):
    stopping = Stopping(Letters(), ["END"])
    if not streamed:
        stopping.put = stopping.end = lambda *_: None  # type: ignore[method-assign]  # no streamer
    generate(stopping, *first)
    prompts, scripts, longest = second
    steps = generate(stopping, prompts, scripts, longest)
    expected = [script.partition("END")[0] for script in scripts]
    assert stopping.texts == expected
    assert [finish.reason for finish in stopping.finishes] == ["stop_string"] * len(scripts)
    assert steps == max(script.index("END") + 3 for script in scripts)


def test_rows_that_change_places_are_beams():
    stopping = Stopping(Letters(), ["END"])
    stopping(ids("Q a", "Q b"))
    with pytest.raises(ValueError, match="beam search"):
        stopping(ids("Q bc", "Q ad"))
