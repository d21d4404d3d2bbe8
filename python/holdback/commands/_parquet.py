"""Parquet for `holdback truncate`: a block is a row group, a part is an Arrow stream, the output
has the input's row groups.

The output keeps the schema with its metadata, the order of the rows and each column's compression.
Statistics are written anew; bloom filters and page indexes are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from holdback import StopSet
from holdback.commands._jsonl import Fields, Tally

BATCH_ROWS = 16_384
"""Rows in memory at a time, in a worker and while the output is written."""


def need_pyarrow() -> Any:
    """The package `pyarrow`, or an `ImportError` that says how to get it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet files need the package pyarrow: pip install pyarrow") from error
    return pa


def plan_blocks(path: Path, column: str) -> list[tuple[int, int]]:
    """The row groups of a file, as (number, bytes in the file).

    Raises:
        ValueError: for a file that is not Parquet, or has no such column.
    """
    pa = need_pyarrow()
    try:
        with pa.parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if column not in names:
                raise ValueError(
                    f"{path} has no column {column!r}; it has {', '.join(map(repr, names))}"
                )
            groups = [
                file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)
            ]
    except pa.ArrowException as error:
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from error
    return [
        (number, sum(group.column(at).total_compressed_size for at in range(group.num_columns)))
        for number, group in enumerate(groups)
    ]


def cut_group(
    source: Path,
    group: int,
    part: Path,
    stops: StopSet,
    fields: Fields,
    options: dict[str, Any],
    tally: Tally,
) -> None:
    """Write a row group, cut, as an Arrow stream.

    Raises:
        ValueError: if the column does not hold texts, or the file is damaged.
    """
    pa = need_pyarrow()
    from holdback.integrations.pyarrow import truncate_table

    try:
        with pa.parquet.ParquetFile(source) as file, pa.OSFile(str(part), "wb") as sink:
            writer = None
            for batch in file.iter_batches(BATCH_ROWS, row_groups=[group]):
                table = pa.Table.from_batches([batch], file.schema_arrow)
                stop_column = fields.stop_column or _unused(table.column_names)
                done = truncate_table(
                    table, fields.column, stops, stop_column=stop_column, **options
                )
                _count(
                    table.column(fields.column),
                    done.column(fields.column),
                    done.column(stop_column),
                    tally,
                    pa,
                )
                if fields.stop_column is None:
                    done = done.drop_columns([stop_column])
                if writer is None:
                    writer = pa.ipc.new_stream(
                        sink, done.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
                    )
                writer.write_table(done)
            if writer is not None:
                writer.close()
    except (pa.ArrowException, TypeError) as error:
        raise ValueError(f"{source}, row group {group}: {error}") from error


def join(source: Path, parts: Iterable[Path], joined: Path) -> None:
    """Write the parts into one Parquet file, a row group each."""
    pa = need_pyarrow()
    with pa.parquet.ParquetFile(source) as file:
        schema, metadata = file.schema_arrow, file.metadata
    codecs = {}
    if metadata.num_row_groups:
        group = metadata.row_group(0)
        columns = [group.column(at) for at in range(group.num_columns)]
        codecs = {column.path_in_schema: column.compression.lower() for column in columns}
    codecs = {path: "none" if codec == "uncompressed" else codec for path, codec in codecs.items()}
    writer = None
    try:
        for part in parts:
            if not part.stat().st_size:  # a row group without rows
                continue
            with pa.memory_map(str(part)) as mapped, pa.ipc.open_stream(mapped) as stream:
                if writer is None:
                    writer = pa.parquet.ParquetWriter(
                        joined, stream.schema, compression=codecs or "snappy"
                    )
                table = stream.read_all()
                writer.write_table(table, row_group_size=max(1, table.num_rows))
        if writer is None:
            writer = pa.parquet.ParquetWriter(joined, schema)
    finally:
        if writer is not None:
            writer.close()


def _unused(names: list[str]) -> str:
    name = "stop"
    while name in names:
        name += "_"
    return name


def _count(before: Any, after: Any, fired: Any, tally: Tally, pa: Any) -> None:
    """Add a batch to the counts."""
    import pyarrow.compute as pc

    tally.rows += len(before)
    while pa.types.is_nested(before.type):
        before, after, fired = (
            pc.list_flatten(before),
            pc.list_flatten(after),
            pc.list_flatten(fired),
        )
    tally.texts += len(before) - before.null_count

    def characters(column: Any) -> int:
        text = column.cast(pa.large_string())
        return pc.sum(pc.utf8_length(text)).as_py() or 0

    tally.characters += characters(before) - characters(after)
    for entry in pc.value_counts(pc.drop_null(fired)).to_pylist():
        tally.cut += entry["counts"]
        tally.stops[entry["values"]] = tally.stops.get(entry["values"], 0) + entry["counts"]
