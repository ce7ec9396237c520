"""Values of record state, as they come back from a snapshot.

A function that sets 2 in a state of floats must read 2.0 at once, as it will after a restore: what
it sees may not depend on where a crash or a batch ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import polars as pl

from engine.errors import GraphError

UNFIT = (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError)
"""What is raised for a value that is not of a column's type, by `storing` and by the library."""

_INT64 = range(-(2**63), 2**63)
_PLAIN: Mapping[type, pl.DataType] = {
    float: pl.Float64(),
    int: pl.Int64(),
    str: pl.String(),
    bool: pl.Boolean(),
    bytes: pl.Binary(),
}


def check_value_type(dtype: pl.DataType) -> pl.DataType:
    """Refuse types whose values could be changed in place. Raises GraphError."""
    if dtype.is_nested() or dtype in (pl.Object, pl.Null, pl.Categorical, pl.Enum):
        msg = f"state cannot hold {dtype}; use a number, text, a boolean or a time"
        raise GraphError(msg)
    return dtype


def stored_value(value: Any, dtype: pl.DataType) -> Any:
    """The value that a snapshot would give back. Raises TypeError, OverflowError.

    >>> stored_value(2, pl.Float64()), stored_value(None, pl.String())
    (2.0, None)
    """
    return storing(dtype)(value)


@lru_cache(maxsize=256)
def storing(dtype: pl.DataType) -> Callable[[Any], Any]:
    """`stored_value` for one type: whoever stores many values asks for this once."""
    # The common cases by hand: a series of one value costs microseconds.
    plain = next((python for python, polars in _PLAIN.items() if polars == dtype), None)
    is_whole, is_float = dtype == pl.Int64, dtype == pl.Float64

    def stored(value: Any) -> Any:
        kind = type(value)
        if value is None or (kind is plain and (not is_whole or value in _INT64)):
            return value
        if is_float and kind is int:
            return float(value)
        return pl.Series([value], dtype=dtype, strict=True)[0]

    return stored
