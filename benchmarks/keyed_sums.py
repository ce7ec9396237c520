"""The job that is measured: count and sum per key in windows of event time.

    4 splits of made-up events --hash(key)--> tumbling("1s"): count, sum --> Parquet files
                                              or sliding("60s", "1s"), or session("1s")

Shapes   key: Int64 in [0, keys), value: Float64 in [0, 1), time: µs. Each event comes up to `LAG`
         later than its turn; how fast they are read is up to the engine. For sessions a key has
         events for `BURST`, and then none for three times that.
Cost     making the events is part of the job, and of its baseline; it costs next to nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.generator import GeneratorSource
from engine.connectors.parquet_files import ParquetFilesSink
from engine.elements import Micros
from engine.windows import Session, SlicedWindows

KEYS = 1_000
SPLITS = 4
PER_SECOND = 2_000_000
"""Events a second of event time, of all splits together."""
LAG = 450_000
"""µs; less than the bound of out-of-orderness, so no event is late."""
BURST = 2_000_000
"""µs."""
TABLE = 2**18
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Events(GeneratorSource):
    """Events that are computed from their number."""

    def __init__(
        self, rows: int, keys: int = KEYS, per_second: int = PER_SECOND, lag: int = LAG
    ) -> None:
        """`lag`: each comes less than so many µs after its turn."""
        super().__init__(per_second // SPLITS, rows=rows // SPLITS, anchor=BEGAN, paced=False)
        self.keys = keys
        self.step = 1_000_000 * SPLITS // per_second
        self.lag = lag

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        return {"key": pl.Int64(), "value": pl.Float64(), "time": pl.Int64()}

    def splits(self) -> Sequence[str]:
        return [str(split) for split in range(SPLITS)]

    def generate(self, split: str, row: npt.NDArray[np.int64], began: Micros) -> pl.DataFrame:
        # Rows are numbered without gaps, so they are a slice of the table, some turns later.
        first = int(row[0])
        place = (first + int(split) * 7_919) % TABLE
        made = _table(self.keys, self.step, self.lag)
        keys, values, turns = (column.slice(place, len(row)) for column in made)
        return pl.DataFrame([keys, values, turns + (began + (first - place) * self.step)])


class Visits(Events):
    """Events of which the keys take turns."""

    def generate(self, split: str, row: npt.NDArray[np.int64], began: Micros) -> pl.DataFrame:
        events = super().generate(split, row, began)
        turn = (events.get_column("time").to_numpy() - began) // BURST % 4
        keys = pl.Series("key", events.get_column("key").to_numpy() // 4 * 4 + turn)
        return events.with_columns(keys)


WINDOWS: dict[str, tuple[type[Events], SlicedWindows | Session]] = {
    "tumbling": (Events, windows.tumbling("1s")),
    "sliding": (Events, windows.sliding("60s", "1s")),
    "session": (Visits, windows.session("1s")),
}

_made: dict[tuple[int, int, int], list[pl.Series]] = {}


def _table(keys: int, step: int, lag: int) -> list[pl.Series]:
    """Keys, values and times, made once per process; twice, so that no slice runs over the end."""
    if (keys, step, lag) not in _made:
        luck = np.random.RandomState(1)
        key = luck.randint(0, keys, TABLE, dtype=np.int64)
        value, late = luck.random_sample(TABLE), luck.randint(0, lag, TABLE, dtype=np.int64)
        time = np.arange(2 * TABLE) * step - np.tile(late, 2)
        columns = {"key": np.tile(key, 2), "value": np.tile(value, 2), "time": time}
        _made[keys, step, lag] = pl.DataFrame(columns).get_columns()
    return _made[keys, step, lag]


def main() -> None:
    """Describe the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--keys", type=int, default=KEYS)
    parser.add_argument("--per-second", type=int, default=PER_SECOND)
    parser.add_argument("--window", choices=WINDOWS, default="tumbling")
    parser.add_argument("--no-checkpoints", action="store_true")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    interval = None if args.no_checkpoints else "1s"
    env = hw.Environment("keyed-sums", checkpoint_interval=interval)
    in_time = hw.bounded_out_of_orderness("500ms", column="time")
    made, window = WINDOWS[args.window]
    source = made(args.rows, args.keys, args.per_second)
    events = env.source(source, uid="events", watermarks=in_time)
    sums = events.key_by("key").window(window).agg(n=agg.count(), sum=agg.sum("value"), uid="sums")
    sums.sink(ParquetFilesSink(args.output), uid="files")
    env.execute()


if __name__ == "__main__":
    main()
