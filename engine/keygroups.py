"""Key -> key group -> subtask: who owns which keys, and who gets what on a rescale.

    key --hash--> key group in [0, max_parallelism) --range--> subtask in [0, parallelism)

Half-open ranges of key groups go to subtasks in order. The hash depends on the key's value and
type only, never on the process, the platform or the library's version, because snapshots store it.

Shapes   integers of any width hash by value, so a key column may be widened; times hash as
         microseconds; text and bytes hash by their bytes, once per distinct value of a batch.
Errors   GraphError for a float key (0.1 + 0.2 is not 0.3), FunctionError for a null key.
Source   the mixer is SplitMix64's finaliser (Steele, Lea, Flood, 2014); text goes through CRC-32.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.elements import KEY_GROUP
from engine.errors import FunctionError, GraphError
from engine.frames import kept

DEFAULT_MAX_PARALLELISM = 128

MAX_MAX_PARALLELISM = 2**15
"""Key groups are UInt16 columns, and a job never needs more."""

_Words = npt.NDArray[np.uint64]

_FEW = 1_000
"""Rows up to which hashing each text takes less time than finding those that differ."""

_SEED = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True, order=True)
class KeyGroupRange:
    """The key groups [lo, hi) of one subtask."""

    lo: int
    hi: int

    def __contains__(self, group: int) -> bool:
        return self.lo <= group < self.hi

    def overlaps(self, other: KeyGroupRange) -> bool:
        """Whether any key group lies in both."""
        return self.lo < other.hi and other.lo < self.hi


def range_of(subtask: int, parallelism: int, max_parallelism: int) -> KeyGroupRange:
    """The key groups of a subtask.

    >>> range_of(0, 3, 128), range_of(2, 3, 128)
    (KeyGroupRange(lo=0, hi=43), KeyGroupRange(lo=86, hi=128))
    """
    lo = -(-subtask * max_parallelism // parallelism)
    hi = -(-(subtask + 1) * max_parallelism // parallelism)
    return KeyGroupRange(lo, hi)


def rows_of(frame: pl.DataFrame, groups: KeyGroupRange) -> pl.DataFrame:
    """The rows of some key groups, by their column `key_group`.

    >>> rows_of(pl.DataFrame({"key_group": [1, 5]}), KeyGroupRange(0, 5)).rows()
    [(1,)]
    """
    of_rows = frame.get_column(KEY_GROUP).to_numpy()
    ours = (of_rows >= groups.lo) & (of_rows < groups.hi)
    return frame if ours.all() else kept(frame, pl.Series(ours))


def subtask_of(group: int, parallelism: int, max_parallelism: int) -> int:
    """The subtask that owns a key group.

    >>> subtask_of(42, 3, 128), subtask_of(43, 3, 128)
    (0, 1)
    """
    return group * parallelism // max_parallelism


def check_keys(schema: Mapping[str, pl.DataType], keys: Sequence[str]) -> None:
    """Refuse key columns that are missing or cannot be keys. Raises GraphError."""
    if not keys:
        msg = "key_by names no column: got (); name at least one, e.g. key_by('carrier')"
        raise GraphError(msg)
    for number, key in enumerate(keys):
        if key in keys[:number]:
            msg = f"key_by names a column twice: got {key!r}; name it once"
            raise GraphError(msg)
        if not isinstance(key, str):
            msg = (
                f"key_by takes names of columns: got {key!s}; "
                "make a column by with_columns(…) before, and name it"
            )
            raise GraphError(msg)
        if key not in schema:
            msg = (
                f"key_by names an unknown column: got {key!r}; "
                f"the stream has {', '.join(schema) or 'no columns'}"
            )
            raise GraphError(msg)
        if not may_be_key(schema[key]):
            msg = (
                f"column {key!r} cannot be a key: its type is {schema[key]}; "
                "use integers, text, booleans or times, e.g. by rounding and casting first"
            )
            raise GraphError(msg)


def key_groups(frame: pl.DataFrame, keys: Sequence[str], max_parallelism: int) -> pl.Series:
    """The key group of every row, as a UInt16 column named `key_group`.

    >>> frame = pl.DataFrame({"carrier": ["UA", "AA", "UA"], "origin": ["EWR", "JFK", "EWR"]})
    >>> key_groups(frame, ["carrier", "origin"], 128).to_list()
    [4, 119, 4]
    """
    mixed = np.full(frame.height, _SEED, dtype=np.uint64)
    for key in keys:
        column = frame.get_column(key)
        refuse_nulls(column)
        # The rotation keeps (a, b) and (b, a) apart.
        mixed = _mix((mixed << np.uint64(7) | mixed >> np.uint64(57)) ^ _mix(_words(column)))
    groups = (mixed % np.uint64(max_parallelism)).astype(np.uint16)
    return pl.Series(KEY_GROUP, groups, dtype=pl.UInt16)


def refuse_nulls(key: pl.Series) -> None:
    """Raise FunctionError when some row has no key."""
    if key.null_count():
        msg = (
            f"key column {key.name!r} is null in {key.null_count()} of {len(key)} rows; "
            "fill or filter nulls before key_by"
        )
        raise FunctionError(msg)


def may_be_key(dtype: pl.DataType) -> bool:
    """Whether values of a type are equal or not beyond doubt, so that state can go by them."""
    if dtype in (pl.Int128, pl.UInt128):
        return False  # keys of one column are told apart by 64 bits
    return dtype.is_integer() or dtype.is_temporal() or dtype in (pl.String, pl.Binary, pl.Boolean)


def _words(column: pl.Series) -> _Words:
    """64 bits per value that depend on the value only."""
    dtype = column.dtype
    if dtype in (pl.String, pl.Binary):
        return _text_words(column)
    if isinstance(dtype, pl.Datetime | pl.Duration):
        return column.dt.cast_time_unit("us").to_physical().to_numpy().view(np.uint64)
    if dtype == pl.UInt64:
        return column.to_numpy()
    return column.to_physical().cast(pl.Int64).to_numpy().view(np.uint64)


def _text_words(column: pl.Series) -> _Words:
    if len(column) <= _FEW:
        texts = column.cast(pl.Binary).to_list()
        return np.fromiter(map(zlib.crc32, texts), dtype=np.uint64, count=len(texts))
    distinct = column.unique()
    raw = distinct.cast(pl.Binary).to_list()
    words = pl.Series([zlib.crc32(value) for value in raw], dtype=pl.UInt64)
    # A join by value, not by position: `unique` promises no order.
    lookup = pl.DataFrame({"value": distinct, "word": words})
    found = column.to_frame("value").join(lookup, on="value", how="left", maintain_order="left")
    return found.get_column("word").to_numpy()


def _mix(words: _Words) -> _Words:
    words = (words ^ words >> np.uint64(30)) * _MIX_A
    words = (words ^ words >> np.uint64(27)) * _MIX_B
    return words ^ words >> np.uint64(31)
