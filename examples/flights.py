"""Daily delays per carrier and airport, from every flight that left New York in 2013.

    flights --event time: true departure--> per carrier and origin, a day each --> files, points

The recording is played in scheduled order, by default a day each second, so the stream is out of
order by up to a day: a flight is seen when it was due, and belongs to the day on which it left.

This is version 1, and it has an honest bug: a cancelled flight has no delay, and is counted as one
of 0 minutes, so the worst days look better than they were. `flights_v2.py` corrects that.
"""

from __future__ import annotations

import argparse
import os
from datetime import datetime
from pathlib import Path

import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.influx import InfluxSink
from engine.connectors.parquet_files import ParquetFilesSink
from engine.connectors.playback import PlaybackSource

# Beside this file; and, when only the file was uploaded, in the checkout that the engine runs from.
FOLDERS = (Path(__file__).parent, Path(hw.__file__).parents[1] / "examples")
RECORDING = Path("data", "nyc2013", "flights.parquet")
HOME = Path(os.environ.get("HEADWATER_HOME", ".headwater"))

SCHEDULED = pl.col("time_hour") + pl.duration(minutes="minute")
DEPARTURE = SCHEDULED + pl.duration(minutes=pl.col("dep_delay").fill_null(0))
COLUMNS: list[str | pl.Expr] = [
    "carrier",
    "origin",
    "dep_delay",
    SCHEDULED.alias("scheduled"),
    DEPARTURE.alias("departure"),
]


def main(args: argparse.Namespace) -> None:
    """Describe the job."""
    env = hw.Environment("flights")
    recording = PlaybackSource(
        args.data,
        columns=COLUMNS,
        order="scheduled",
        split_by="origin",
        speed=args.speed or None,
        anchor=args.anchor,
        bounded=args.bounded,
    )
    # The longest delay of the year is 1,301 minutes: within a day, no flight is late.
    departures = hw.bounded_out_of_orderness("24h", column="departure")
    flights = env.source(recording, uid="flights", watermarks=departures)
    daily = (
        flights.with_columns(
            cancelled=pl.col("dep_delay").is_null().cast(pl.Int64),
            delay=pl.col("dep_delay").fill_null(0),
        )
        .key_by("carrier", "origin")
        .window(windows.tumbling("1d"))
        .agg(
            flights=agg.count(),
            cancelled=agg.sum("cancelled"),
            mean_delay=agg.mean("delay"),
            max_delay=agg.max("delay"),
            uid="daily",
        )
    )
    month = pl.col("window_start").dt.strftime("%Y-%m")
    daily.sink(ParquetFilesSink(args.output, bucket=month), uid="daily-files")
    if args.points:
        fields = ["flights", "cancelled", "mean_delay", "max_delay"]
        points = InfluxSink(
            "flights_daily", tags=["carrier", "origin"], fields=fields, time="window_end"
        )
        daily.sink(points, uid="daily-points")
    env.execute()


def arguments() -> argparse.Namespace:
    """Parse the arguments of the job."""
    found = [folder / RECORDING for folder in FOLDERS if (folder / RECORDING).is_file()]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, default=found[0] if found else RECORDING)
    parser.add_argument("--output", type=Path, default=HOME / "output" / "flights")
    parser.add_argument("--speed", type=float, default=86_400, help="times real time; 0: no pace")
    parser.add_argument("--anchor", type=datetime.fromisoformat, help="when the first row is due")
    parser.add_argument("--bounded", action="store_true", help="end after the last flight")
    parser.add_argument("--no-points", dest="points", action="store_false", help="files only")
    return parser.parse_args()


if __name__ == "__main__":
    main(arguments())
