"""transformers, with a tiny model that is made here.

Torch is not among what `make test-integrations` installs.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is the user's: hundreds of megabytes")
transformers = pytest.importorskip(
    "transformers", reason="torch and transformers are tested by hand"
)
tokenizers = pytest.importorskip("tokenizers", reason="comes with transformers")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from holdback import StopSet  # noqa: E402
from holdback.integrations.transformers import Stopping  # noqa: E402

STOPS = ["\n\nUser:", "###", "</answer>", "Observation:", "<|im_end|>", "。。"]


@pytest.fixture(scope="module")
def tokenizer():
    """Bytes as tokens, so that characters come in halves; 256 is the end."""
    vocabulary = {
        piece: at for at, piece in enumerate(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    }
    base = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    base.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    base.decoder = tokenizers.decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=base, eos_token="<eos>", pad_token="<pad>"
    )


@pytest.fixture(scope="module")
def gpt2(tokenizer):
    torch.set_num_threads(1)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=512, n_embd=8, n_layer=1, n_head=1
    )
    config.eos_token_id = config.bos_token_id = tokenizer.eos_token_id
    model = transformers.GPT2LMHeadModel(config).eval()
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    return model


class Scripted:
    """A model whose logits say what a script says, row by row: `generate` itself is the real one."""

    def __init__(self, gpt2, tokenizer, scripts):
        self.model = gpt2
        self.steps = 0
        end = tokenizer.eos_token_id
        ids = [[*tokenizer.encode(script), end] for script in scripts]

        def processor(input_ids, scores):
            at = self.steps
            self.steps += 1
            forced = torch.full_like(scores, float("-inf"))
            for row, script in enumerate(ids):
                forced[row, script[min(at, len(script) - 1)]] = 0.0
            return forced

        self.processor = processor
        self.rows = len(scripts)
        self.tokenizer = tokenizer

    def generate(self, **arguments):
        prompt = torch.tensor([self.tokenizer.encode("hi")] * self.rows)
        return self.model.generate(
            prompt, attention_mask=torch.ones_like(prompt), logits_processor=[self.processor], do_sample=False,
            max_new_tokens=300, **arguments,
        )  # fmt: skip


words = st.lists(st.sampled_from([*STOPS, "a", "\n", "é", "😀", "。", "Us", "#"]), max_size=6).map(
    "".join
)


@settings(max_examples=30)  # each one runs a model
@given(st.lists(words, min_size=1, max_size=3))
def test_each_row_is_what_truncate_gives(gpt2, tokenizer, scripts):
    stopping = Stopping(tokenizer, STOPS)
    model = Scripted(gpt2, tokenizer, scripts)
    pieces = list(stopping.stream(model))
    expected = [StopSet(STOPS).truncate(script) for script in scripts]
    assert stopping.texts == [text for text, _ in expected]
    assert [finish.stop for finish in stopping.finishes] == [
        match and match.stop for _, match in expected
    ]
    streamed = [""] * len(scripts)
    for piece in pieces:
        row, text = piece if len(scripts) > 1 else (0, piece)
        streamed[row] += text
    assert streamed == stopping.texts
    ends = [len((script if match is None else script[: match.end]).encode()) + (match is None) for script, (_, match) in
            zip(scripts, expected, strict=True)]  # fmt: skip
    assert model.steps == max(ends), (
        "generation ended with the token that completed the last row's stop"
    )


def test_without_a_streamer(gpt2, tokenizer):
    stopping = Stopping(tokenizer, STOPS)
    out = Scripted(gpt2, tokenizer, ["Paris.###more"]).generate(stopping_criteria=[stopping])
    assert stopping.texts == ["Paris."]
    assert stopping.finishes[0].reason == "stop_string"
    assert out.shape[1] - 2 == stopping.finishes[0].tokens == 9


def test_a_reader_that_leaves_ends_the_generation(gpt2, tokenizer):
    stopping = Stopping(tokenizer, STOPS)
    model = Scripted(gpt2, tokenizer, ["x" * 250])
    stream = stopping.stream(model)
    assert next(stream) == "x"
    stream.close()
    assert model.steps < 250


def test_an_error_comes_behind_the_text(gpt2, tokenizer):
    stopping = Stopping(tokenizer, STOPS)
    model = Scripted(gpt2, tokenizer, ["abc"])
    real = model.processor

    def failing(input_ids, scores):
        if model.steps == 2:
            raise RuntimeError("out of memory")
        return real(input_ids, scores)

    model.processor = failing
    stream = stopping.stream(model)
    assert [next(stream), next(stream)] == ["a", "b"]
    with pytest.raises(RuntimeError, match="out of memory"):
        next(stream)


def test_wrong_use_is_told(gpt2, tokenizer):
    with pytest.raises(RuntimeError, match="stopping_criteria"):
        Scripted(gpt2, tokenizer, ["abc"]).generate(streamer=Stopping(tokenizer, STOPS))


@pytest.mark.parametrize("scripts", [["abc"], ["abc", "d###"], ["Paris.###more"]])
def test_another_call_starts_afresh(gpt2, tokenizer, scripts):
    stopping = Stopping(tokenizer, STOPS)
    Scripted(gpt2, tokenizer, ["abc###"]).generate(stopping_criteria=[stopping])
    Scripted(gpt2, tokenizer, scripts).generate(stopping_criteria=[stopping])
    assert stopping.texts == [script.partition("###")[0] for script in scripts]
    assert "".join(stopping.stream(Scripted(gpt2, tokenizer, ["xy###z"]))) == "xy"
