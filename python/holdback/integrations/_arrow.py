"""Columns of texts in Arrow memory: what the adapters for pyarrow, Polars and Ray share.

A column is a string type (`string`, `large_string`, `string_view`, or a dictionary of one of them),
or a list type of such a column, nested as deep as one likes: several answers to one prompt. Nulls
stay nulls. A column keeps its type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from holdback import StopSet


def need_pyarrow() -> Any:
    """The package `pyarrow`, or an `ImportError` that says how to get it."""
    try:
        import pyarrow as pa
        import pyarrow.compute  # not imported by pyarrow itself
    except ImportError as error:
        raise ImportError("this needs the package pyarrow: pip install pyarrow") from error
    return pa


def truncate_array(column: Any, stops: StopSet, **options: Any) -> tuple[Any, Any]:
    """The texts of a column up to their first stop, and a column of the same shape with those stops
    (null: none fired).

    Args:
        column: a `pyarrow.Array` or `pyarrow.ChunkedArray`, or any object with the Arrow C interface.
        stops: the compiled set.
        options: as for `StopSet.truncate_many`.

    Raises:
        TypeError: for a column that does not hold strings; it says which type it has.
    """
    pa = need_pyarrow()
    if not isinstance(column, pa.Array | pa.ChunkedArray):
        column = _imported(column, pa)
    if isinstance(column, pa.ChunkedArray):
        pairs = [truncate_array(chunk, stops, **options) for chunk in column.chunks]
        return (
            pa.chunked_array([texts for texts, _ in pairs], type=column.type),
            pa.chunked_array([fired for _, fired in pairs], type=_like(column.type, pa)),
        )
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _lists(column, stops, options, pa)
    if pa.types.is_dictionary(kind):  # the same text many times is cut once
        texts, fired = truncate_array(column.dictionary, stops, **options)
        return pa.DictionaryArray.from_arrays(column.indices, texts), fired.take(column.indices)
    if not _is_text(kind, pa):
        raise TypeError(f"a column of strings, or of lists of strings, not of type {kind}")
    return _texts(column, stops, options, pa)


def truncate_table(
    table: pa.Table, stops: StopSet, column: str, *, stop_column: str | None = None, **options: Any
) -> tuple[pa.Table, Any]:
    """The table with one column cut, the stops that fired in another one if it is named; and these
    stops, also by themselves.

    Raises:
        KeyError: if there is no such column; it says which there are.
    """
    at = table.schema.get_field_index(column)
    if at < 0:
        raise KeyError(
            f"no column {column!r}; there are {', '.join(map(repr, table.column_names))}"
        )
    texts, fired = truncate_array(table.column(at), stops, **options)
    table = table.set_column(at, table.schema.field(at), texts)
    if stop_column is not None:
        there = table.schema.get_field_index(stop_column)
        table = (
            table.append_column(stop_column, fired)
            if there < 0
            else table.set_column(there, stop_column, fired)
        )
    return table, fired


def _imported(column: Any, pa: Any) -> Any:
    """The pyarrow form of another library's column, by the Arrow C interface: the memory is shared."""
    if hasattr(column, "__arrow_c_stream__"):
        return pa.chunked_array(column)
    if hasattr(column, "__arrow_c_array__"):
        return pa.array(column)
    raise TypeError(f"an Arrow column, not {type(column).__name__}")


def _is_text(kind: Any, pa: Any) -> bool:
    # `string_view` came with pyarrow 16
    is_view = getattr(pa.types, "is_string_view", lambda _: False)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or is_view(kind))


def _like(kind: Any, pa: Any) -> Any:
    """The type of the column of stops that goes with a column of texts."""
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_like(kind.value_type, pa), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_like(kind.value_type, pa))
    if pa.types.is_list(kind):
        return pa.list_(_like(kind.value_type, pa))
    return pa.string()


def _lists(column: Any, stops: StopSet, options: dict[str, Any], pa: Any) -> tuple[Any, Any]:
    """Lists of texts: cut the flat column of all texts, and put the lists back around it."""
    kind = column.type
    # A null list may still have values; `flatten` leaves them out, so lengths are counted anew.
    texts, fired = truncate_array(column.flatten(), stops, **options)
    if pa.types.is_fixed_size_list(kind) and not column.null_count:
        whole = [
            pa.FixedSizeListArray.from_arrays(values, kind.list_size) for values in (texts, fired)
        ]
    else:
        lengths = pa.compute.fill_null(pa.compute.list_value_length(column), 0)
        ends = pa.compute.cumulative_sum(lengths.cast(pa.int64()))
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
        mask = pa.compute.is_null(column)
        whole = [
            pa.LargeListArray.from_arrays(offsets, values, mask=mask) for values in (texts, fired)
        ]
    return whole[0].cast(kind), whole[1].cast(_like(kind, pa))


def _texts(column: Any, stops: StopSet, options: dict[str, Any], pa: Any) -> tuple[Any, Any]:
    """Strings: the core reads the column where it lies, and makes no Python object of a text.

    Uncut, it is the very column.
    """
    kept, matches = stops.truncate_many(column, **options)
    fired = pa.array([None if match is None else match.stop for match in matches], pa.string())
    if fired.null_count == len(fired):
        return column, fired
    return pa.array(kept).cast(column.type), fired
