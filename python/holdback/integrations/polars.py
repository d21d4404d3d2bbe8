"""Columns of Polars, cut: `from holdback.integrations.polars import truncate`.

```python
frame.with_columns(truncate("text", ["\\n\\nUser:", "###"]))                     # eager or lazy
frame.with_columns(truncate("text", stops).alias("answer"), fired("text", stops).alias("stop"))
```

Polars hands its own string views over by the Arrow interface; pyarrow, which reads them, is needed
beside Polars.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import holdback
from holdback import StopSet
from holdback.integrations._arrow import truncate_array

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl


def truncate(
    column: str | pl.Expr, stops: StopSet | str | Iterable[str], **options: Any
) -> pl.Expr:
    """An expression: the texts of a column (strings, or lists of strings) up to their first stop.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"text": ["a###b", None, "c"]})
    >>> frame.with_columns(truncate("text", ["###"]))["text"].to_list()
    ['a', None, 'c']

    Args:
        column: a column's name, or an expression.
        stops: a compiled set, or the stops.
        options: those of `StopSet.truncate_many`.

    Raises:
        ValueError: for bad stops. Running the query raises what `truncate_series` raises.
    """
    found = _compiled(stops)
    return _expression(column).map_batches(
        lambda series: truncate_series(series, found, **options)[0], is_elementwise=True
    )


def fired(column: str | pl.Expr, stops: StopSet | str | Iterable[str], **options: Any) -> pl.Expr:
    """An expression: the stops at which `truncate` would cut, null where none fires.

    >>> import polars as pl
    >>> pl.DataFrame({"text": ["a###b", "c"]}).select(fired("text", ["###"]))["text"].to_list()
    ['###', None]
    """
    found = _compiled(stops)
    return _expression(column).map_batches(
        lambda series: truncate_series(series, found, **options)[1], is_elementwise=True
    )


def truncate_series(
    series: pl.Series, stops: StopSet | str | Iterable[str], **options: Any
) -> tuple[pl.Series, pl.Series]:
    """A series of strings, or of lists of strings, cut; and the stops that fired, in a series of
    the same shape.

    >>> import polars as pl
    >>> texts, stopped = truncate_series(pl.Series("n", [["x.y", "z"], None]), ["."])
    >>> texts.to_list(), stopped.to_list()
    ([['x', 'z'], None], [['.', None], None])

    Raises:
        TypeError: for a series that does not hold strings.
        ValueError: for bad stops or options.
    """
    import polars as pl

    texts, stopped = truncate_array(series.to_arrow(), _compiled(stops), **options)
    return pl.Series(series.name, texts, dtype=series.dtype), pl.Series(series.name, stopped)


def _compiled(stops: StopSet | str | Iterable[str]) -> StopSet:
    return stops if isinstance(stops, StopSet) else holdback.compile(stops)


def _expression(column: str | pl.Expr) -> pl.Expr:
    import polars as pl

    return pl.col(column) if isinstance(column, str) else column
