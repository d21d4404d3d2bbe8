"""Columns in Arrow memory: pyarrow, Polars, Ray Data, and Parquet files on the command line."""

from __future__ import annotations

import doctest
import json
import pickle
import subprocess
import sys

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdback import StopSet
from holdback.integrations import polars as for_polars
from holdback.integrations import pyarrow as for_pyarrow
from holdback.integrations import ray as for_ray

STOPS = StopSet(["\n\nUser:", "###", "</answer>", "Observation:", "<|im_end|>", "STOP", "—"])

texts = st.lists(
    st.sampled_from([*STOPS.stops, "a", "é", "#", "\n", "😀", "User"]), max_size=5
).map("".join)
columns = st.lists(st.none() | texts, max_size=12)
TEXT_TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
]
LIST_TYPES = [
    pa.list_(pa.string()),
    pa.large_list(pa.large_string()),
    pa.list_(pa.list_(pa.string())),
]


def expected(value):
    """Text and stop of a value as the library gives them one by one."""
    if value is None:
        return None, None
    if isinstance(value, list):
        pairs = [expected(item) for item in value]
        return [text for text, _ in pairs], [stop for _, stop in pairs]
    text, match = STOPS.truncate(value)
    return text, match and match.stop


def check(column, cut, fired):
    pairs = [expected(value) for value in column.to_pylist()]
    assert cut.to_pylist() == [text for text, _ in pairs]
    assert fired.to_pylist() == [stop for _, stop in pairs]
    assert cut.type == column.type
    cut.validate(full=True)
    fired.validate(full=True)


@pytest.mark.parametrize("kind", TEXT_TYPES, ids=str)
@given(values=columns, start=st.integers(0, 3))
def test_every_string_type_is_cut_and_kept(kind, values, start):
    column = (pa.array(values, pa.string()).cast(kind) if values else pa.array([], kind))[start:]
    check(column, *for_pyarrow.truncate_column(column, STOPS))


@pytest.mark.parametrize("kind", LIST_TYPES, ids=str)
@given(data=st.data(), start=st.integers(0, 3))
def test_lists_are_cut_in_place(kind, data, start):
    inner = (
        columns
        if not pa.types.is_list(kind.value_type)
        else st.lists(st.none() | columns, max_size=3)
    )
    column = pa.array(data.draw(st.lists(st.none() | inner, max_size=6)), kind)[start:]
    check(column, *for_pyarrow.truncate_column(column, STOPS))


def test_lists_of_one_length_too():
    for values in ([["a###", "b"], ["c", "dSTOP"]], [["a###", None], None]):
        column = pa.array(values, pa.list_(pa.string(), 2))
        check(column, *for_pyarrow.truncate_column(column, STOPS))


@given(values=st.lists(columns, max_size=4))
def test_chunks_stay_chunks(values):
    column = pa.chunked_array([pa.array(chunk, pa.string()) for chunk in values], pa.string())
    cut, fired = for_pyarrow.truncate_column(column, STOPS)
    check(column, cut, fired)
    assert [len(chunk) for chunk in cut.chunks] == [len(chunk) for chunk in values]


@given(values=columns)
def test_columns_of_other_libraries_come_by_the_c_interface(values):
    series = pl.Series("text", values, dtype=pl.String)
    column = pa.chunked_array(series)
    check(column, *for_pyarrow.truncate_column(series, STOPS))


class OneArray:
    """Of the C interface, just what an array has."""

    def __init__(self, values):
        self.array = pa.array(values, pa.string())

    def __arrow_c_array__(self, requested_schema=None):
        return self.array.__arrow_c_array__(requested_schema)


def test_arrays_by_the_c_interface_too():
    assert for_pyarrow.truncate_column(OneArray(["a###b", None]), STOPS)[0].to_pylist() == [
        "a",
        None,
    ]
    with pytest.raises(TypeError, match="an Arrow column, not list"):
        for_pyarrow.truncate_column(["a"], STOPS)


def test_a_column_of_another_type_is_named():
    with pytest.raises(TypeError, match="not of type int64"):
        for_pyarrow.truncate_column(pa.array([1]), STOPS)
    with pytest.raises(KeyError, match="no column 'txt'; there are 'text'"):
        for_pyarrow.truncate_table(pa.table({"text": ["a"]}), "txt", STOPS)


@given(values=columns)
def test_polars_eager_and_lazy(values):
    frame = pl.DataFrame({"text": values}, schema={"text": pl.String})
    pairs = [expected(value) for value in values]
    want = {"text": [text for text, _ in pairs], "stop": [stop for _, stop in pairs]}
    made = [for_polars.truncate("text", STOPS), for_polars.fired("text", STOPS).alias("stop")]
    assert frame.with_columns(made).to_dict(as_series=False) == want
    assert frame.lazy().with_columns(made).collect().to_dict(as_series=False) == want
    assert (
        frame.lazy().with_columns(made).collect(engine="streaming").to_dict(as_series=False) == want
    )


def test_polars_lists_keep_their_type():
    frame = pl.DataFrame({"n": [["a###", None], None, ["b"]]})
    done = frame.with_columns(for_polars.truncate("n", ["###"]))
    assert done.schema == frame.schema
    assert done["n"].to_list() == [["a", None], None, ["b"]]


# --- Parquet files
# -------------------------------------------------------------------------------------------------------


def truncate(*arguments):
    command = [sys.executable, "-m", "holdback", "truncate", *map(str, arguments)]
    command += [f"--stop={stop.encode('unicode_escape').decode()}" for stop in STOPS.stops]
    return subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)


