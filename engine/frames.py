"""Operations on frames and columns that stay on the calling thread.

>>> rows = pl.DataFrame({"a": [1, 2], "b": [3, 4]})
>>> without(rows, ["b", "c"]).columns, chosen(rows, ["b"]).columns
(['a'], ['b'])
>>> kept(rows, pl.Series([False, True])).rows()
[(2, 4)]

Cost     10 to 15 µs; what Polars has for it goes through its query engine, 40 to 60 µs for any
         number of rows, and its thread pool, which takes still longer while cores are busy.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

_MANY = 2**16
"""Rows from which on several threads are worth their start."""


def without(frame: pl.DataFrame, names: Container[str]) -> pl.DataFrame:
    """All columns but some; that these are there is not needed."""
    columns = frame.get_columns()
    left = [column for column in columns if column.name not in names]
    return frame if len(left) == len(columns) else pl.DataFrame(left)


def chosen(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Some columns, in this order."""
    return pl.DataFrame([frame.get_column(name) for name in names])


def kept(frame: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    """The rows for which a Boolean is true; null counts as false."""
    if frame.height > _MANY:
        return frame.filter(rows)
    return pl.DataFrame([column.filter(rows) for column in frame.get_columns()])


def present(column: pl.Series) -> npt.NDArray[np.bool_]:
    """Which values are not null."""
    if not column.null_count():
        return np.ones(len(column), dtype=np.bool_)
    found: npt.NDArray[np.bool_] = column.to_arrow().is_valid().to_numpy(zero_copy_only=False)
    return found
