"""Canonical tables as Parquet files, written and read in parts: neither end holds a whole state.

    parts of a table --write_parts--> row groups of one file --read_parts--> parts of a table

Shapes   parts of a file may be cut anywhere; together they are the table, in its order.
Cost     at most one row group in memory, besides the part that is being written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import IO

import polars as pl
import pyarrow.parquet as pq
from pyarrow.lib import ArrowException

from engine.elements import KEY_GROUP
from engine.errors import StorageError
from engine.keygroups import KeyGroupRange, rows_of

ROW_GROUP = 2**18
"""As many rows as Polars itself puts into one."""

_LITTLE = 2**14
"""Bytes of a table up to which compression is left out: with it, writing takes twice as long, and
the file is mostly its footer."""

_FEW = 2**12
"""Rows up to which threads take longer to start than to read."""

_OLDEST = pl.CompatLevel.oldest()
"""Text as Arrow has always had it, so that any reader of Parquet takes it."""


def write_parts(parts: Iterable[pl.DataFrame], file: IO[bytes]) -> int:
    """Write the parts of a table, at least one; returns the number of rows. Raises StorageError."""
    rows = 0
    writer: pq.ParquetWriter | None = None
    try:
        for part in parts:
            for group in part.iter_slices(ROW_GROUP):
                table = group.to_arrow(compat_level=_OLDEST)
                if writer is None:
                    writer = _writer(file, table.schema, table.nbytes)
                writer.write_table(table)  # type: ignore[no-untyped-call]
                rows += table.num_rows
    except ArrowException as error:
        msg = f"state cannot be written as Parquet: {error}; check the types of its columns"
        raise StorageError(msg) from error
    finally:
        if writer is not None:
            writer.close()  # type: ignore[no-untyped-call]
    return rows


def _writer(file: IO[bytes], schema: object, size_bytes: int) -> pq.ParquetWriter:
    # Level 1: checkpoints are written often and read seldom.
    compressed = {"compression": "zstd", "compression_level": 1}
    how = compressed if size_bytes > _LITTLE else {"compression": "none"}
    return pq.ParquetWriter(file, schema, **how)  # type: ignore[no-untyped-call]


def opened_parquet(file: IO[bytes]) -> pq.ParquetFile:
    """Read how a file is laid out. Raises pyarrow's ArrowException."""
    return pq.ParquetFile(file)  # type: ignore[no-untyped-call]


def read_parts(
    stored: pq.ParquetFile,
    groups: KeyGroupRange | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[pl.DataFrame]:
    """The rows of a file that any version has written; `groups`: only those of these key groups;
    `columns`: only these, among them the key group.

    At least one part, if of no rows. Raises pyarrow's ArrowException.
    """
    wanted: Sequence[int] = range(stored.num_row_groups)
    if groups is not None:
        wanted = [index for index in wanted if _may_hold(stored, index, groups)] or [0]
    batches = stored.iter_batches(  # type: ignore[no-untyped-call]
        ROW_GROUP,
        row_groups=wanted,
        columns=None if columns is None else list(columns),
        use_threads=stored.metadata.num_rows > _FEW,
    )
    for batch in batches:
        part = pl.from_arrow(batch)
        assert isinstance(part, pl.DataFrame)
        yield part if groups is None else rows_of(part, groups)


def _may_hold(stored: pq.ParquetFile, index: int, groups: KeyGroupRange) -> bool:
    """Whether a row group may have rows of some key groups."""
    column = stored.schema_arrow.get_field_index(KEY_GROUP)
    found = stored.metadata.row_group(index).column(column).statistics
    if found is None or not found.has_min_max:
        return True
    return bool(found.min < groups.hi and found.max >= groups.lo)
