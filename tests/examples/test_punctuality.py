"""The punctuality job: a few days of it, against the same windows in plain Polars."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from engine.graph.jobgraph import JobGraph
from engine.stream import capture
from engine.testing.memory import OutputTables
from engine.testing.simulation import CALM, Chaos, simulate
from examples.truth import EXAMPLES, flights

HOUR, DAY = pl.duration(hours=1), pl.duration(days=1)
Tables = dict[str, pl.DataFrame]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every third flight of two stormy days."""
    path = tmp_path_factory.mktemp("sample") / "flights.parquet"
    days = (pl.col("month") == 12) & pl.col("day").is_between(5, 6)
    rows = flights().filter(days).gather_every(3)
    rows.drop("scheduled", "departure", "row").write_parquet(path)
    return path


@pytest.fixture(scope="module")
def undisturbed(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return output(sample, tmp_path_factory.mktemp("calm"), seed=0, chaos=CALM)


@pytest.fixture(scope="module")
def stamped(sample: Path) -> pl.DataFrame:
    """The flights that took place, with the watermark of their airport when they were read."""
    mark = pl.col("departure").cum_max().over("origin") - 2 * HOUR
    took_place = pl.col("dep_delay").is_not_null() & pl.col("tailnum").is_not_null()
    return (
        flights(sample)
        .with_columns(mark.alias("mark"), pl.col("dep_delay").cast(pl.Float64).alias("delay"))
        .filter(took_place)
    )


def output(sample: Path, folder: Path, seed: int, chaos: Chaos) -> Tables:
    def build(parallelism: int, _: OutputTables) -> JobGraph:
        places = ["--data", str(sample), "--output", str(folder), "--speed", "0", "--bounded"]
        return capture(
            EXAMPLES / "punctuality.py", places, {"parallelism.default": str(parallelism)}
        )

    simulate(build, seed, chaos)
    return {path.name: read(path) for path in sorted(folder.iterdir()) if path.is_dir()}


def read(folder: Path) -> pl.DataFrame:
    rows = pl.concat(pl.read_parquet(file) for file in sorted(folder.rglob("[!.]*.parquet")))
    return rows.sort([name for name in rows.columns if rows[name].dtype != pl.List])


def in_windows(rows: pl.DataFrame, ends: list[pl.Expr], allowed: pl.Expr) -> pl.DataFrame:
    """Each row in each window that it is not late for."""
    expanded = pl.concat(rows.with_columns(end.alias("window_end")) for end in ends)
    behind = pl.col("departure") < pl.col("mark")
    return expanded.filter(~behind | (pl.col("mark") < pl.col("window_end") + allowed))


def test_the_last_six_hours_every_hour(undisturbed: Tables, stamped: pl.DataFrame) -> None:
    hour = pl.col("departure").dt.truncate("1h")
    rows = in_windows(stamped, [hour + number * HOUR for number in range(1, 7)], 0 * HOUR)
    delays = pl.col("delay").sort()
    wanted = rows.group_by("origin", "window_end").agg(
        (pl.col("delay") < 15).mean().alias("punctual"),
        delays.get(((pl.len() + 1) // 2) - 1).alias("median"),
        pl.col("delay").std().alias("spread"),
    )
    found = undisturbed["lately"].join(
        wanted, on=["origin", "window_end"], how="full", suffix="_wanted"
    )
    assert found.height == wanted.height == undisturbed["lately"].height > 100
    for row in found.iter_rows(named=True):
        assert row["punctual"] == pytest.approx(row["punctual_wanted"], rel=1e-12)
        assert row["median"] == pytest.approx(row["median_wanted"], rel=0.01)
        spread = row["spread_wanted"]  # null for a single flight
        assert row["spread"] == (None if spread is None else pytest.approx(spread, rel=1e-9))


def test_the_day_so_far_is_corrected_by_flights_that_leave_late(
    undisturbed: Tables, stamped: pl.DataFrame
) -> None:
    begun = (pl.col("departure") - 5 * HOUR).dt.truncate("1d") + 5 * HOUR
    hour = pl.col("departure").dt.truncate("1h")
    ends = [hour + number * HOUR for number in range(1, 25)]
    rows = in_windows(stamped, ends, DAY).filter(pl.col("window_end") <= begun + DAY)
    wanted = rows.group_by("origin", "window_end").agg(
        pl.len().cast(pl.Int64).alias("flights"),
        pl.col("tailnum").n_unique().cast(pl.Int64).alias("aircraft"),
        pl.col("delay").sort(descending=True).head(3).alias("worst"),
    )
    today = undisturbed["today"]
    last = today.sort("flights").group_by("origin", "window_end", maintain_order=True).last()
    found = last.select(wanted.columns).sort("origin", "window_end")
    assert found.equals(wanted.sort("origin", "window_end"))
    assert today.height > last.height


def test_flights_of_an_aircraft_are_runs_with_pauses(
    undisturbed: Tables, stamped: pl.DataFrame
) -> None:
    behind = stamped.filter(pl.col("departure") < pl.col("mark"))
    prompt = stamped.join(behind, on="tailnum", how="anti").sort("departure", "origin")
    pause = pl.col("departure").diff().over("tailnum") >= 6 * HOUR
    wanted = (
        prompt.with_columns(pause.fill_null(value=False).cum_sum().over("tailnum").alias("run"))
        .group_by("tailnum", "run")
        .agg(
            pl.col("departure").first().alias("window_start"),
            (pl.col("departure").last() + 6 * HOUR).alias("window_end"),
            pl.col("origin").first().alias("begins"),
            pl.col("origin").last().alias("ends"),
            pl.len().cast(pl.Int64).alias("flights"),
            pl.col("delay").sort().alias("delays"),
        )
        .drop("run")
        .sort("tailnum", "window_start")
    )
    found = undisturbed["runs"].join(behind, on="tailnum", how="anti")
    assert found.sort("tailnum", "window_start").select(wanted.columns).equals(wanted)
    assert wanted["flights"].max() > 1


def test_the_same_files_through_crashes_and_stops(
    tmp_path: Path, sample: Path, undisturbed: Tables
) -> None:
    found = output(sample, tmp_path, 1, Chaos(crash=0.1, stop=0.1))
    assert found.keys() == undisturbed.keys() >= {"lately", "today", "runs"}
    for name, table in undisturbed.items():
        assert found[name].equals(table), name
