"""Ray Data, for columns that have outgrown one machine: `from holdback.integrations.ray import
Truncate`.

```python
dataset = ray.data.read_parquet("s3://answers/").map_batches(Truncate("text", ["\\n\\nUser:", "###"]), batch_format="pyarrow")
```

The compiled set travels to each worker once, inside the function; workers share nothing, so blocks
run anywhere, in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdback import StopSet
from holdback.integrations._arrow import truncate_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


class Truncate:
    """A function for `Dataset.map_batches(..., batch_format="pyarrow")`: cuts one column of each
    batch.

    >>> import pyarrow as pa
    >>> cut = Truncate("text", ["###"], stop_column="stop")
    >>> cut(pa.table({"text": ["a###b", None]})).to_pydict()
    {'text': ['a', None], 'stop': ['###', None]}

    It pickles, by its stops; so it also serves other tools that hand pyarrow tables to a function
    on another machine.

    Args:
        column: the column of texts, or of lists of texts.
        stops: a compiled set, or the stops.
        stop_column: a column to write the stops to that fired (null: none).
        tie: as for `StopSet`; only for stops that are not compiled yet.
        options: those of `StopSet.truncate_many`.

    Raises:
        ValueError: for bad stops. Batches raise `KeyError` and `TypeError` as `truncate_table` does.
    """

    def __init__(
        self,
        column: str,
        stops: StopSet | str | Iterable[str],
        *,
        stop_column: str | None = None,
        tie: Any = "longest",
        **options: Any,
    ) -> None:
        self.stops = stops if isinstance(stops, StopSet) else StopSet(stops, tie=tie)
        self.column = column
        self.stop_column = stop_column
        self.options = options
        self.stops.truncate("", **options)  # bad options fail here, not in some worker later on

    def __call__(self, batch: pa.Table) -> pa.Table:
        """The batch with the column cut."""
        return truncate_table(
            batch, self.stops, self.column, stop_column=self.stop_column, **self.options
        )[0]
