"""Parquet file sink: files in buckets, one per subtask, bucket and checkpoint that has rows.

Guarantee  exactly once; see `bucketed_files`, as for names, needs and errors.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import polars as pl

from engine.connectors.bucketed_files import BucketedFilesSink


class ParquetFilesSink(BucketedFilesSink):
    """Writes rows to Parquet files below `path`, in a folder for each value of `bucket`.

    `bucket` is a column or an expression whose value, as text, names the folder.

    >>> by_month = pl.col("window_end").dt.strftime("%Y-%m")
    >>> ParquetFilesSink("/data/daily", bucket=by_month).shadow("r-1").describe()["target"]
    '/data/daily@r-1'
    """

    kind: ClassVar[str] = "parquet"
    suffix: ClassVar[str] = ".parquet"

    def encode(self, frame: pl.DataFrame, path: Path) -> None:
        """Write one file."""
        frame.write_parquet(path, compression="zstd")