@pytest.fixture
def answers(tmp_path):
    table = pa.table(
        {
            "id": pa.array(range(5_000)),
            "text": [f"answer {n}" + "###more" * (n % 3 == 0) for n in range(5_000)],
            "n": pa.array(
                [["xSTOP", None, "y"][: n % 4] for n in range(5_000)], pa.list_(pa.string())
            ),
        }
    ).replace_schema_metadata({"made": "by hand"})
    path = tmp_path / "answers.parquet"
    pq.write_table(
        table,
        path,
        row_group_size=900,
        compression={"id": "none", "text": "zstd", "n.list.element": "gzip"},
    )
    return path


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("column", ["text", "n"])
def test_a_parquet_file_is_cut_and_keeps_its_shape(answers, tmp_path, workers, column):
    output = tmp_path / "out.parquet"
    done = truncate(
        answers,
        "-o",
        output,
        "--column",
        column,
        "--stop-column=stop",
        "--json",
        f"--workers={workers}",
    )
    assert done.returncode == 0, done.stderr
    before, after = pq.read_table(answers), pq.read_table(output)
    check(before.column(column), after.column(column), after.column("stop"))
    assert after.drop_columns(["stop", column]).equals(before.drop_columns([column]))
    assert after.schema.metadata == {b"made": b"by hand"}
    one, other = pq.ParquetFile(answers).metadata, pq.ParquetFile(output).metadata
    assert [one.row_group(n).num_rows for n in range(6)] == [
        other.row_group(n).num_rows for n in range(6)
    ]
    for at in range(3):
        assert one.row_group(0).column(at).compression == other.row_group(0).column(at).compression
    counts = json.loads(done.stderr)
    assert counts["rows"] == 5_000
    assert (
        counts["cut"] == len(after.column("stop").combine_chunks().flatten().drop_null())
        if column == "n"
        else 1_667
    )


def test_a_parquet_run_that_was_ended_goes_on(answers, tmp_path):
    output = tmp_path / "out.parquet"
    assert truncate(answers, "-o", output).returncode == 0
    whole = pq.read_table(output)
    # What a run leaves that was ended: parts that are finished, and one that is not.
    unfinished = tmp_path / "again.parquet.unfinished"
    code = (
        "import sys; from pathlib import Path; from holdback import cli; from holdback.commands import _jobs\n"
        "done = []\n"
        "def cut(work, block, real=_jobs.cut_block):\n"
        "    if len(done) == 2: sys.exit(9)\n"
        "    done.append(block); return real(work, block)\n"
        "_jobs.cut_block = cut\n"
        "cli.main(sys.argv[1:])\n"
    )
    again = [f"--stop={stop.encode('unicode_escape').decode()}" for stop in STOPS.stops]
    command = [
        sys.executable,
        "-c",
        code,
        "truncate",
        str(answers),
        "-o",
        str(tmp_path / "again.parquet"),
        "--workers=1",
    ]
    assert subprocess.run([*command, *again], check=False, timeout=60).returncode == 9
    assert len(list(unfinished.glob("0*.json"))) == 2
    times = {path: path.stat().st_mtime_ns for path in unfinished.glob("*.part")}
    done = truncate(answers, "-o", tmp_path / "again.parquet", "--resume")
    assert done.returncode == 0, done.stderr
    assert len(times) == 2
    assert pq.read_table(tmp_path / "again.parquet").equals(whole)
    assert done.stderr.startswith("5,000 rows, 5,000 texts, 1,667 cut")


def test_parquet_without_rows_or_column(tmp_path):
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "empty.parquet")
    assert truncate(tmp_path / "empty.parquet", "-o", tmp_path / "out.parquet").returncode == 0
    assert pq.read_table(tmp_path / "out.parquet").schema.names == ["text"]
    done = truncate(tmp_path / "empty.parquet", "-o", tmp_path / "no.parquet", "--column=txt")
    assert (done.returncode, "has no column 'txt'; it has 'text'" in done.stderr) == (1, True)
    (tmp_path / "not.parquet").write_bytes(b"not at all")
    done = truncate(tmp_path / "not.parquet", "-o", tmp_path / "no.parquet")
    assert (done.returncode, "cannot be read as Parquet" in done.stderr) == (1, True)


# --- Ray
# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray", reason="Ray has no wheel for this interpreter")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


@pytest.mark.timeout(300)
def test_a_run_on_local_ray(ray):
    rows = [{"id": n, "text": f"answer {n}" + "###more" * (n % 3 == 0)} for n in range(1_000)]
    dataset = ray.data.from_items(rows, override_num_blocks=7)
    cut = dataset.map_batches(
        for_ray.Truncate("text", STOPS, stop_column="stop"), batch_format="pyarrow"
    )
    made = sorted(cut.take_all(), key=lambda row: row["id"])
    for row, after in zip(rows, made, strict=True):
        text, stop = expected(row["text"])
        assert after == {"id": row["id"], "text": text, "stop": stop}


def test_the_function_pickles_and_bad_options_are_told_at_once():
    cut = for_ray.Truncate("text", ["###"], include_stop=True)
    assert pickle.loads(pickle.dumps(cut))(pa.table({"text": ["a###b"]})).to_pydict() == {
        "text": ["a###"]
    }
    with pytest.raises(ValueError):
        for_ray.Truncate("text", [""])
    with pytest.raises(ValueError):
        for_ray.Truncate("text", ["a"], start_inside=True)


@pytest.mark.parametrize(
    "module", [for_polars, for_pyarrow, for_ray], ids=lambda module: module.__name__
)
def test_the_examples_in_docstrings(module):
    done = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert done.attempted > 1
    assert not done.failed
