"""The decisions of transformers' own criteria on the same tokens: a run ends at the very token at
which they say "done".

Needs torch and transformers; runs where they are installed. The vocabulary is a byte-level one
trained here on the bundled samples, so tokens end inside words, inside stops and inside characters.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdback import StoppingCriteria
from holdback._holdback_rate import samples

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")

EOS = "<|end|>"
STOPS = ["END", "\n\n", "</answer>", "。", "the ", "e h", "self._", "蜂箱", "```", "ing", "\n- "]


def byte_of_letters() -> dict[str, int]:
    """The letter that byte-level vocabularies write for each byte: printable ones as they are, the
    others from 256 on.
    """
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + at): byte for at, byte in enumerate(others)
    }


@pytest.fixture(scope="module")
def tokenizer():
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=[EOS],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator(samples().values(), trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=model, eos_token=EOS)


@pytest.fixture(scope="module")
def piece_of(tokenizer):
    letters = byte_of_letters()
    return {
        number: EOS.encode() if letter == EOS else bytes(letters[one] for one in letter)
        for letter, number in tokenizer.get_vocab().items()
    }


def first_done(criteria, ids: list[int]) -> int | None:
    """How many tokens there are when transformers says that the row is done, asked after each token
    as `generate` does.
    """
    for count in range(1, len(ids) + 1):
        if bool(criteria(torch.tensor([ids[:count]]), None)[0]):
            return count
    return None


@settings(max_examples=60)
@given(data=st.data())
def test_a_run_ends_at_the_same_token(tokenizer, piece_of, data):
    text = data.draw(st.sampled_from(sorted(samples().values())))
    start = data.draw(st.integers(0, len(text) - 60))
    ids = tokenizer.encode(text[start : start + 60], add_special_tokens=False)
    if data.draw(st.booleans()):
        ids.insert(data.draw(st.integers(0, len(ids))), tokenizer.eos_token_id)
    stops = data.draw(st.lists(st.sampled_from(STOPS), min_size=1, max_size=3, unique=True))
    most = data.draw(st.integers(1, 40))
    theirs = transformers.StoppingCriteriaList(
        [
            transformers.StopStringCriteria(tokenizer, stops),
            transformers.EosTokenCriteria(tokenizer.eos_token_id),
            transformers.MaxLengthCriteria(most),
        ]
    )
    run = StoppingCriteria(
        stop=stops, eos_token_ids=tokenizer.eos_token_id, max_tokens=most
    ).start()
    emitted, finish = run.step_block(ids, [piece_of[number] for number in ids])
    assert (finish.tokens if finish else None) == first_done(theirs, ids)
    if (
        finish is not None and finish.reason == "stop_string"
    ):  # and we cut at the character, where they keep the token
        assert finish.stop not in emitted
