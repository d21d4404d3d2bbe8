"""Compressed bodies: what was compressed comes back whole, in any chunking, within limits, or the
coding is named.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback import _codings
from holdback._codings import (
    MAX_MEMBERS,
    PIECE,
    BrokenCodingError,
    CodingError,
    DecodedTooLongError,
    Decoder,
    UnknownCodingError,
    codings_of,
    decode,
)

NEEDED = "needs the extra holdback[serve], which `make setup` installs"
brotli: Any = pytest.importorskip("brotli", reason=NEEDED)
zstd: Any = pytest.importorskip(
    "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd", reason=NEEDED
)


def raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush()


ENCODERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "DEFLATE": raw_deflate,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


@given(
    unit=st.binary(max_size=300),
    times=st.sampled_from([1, 1, 2, 1000]),
    names=st.lists(st.sampled_from(sorted(ENCODERS)), max_size=4),
    chunks=st.data(),
)
def test_what_was_compressed_comes_back_in_any_chunking(
    unit: bytes, times: int, names: list[str], chunks: st.DataObject
) -> None:
    made = data = unit * times
    for name in names:
        made = ENCODERS[name](made)
    header = " , ".join(names)
    assert decode(header, made, limit=len(data)) == data
    decoder, at, out = Decoder(header), 0, b""
    while at < len(made):
        size = chunks.draw(st.integers(1, len(made)))
        for piece in decoder.pieces(made[at : at + size]):
            assert 0 < len(piece) <= max(2 * PIECE, size)
            out += piece
        at += size
    decoder.finish()
    assert out == data


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_small_body_that_becomes_a_huge_one_is_refused_without_being_made(name: str) -> None:
    bomb = ENCODERS[name](bytes(100 << 20))
    with pytest.raises(DecodedTooLongError, match="longer than 1000 bytes"):
        decode(name, bomb, limit=1000)
    assert max(map(len, Decoder(name).pieces(bomb))) <= 2 * PIECE


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
@given(cut=st.integers(0, 10_000), damage=st.binary(max_size=30))
def test_damage_is_named(name: str, cut: int, damage: bytes) -> None:
    """Any prefix, and any bytes at all: the text, or an error that names the coding."""
    whole = ENCODERS[name](bytes(range(256)) * 3)
    cut %= len(whole)
    if cut:  # a body without a byte is a body without a byte, as of `HEAD`
        with pytest.raises(BrokenCodingError, match=name) as raised:
            decode(name, whole[:cut], limit=10_000)
        assert raised.value.coding == name
    for data in (damage, whole[:cut] + damage):
        try:
            decode(name, data, limit=10_000)
        except CodingError as error:
            named = error.coding
        else:
            named = name
        assert named == name


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_several_members_are_one_body(name: str) -> None:
    assert decode(name, ENCODERS[name](b"ab") + ENCODERS[name](b"c"), limit=9) == b"abc"


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_members_are_counted(name: str) -> None:
    member = ENCODERS[name](b"a")
    assert decode(name, member * MAX_MEMBERS, limit=MAX_MEMBERS) == b"a" * MAX_MEMBERS
    with pytest.raises(BrokenCodingError, match=name):
        decode(name, member * (MAX_MEMBERS + 1), limit=1 << 20)


def test_what_grows_in_between_and_comes_to_nothing_is_refused() -> None:
    """Empty blocks of deflate in gzip: a short body that makes gigabytes of work for no byte."""
    nothing = b"\0\0\0\xff\xff" * (20 << 20)
    with pytest.raises(DecodedTooLongError, match="'deflate, gzip': it grows beyond"):
        decode("deflate, gzip", gzip.compress(nothing, 1), limit=1000)


def test_zeros_may_pad_what_gzip_made() -> None:
    assert decode("gzip", gzip.compress(b"ab") + bytes(100), limit=9) == b"ab"


@pytest.mark.parametrize("header", ["lzma", "gzip, compress", "aes128gcm", "x" * 10_000])
def test_an_unknown_coding_is_named_shortly(header: str) -> None:
    name = header.split(", ")[-1][:40]
    with pytest.raises(UnknownCodingError, match=f"content-encoding '{name}' is not") as raised:
        Decoder(header)
    assert raised.value.coding == name


def test_a_list_without_end_is_refused() -> None:
    with pytest.raises(UnknownCodingError, match="at most 4"):
        Decoder(", ".join(["gzip"] * 5))
    assert codings_of("gzip," * 1000 + "identity") == ("gzip",) * 1000


@pytest.mark.parametrize(("name", "module"), [("br", "brotli"), ("zstd", zstd.__name__)])
def test_a_package_that_is_not_there_is_named(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(wanted: str) -> None:
        raise ImportError(wanted)

    monkeypatch.setattr(_codings, "import_module", missing)
    with pytest.raises(UnknownCodingError, match=f"{name}.*needs the package '{module}'"):
        Decoder(name)


def test_a_window_that_would_take_much_memory_is_refused() -> None:
    parameters = {zstd.CompressionParameter.window_log: 27}
    engine = zstd.ZstdCompressor(options=parameters)
    made = engine.compress(bytes(1000), engine.FLUSH_BLOCK)
    with pytest.raises(BrokenCodingError, match="zstd"):
        decode("zstd", made, limit=1 << 20)
