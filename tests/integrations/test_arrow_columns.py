"""`truncate_many` of the columns that pyarrow and Polars have, and what they make of the column
that comes back.
"""

from __future__ import annotations

import gc
import itertools

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback import StopSet

STOPS = StopSet(["\n\nUser:", "###", "</answer>", "—"])
texts = st.lists(
    st.sampled_from([*STOPS.stops, "a", "é", "#", "日本", "😀", "User", "~" * 20]), max_size=5
).map("".join)
columns = st.lists(st.none() | texts, max_size=20)
KINDS = [pa.string(), pa.large_string(), pa.string_view()]


def check(column, rows):
    kept, matches = STOPS.truncate_many(column)
    pairs = [(None, None) if row is None else STOPS.truncate(row) for row in rows]
    array = pa.array(kept)
    array.validate(full=True)
    assert array.type == pa.large_string()
    assert array.to_pylist() == pl.Series(kept).to_list() == [text for text, _ in pairs]
    assert matches == [match for _, match in pairs]
    assert array.null_count == rows.count(None)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(values=columns, start=st.integers(0, 9), stop=st.integers(0, 20))
def test_arrays_sliced_anywhere(kind, values, start, stop):
    check(pa.array(values, pa.string()).cast(kind)[start:stop], values[start:stop])


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(values=st.lists(columns, max_size=4), start=st.integers(0, 9))
def test_chunked_arrays(kind, values, start):
    chunks = [pa.array(chunk, pa.string()).cast(kind) for chunk in values]
    check(pa.chunked_array(chunks, kind)[start:], [*itertools.chain(*values)][start:])


@given(values=columns, more=columns, start=st.integers(0, 9))
def test_series(values, more, start):
    series = pl.concat(
        [pl.Series(values, dtype=pl.String), pl.Series(more, dtype=pl.String)], rechunk=False
    )
    check(series[start:], (values + more)[start:])


def test_they_share_the_memory_and_outlive_the_column():
    kept, _ = STOPS.truncate_many(pa.array(["a###b", None, "c" * 99]))
    one, two = pa.array(kept), pa.array(kept)
    assert one.buffers()[2].address == two.buffers()[2].address
    del kept, one
    gc.collect()
    assert two.to_pylist() == ["a", None, "c" * 99]


def test_another_type_may_be_asked_for():
    kept, _ = STOPS.truncate_many(pa.array(["a###b", None]))
    short = pa.array(kept, pa.string())
    short.validate(full=True)
    assert (short.type, short.to_pylist()) == (pa.string(), ["a", None])
    assert short.buffers()[2].address == pa.array(kept).buffers()[2].address
    assert pa.array(kept).cast(pa.string_view()).to_pylist() == ["a", None]


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (pa.array([1, 2]), "'l'"),
        (pa.array([b"a"]), "'z'"),
        (pa.array(["a", "a"]).dictionary_encode(), "a dictionary"),
        (pa.array([["a"]]), r"'\+l'"),
        (pa.table({"text": ["a"]}), "pass one column of a table"),
        (pl.DataFrame({"text": ["a"]}), "pass one column of a table"),
        (pl.Series([1.5]), "'g'"),
        (pl.Series(["a"], dtype=pl.Categorical), "a dictionary"),
    ],
    ids=lambda value: str(getattr(value, "type", getattr(value, "dtype", type(value).__name__))),
)
def test_a_column_of_another_type_is_named(column, told):
    with pytest.raises(TypeError, match=told):
        STOPS.truncate_many(column)


@given(values=columns)
def test_a_column_of_a_pandas_frame(values):
    pd = pytest.importorskip("pandas", reason="comes with lm_eval")
    frame = pd.DataFrame({"a": pd.Series(values, dtype="str")})
    frame["cut"], matches = STOPS.truncate_many(frame["a"])
    kept = [None if pd.isna(text) else text for text in frame["cut"]]
    assert kept == [text if text is None else STOPS.truncate(text)[0] for text in values]
    assert len(matches) == len(values)


def test_an_array_of_objects():
    np = pytest.importorskip("numpy", reason="comes with pandas")
    column, _ = STOPS.truncate_many(pa.array(["a###", None]))
    assert np.array(column).tolist() == ["a", None]
    assert np.array(column).dtype == object
    assert np.asarray(column, dtype="O").shape == (2,)
