"""How punctual New York's airports and aircraft were in 2013: each kind of window, most aggregates.

    flights --+-- per origin, 6 hours by the hour ----> how late half and a tenth of flights leave
              +-- per origin, the day so far, hourly -> flights, different aircraft, worst delays;
              |                                         corrected when flights leave a day late
              +-- per aircraft, pauses under 6 hours -> its runs of flights: first and last origin

Half of the flights leave within minutes of the schedule, the worst a day after it. The watermark
waits for two hours of disorder only, so the day so far is told in time, and told again, corrected,
while flights that left later than that come in.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.parquet_files import ParquetFilesSink
from engine.connectors.playback import PlaybackSource

# Beside this file; and, when only the file was uploaded, in the checkout that the engine runs from.
FOLDERS = (Path(__file__).parent, Path(hw.__file__).parents[1] / "examples")
RECORDING = Path("data", "nyc2013", "flights.parquet")
HOME = Path(os.environ.get("HEADWATER_HOME", ".headwater"))

SCHEDULED = pl.col("time_hour") + pl.duration(minutes="minute")
DEPARTURE = SCHEDULED + pl.duration(minutes="dep_delay")
COLUMNS: list[str | pl.Expr] = [
    "origin",
    "tailnum",
    pl.col("dep_delay").cast(pl.Float64).alias("delay"),
    SCHEDULED.alias("scheduled"),
    # A cancelled flight never left: it is left out below, and needs some time until then.
    DEPARTURE.fill_null(SCHEDULED).alias("departure"),
]


class Punctual(agg.AggregateFunction):
    """The share of flights that left within a quarter of an hour of the schedule."""

    fields = {"in_time": int, "flights": int}
    result_type = float

    def create(self) -> Mapping[str, Any]:
        return {"in_time": 0, "flights": 0}

    def add(self, fields: Mapping[str, Any], value: float) -> Mapping[str, Any]:
        return {"in_time": fields["in_time"] + (value < 15), "flights": fields["flights"] + 1}

    def merge(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name: one[name] + other[name] for name in self.fields}

    def result(self, fields: Mapping[str, Any]) -> float:
        return float(fields["in_time"] / fields["flights"])


def main(args: argparse.Namespace) -> None:
    """Describe the job."""
    env = hw.Environment("punctuality")
    recording = PlaybackSource(
        args.data,
        columns=COLUMNS,
        order="scheduled",
        split_by="origin",
        speed=args.speed or None,
        anchor=args.anchor,
        bounded=args.bounded,
    )
    disorder = hw.bounded_out_of_orderness("2h", column="departure")
    every = env.source(recording, uid="recording", watermarks=disorder)
    flights = every.filter(pl.col("delay").is_not_null() & pl.col("tailnum").is_not_null())
    by_origin = flights.key_by("origin")

    lately = by_origin.window(windows.sliding("6h", "1h")).agg(
        median=agg.quantile("delay", 0.5),
        worst_tenth=agg.quantile("delay", 0.9),
        spread=agg.std("delay"),
        punctual=agg.custom(Punctual(), "delay"),
        uid="lately",
    )
    day_so_far = windows.cumulative("1d", "1h", offset="5h")
    today = (
        by_origin.window(day_so_far)
        .allowed_lateness("24h", every="6h")
        .agg(
            flights=agg.count(),
            aircraft=agg.n_unique("tailnum"),
            worst=agg.top_k("delay", 3),
            uid="today",
        )
    )
    runs = (
        flights.key_by("tailnum")
        .window(windows.session("6h"))
        .agg(
            begins=agg.first("origin"),
            ends=agg.last("origin"),
            flights=agg.count(),
            delays=agg.collect("delay"),
            uid="runs",
        )
    )
    for name, stream in {"lately": lately, "today": today, "runs": runs}.items():
        month = pl.col("window_start").dt.strftime("%Y-%m")
        stream.sink(ParquetFilesSink(args.output / name, bucket=month), uid=f"{name}-files")
    late = today.side_output("late").select("origin", "tailnum", "delay", "departure")
    month = pl.col("departure").dt.strftime("%Y-%m")
    late.sink(ParquetFilesSink(args.output / "late", bucket=month), uid="late-files")
    env.execute()


def arguments() -> argparse.Namespace:
    """Parse the arguments of the job."""
    found = [folder / RECORDING for folder in FOLDERS if (folder / RECORDING).is_file()]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, default=found[0] if found else RECORDING)
    parser.add_argument("--output", type=Path, default=HOME / "output" / "punctuality")
    parser.add_argument("--speed", type=float, default=86_400, help="times real time; 0: no pace")
    parser.add_argument("--anchor", type=datetime.fromisoformat, help="when the first row is due")
    parser.add_argument("--bounded", action="store_true", help="end after the last flight")
    return parser.parse_args()


if __name__ == "__main__":
    main(arguments())
