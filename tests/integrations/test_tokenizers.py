"""`tokenizers`, with a byte-level vocabulary that is made here: which tokens stay when a stop ends
a generation, and the loop that docs/criteria.md shows.
"""

from __future__ import annotations

import pytest

tokenizers = pytest.importorskip("tokenizers", reason="comes with litellm and transformers")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from tokenizers.decoders import DecodeStream  # noqa: E402

from holdback import StoppingCriteria  # noqa: E402

TEXTS = ["好。终了。", "I am 😀😀 done.", "。", "é END", "数字١٢٣。", "plain ascii END more"]
STOPS = ["。", "😀", "END", "了。", "é"]


def byte_level(merges: list[tuple[str, str]]) -> tokenizers.Tokenizer:
    """Bytes as tokens, and what the merges make of them; some merges end inside a character."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    pieces = [*alphabet, *(one + other for one, other in merges)]
    vocabulary = {piece: at for at, piece in enumerate(pieces)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=merges))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=False
    )
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(["<eos>"])
    return made


def trained() -> tokenizers.Tokenizer:
    made = byte_level([])
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=330,
        show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<eos>"],
    )
    made.train_from_iterator(TEXTS * 8, trainer)
    return made


TOKENIZERS = [byte_level([]), trained()]
EOS = [one.token_to_id("<eos>") for one in TOKENIZERS]


def raw(tokenizer: tokenizers.Tokenizer, ids: list[int]) -> bytes:
    """The bytes of tokens, by the table that byte-level vocabularies are written in."""
    table = {}
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in kept]
    table = {chr(byte): byte for byte in kept}
    table |= {chr(256 + at): byte for at, byte in enumerate(others)}
    pieces = (tokenizer.id_to_token(one) for one in ids)
    return b"".join(bytes(table[sign] for sign in piece) for piece in pieces if piece != "<eos>")


texts = st.one_of(st.sampled_from(TEXTS), st.text("好。😀é EN.D", max_size=10))


@given(st.sampled_from([0, 1]), texts, st.lists(st.sampled_from(STOPS), max_size=2))
def test_no_byte_of_what_was_removed_stays(which, text, stops):
    tokenizer = TOKENIZERS[which]
    ids = [*tokenizer.encode(text).ids, EOS[which]]
    run = StoppingCriteria(stop=stops, eos_token_ids=EOS[which]).start()
    by_bytes = StoppingCriteria(stop=stops, eos_token_ids=EOS[which]).start()
    stream = DecodeStream(skip_special_tokens=True)
    emitted = exact = ""
    for token_id in ids:
        emit, finish = run.step(token_id, stream.step(tokenizer, token_id))
        emitted += emit
        emit, same = by_bytes.step(token_id, raw(tokenizer, [token_id]))
        exact += emit
        if finish is not None:
            break
    assert exact == emitted
    assert (finish.reason, finish.tokens) == (same.reason, same.tokens)
    out = len(emitted.encode())
    kept = finish.trim(ids)
    assert len(raw(tokenizer, kept)) <= out
    assert emitted.encode().startswith(raw(tokenizer, kept))
    # One token more would bring something that was removed.
    assert len(raw(tokenizer, ids[: finish.kept_tokens + 1])) > out or finish.reason == "eos"
    assert finish.kept_tokens == same.kept_tokens
    if finish.reason == "eos":
        assert kept == ids[:-1]
