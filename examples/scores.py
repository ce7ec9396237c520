"""Which flights will leave late: a model of scikit-learn that scores a stream.

    flights of June 2013 ──learn, before the job starts──▶ model
    first days of July ──map_batches(model)──▶ guesses ──per origin and day──▶ how good they were

The model is learnt once, while the job is described, and travels to the workers inside of the
function that uses it. A decision tree looks at each row alone, so batches of any size are scored
alike; with a linear model the last bits of a score could depend on the size.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.frame import FrameSource
from engine.connectors.print import PrintSink

try:
    from sklearn.tree import DecisionTreeClassifier
except ImportError:
    msg = "this example needs scikit-learn: pip install scikit-learn"
    raise SystemExit(msg) from None

# Beside this file; and, when only the file was uploaded, in the checkout that the engine runs from.
FOLDERS = (Path(__file__).parent, Path(hw.__file__).parents[1] / "examples")
RECORDING = Path("data", "nyc2013", "flights.parquet")

FEATURES = [
    pl.col("scheduled").dt.convert_time_zone("America/New_York").dt.hour().alias("hour"),
    pl.col("scheduled").dt.convert_time_zone("America/New_York").dt.weekday().alias("weekday"),
    pl.col("origin").is_in(["EWR"]).alias("newark"),
    pl.col("origin").is_in(["JFK"]).alias("kennedy"),
]
LATE_MINUTES = 15


def flights() -> pl.DataFrame:
    """The flights of 2013 that left, in the order of the schedule."""
    folder = next((folder for folder in FOLDERS if (folder / RECORDING).is_file()), FOLDERS[0])
    scheduled = pl.col("time_hour") + pl.duration(minutes="minute")
    return (
        pl.scan_parquet(folder / RECORDING)
        .filter(pl.col("dep_delay").is_not_null())
        .select("origin", scheduled=scheduled, late=pl.col("dep_delay") > LATE_MINUTES)
        .sort("scheduled", "origin", "late")
        .collect()
    )


def main() -> None:
    """Learn, then describe the job."""
    every, day = flights(), pl.col("scheduled").dt.date()
    known = every.filter(day.is_between(date(2013, 6, 1), date(2013, 6, 30)))
    coming = every.filter(day.is_between(date(2013, 7, 1), date(2013, 7, 3)))
    tree = DecisionTreeClassifier(max_depth=6, class_weight="balanced", random_state=1)
    tree.fit(known.select(FEATURES).to_numpy(), known["late"].to_numpy())

    def guess(batch: pl.DataFrame) -> pl.DataFrame:
        guesses = tree.predict(batch.select(FEATURES).to_numpy())
        return batch.with_columns(pl.Series("guess", guesses, pl.Boolean))

    env = hw.Environment("scores")
    source = FrameSource(coming)
    scored = env.source(source, uid="flights", watermarks=hw.monotonic("scheduled")).map_batches(
        guess, schema={**source.schema, "guess": bool}, uid="model"
    )
    quality = (
        scored.with_columns(right=pl.col("guess") == pl.col("late"))
        .key_by("origin")
        .window(windows.tumbling("1d"))
        .agg(
            flights=agg.count(),
            late=agg.sum("late"),
            guessed=agg.sum("guess"),
            share_right=agg.mean("right"),
            uid="quality",
        )
    )
    quality.drop("window_end").sink(PrintSink(), uid="print")
    env.execute()


if __name__ == "__main__":
    main()
