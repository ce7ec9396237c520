"""Parts of a key that people have written as text, read as the types of their columns.

Errors   ConfigError for a column that the key does not have, and for text that is no value of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from engine.errors import ConfigError


def parsed_key(
    state: str, keys: Mapping[str, pl.DataType], given: Mapping[str, str]
) -> dict[str, pl.Series]:
    """Columns of one value each, for the parts of a key that are given.

    >>> parsed_key("sums", {"day": pl.Date(), "n": pl.Int8()}, {"n": "7"})["n"].to_list()
    [7]
    """
    for name in given:
        if name not in keys:
            msg = (
                f"state {state!r} has no key column {name!r}: its key is "
                f"{', '.join(keys) or 'nothing'}; pass e.g. --key {_example(keys)}"
            )
            raise ConfigError(msg)
    return {name: _parsed(name, text, keys[name]) for name, text in given.items()}


def _parsed(name: str, text: str, dtype: pl.DataType) -> pl.Series:
    written = pl.Series(name, [text])
    try:
        match dtype:
            case pl.Datetime():
                zone = dtype.time_zone
                return written.str.to_datetime(time_unit=dtype.time_unit, time_zone=zone)
            case pl.Date():
                return written.str.to_date()
            case pl.Time():
                return written.str.to_time()
            case pl.Boolean():
                return written.replace_strict({"true": True, "false": False}, return_dtype=dtype)
            case pl.Binary():
                return written.str.decode("hex")
            case _:
                return written.cast(dtype)
    except pl.exceptions.PolarsError as error:
        msg = f"key column {name!r} is {dtype}: got {text!r}; pass a value of this type"
        raise ConfigError(msg) from error


def _example(keys: Mapping[str, pl.DataType]) -> str:
    return " ".join(f"{name}=…" for name in keys) or "(none)"
