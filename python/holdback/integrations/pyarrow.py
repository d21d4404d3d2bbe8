"""Columns of pyarrow, cut: `from holdback.integrations.pyarrow import truncate_column,
truncate_table`.

A column may hold strings of any string type, dictionaries of them, or lists of them; it keeps its
type, and nulls stay nulls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import holdback
from holdback import StopSet
from holdback.integrations._arrow import truncate_array
from holdback.integrations._arrow import truncate_table as _truncate_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


def truncate_column(
    column: Any, stops: StopSet | str | Iterable[str], **options: Any
) -> tuple[Any, Any]:
    """The texts of a column up to their first stop, and the stops: a column of the same shape, null
    where none fired.

    >>> import pyarrow as pa
    >>> texts, fired = truncate_column(pa.array(["4\\nUser: and", None, "5"]), ["\\nUser:"])
    >>> texts.to_pylist(), fired.to_pylist()
    (['4', None, '5'], ['\\nUser:', None, None])

    Args:
        column: a `pyarrow.Array` or `pyarrow.ChunkedArray`, or a column of any other library that has the Arrow C interface
            (Polars, DuckDB, nanoarrow, arro3): its memory is shared, and the answer is pyarrow's.
        stops: a compiled set, or the stops.
        options: those of `StopSet.truncate_many`: `include_stop`, `min_chars`, `ignore_inside`, `start_inside`.

    Raises:
        TypeError: for a column that does not hold strings.
        ValueError: for bad stops or options.
    """
    return truncate_array(column, compiled(stops), **options)


def truncate_table(
    table: pa.Table,
    column: str,
    stops: StopSet | str | Iterable[str],
    *,
    stop_column: str | None = None,
    **options: Any,
) -> pa.Table:
    """The table with one column cut; with `stop_column`, also with the stops that fired, under that
    name.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": [1, 2], "text": ["a###b", "c"]})
    >>> truncate_table(table, "text", ["###"], stop_column="stop").to_pydict()
    {'id': [1, 2], 'text': ['a', 'c'], 'stop': ['###', None]}

    Raises:
        KeyError: if there is no such column.
        TypeError: for a column that does not hold strings.
        ValueError: for bad stops or options.
    """
    return _truncate_table(table, compiled(stops), column, stop_column=stop_column, **options)[0]


def compiled(stops: StopSet | str | Iterable[str]) -> StopSet:
    """The set itself, or the compiled form of a list of stops."""
    return stops if isinstance(stops, StopSet) else holdback.compile(stops)
