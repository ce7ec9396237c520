"""Tables of state through Parquet: every type comes back, in parts of any size."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, time, timedelta

import polars as pl

from engine.checkpoint.format.tables import ROW_GROUP, opened_parquet, read_parts, write_parts

MOMENT = datetime(2013, 3, 1, 5, 30, 0, 7)
EVERY_TYPE = pl.DataFrame(
    {
        "key_group": pl.Series([1, 2], dtype=pl.UInt16),
        "text": ["zürich", None],
        "raw": [b"\0\xff", None],
        "truth": [True, None],
        "small": pl.Series([-1, None], dtype=pl.Int8),
        "large": pl.Series([2**64 - 1, None], dtype=pl.UInt64),
        "narrow": pl.Series([0.5, None], dtype=pl.Float32),
        "wide": [float("nan"), None],
        "day": [date(2013, 3, 1), None],
        "clock": [time(5, 30, 0, 7), None],
        "length": pl.Series([timedelta(microseconds=7), None], dtype=pl.Duration("us")),
        "moment": pl.Series([MOMENT.replace(tzinfo=UTC), None], dtype=pl.Datetime("us", "UTC")),
        "local": pl.Series([MOMENT, None], dtype=pl.Datetime("ms")),
        "list": [["a", None], None],
        "numbers": pl.Series([[1, 2], []], dtype=pl.List(pl.Int64)),
    }
)


def stored(*parts):
    file = io.BytesIO()
    assert write_parts(parts, file) == sum(part.height for part in parts)
    file.seek(0)
    return file


def test_every_type_comes_back():
    [found] = read_parts(opened_parquet(stored(EVERY_TYPE)))
    assert found.equals(EVERY_TYPE, null_equal=True)
    assert found.schema == EVERY_TYPE.schema


def test_snapshots_that_polars_wrote_are_read_as_before():
    file = io.BytesIO()
    EVERY_TYPE.write_parquet(file, compression="zstd", compression_level=1)
    file.seek(0)
    [found] = read_parts(opened_parquet(file))
    assert found.equals(EVERY_TYPE, null_equal=True)
    assert found.schema == EVERY_TYPE.schema


def test_polars_reads_what_is_written_now():
    found = pl.read_parquet(stored(EVERY_TYPE, EVERY_TYPE))
    assert found.equals(pl.concat([EVERY_TYPE, EVERY_TYPE]), null_equal=True)
    assert found.schema == EVERY_TYPE.schema


def test_a_large_table_is_read_a_part_at_a_time():
    large = pl.DataFrame({"n": range(ROW_GROUP + 5)})
    parts = list(read_parts(opened_parquet(stored(large.head(3), large.slice(3)))))
    assert max(part.height for part in parts) <= ROW_GROUP
    assert pl.concat(parts).equals(large)
