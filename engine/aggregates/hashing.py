"""Hashes of values: 64 bits that depend on the value only, not on process, platform or version.

Shapes   numbers of any type that are equal hash alike; so do times of any unit; text and bytes hash
         by their bytes, once per different value of a batch.
Cost     a few vector operations; text about a microsecond per different value.
Source   SplitMix64's finaliser (Steele, Lea, Flood, 2014); BLAKE2b for text.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import polars as pl

Hashes = npt.NDArray[np.uint64]

_SEED = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)


def hashes(values: pl.Series) -> Hashes:
    """One hash per value; any at all for a null.

    >>> hashes(pl.Series([1], dtype=pl.Int8)) == hashes(pl.Series([1.0]))
    array([ True])
    """
    words = _words(values) + _SEED
    words = (words ^ words >> np.uint64(30)) * _MIX_A
    words = (words ^ words >> np.uint64(27)) * _MIX_B
    return words ^ words >> np.uint64(31)


def _words(values: pl.Series) -> Hashes:
    """64 bits per value."""
    dtype = values.dtype
    if dtype in (pl.String, pl.Binary):
        return _text_words(values)
    if isinstance(dtype, pl.Datetime | pl.Duration):
        values = values.dt.cast_time_unit("us")
    physical = values.to_physical().fill_null(strategy="zero")
    if dtype.is_float():
        return _float_words(physical.cast(pl.Float64).to_numpy())
    if dtype == pl.UInt64:
        return physical.to_numpy()
    return physical.cast(pl.Int64).to_numpy().view(np.uint64)


def _float_words(numbers: npt.NDArray[np.float64]) -> Hashes:
    """Whole numbers as integers are; others by their bits, all NaN alike."""
    whole = (np.abs(numbers) < 2.0**63) & (np.trunc(numbers) == numbers)
    integers = np.where(whole, numbers, 0.0).astype(np.int64).view(np.uint64)
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    return np.where(whole, integers, bits)


def _text_words(values: pl.Series) -> Hashes:
    distinct = values.drop_nulls().unique()
    raw = distinct.cast(pl.Binary).to_list()
    digests = b"".join(blake2b(value, digest_size=8).digest() for value in raw)
    words = pl.Series(np.frombuffer(digests, dtype="<u8").astype(np.uint64))
    # A join by value, not by position: `unique` promises no order.
    lookup = pl.DataFrame({"value": distinct, "word": words})
    found = values.to_frame("value").join(lookup, on="value", how="left", maintain_order="left")
    return found.get_column("word").fill_null(0).to_numpy()
