"""The input of the chaos job, and its output as a table that two runs can be compared by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

JOB_FILE = Path(__file__).with_name("job.py")
OUTPUTS = ("hourly", "late")

ROWS = 12_000
SPLITS = 4
KEYS = 60
HOURS = 40
START_US = 1_700_000_000_000_000 // 3_600_000_000 * 3_600_000_000
LATENESS_US = 420_000_000
"""More than the job allows: some rows are late."""

SECONDS = 7
"""How long the recording takes at `SPEED`: time for several deeds in its midst."""
SPEED = HOURS * 3_600 / SECONDS


def write_recording(path: Path) -> Path:
    """Write the rows, in splits, each with when it was and when it became known."""
    random = np.random.default_rng(2013)
    at = START_US + np.sort(random.integers(0, HOURS * 3_600_000_000, ROWS))
    frame = pl.DataFrame(
        {
            "at": at,
            "known": at + random.integers(0, LATENESS_US, ROWS),
            "split": random.integers(0, SPLITS, ROWS).astype(str),
            "key": random.integers(0, KEYS, ROWS),
            "value": random.normal(size=ROWS),
        }
    )
    frame.with_columns(pl.col("at", "known").cast(pl.Datetime("us", "UTC"))).write_parquet(path)
    return path


def written(output: Path) -> dict[str, pl.DataFrame]:
    """What a job wrote, as far as readers see it, in an order that does not depend on its run."""
    return {name: _table(output / name) for name in OUTPUTS}


def _table(folder: Path) -> pl.DataFrame:
    tables = [pl.read_parquet(file) for file in visible(folder)]
    if not tables:
        return pl.DataFrame()
    table = pl.concat(tables)
    return table.select(sorted(table.columns)).sort(sorted(table.columns))


def visible(folder: Path) -> Iterator[Path]:
    """Committed files."""
    return (file for file in folder.rglob("*.parquet") if not file.name.startswith("."))


def difference(found: dict[str, pl.DataFrame], expected: dict[str, pl.DataFrame]) -> str | None:
    """How an output differs from the undisturbed one, in a sentence; None when it does not."""
    for name, table in expected.items():
        if found[name].equals(table):
            continue
        if found[name].columns != table.columns:
            return f"output {name} has columns {found[name].columns}, not {table.columns}"
        missing, extra = _more(table, found[name]), _more(found[name], table)
        first = "; ".join(
            str(row) for row in [*missing.rows(named=True), *extra.rows(named=True)][:4]
        )
        return (
            f"output {name} has {found[name].height} rows, not {table.height}: "
            f"{missing.height} are missing and {extra.height} too many, e.g. {first}"
        )
    return None


def _more(table: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Rows that a table has more often than another one."""
    counts = table.group_by(table.columns).len()
    others = other.group_by(other.columns).len(name="others")
    both = counts.join(others, on=table.columns, how="left", nulls_equal=True)
    return both.filter(pl.col("len") > pl.col("others").fill_null(0)).drop("others")
