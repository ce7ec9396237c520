"""The amplifier: readings times the factor that the latest control message set.

    4 splits of made-up readings ──key──┐
                                        ├──▶ temporal join, value * factor ──▶ counted
    a new factor per key and second ────┘

Shapes   key: Int64 in [0, keys), value: Float64 in [0, 1), time: µs. Readings are
         those of `keyed_sums.py`; with `--lag` each comes up to so many µs after its turn.
Kinds    by columns, as a temporal join; with `--row-by-row` by a function with a ValueState, which
         takes dicts, and sees factors as they come.
Cost     rows are counted, not written: files would take longer than all the rest.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

import engine as hw
from benchmarks.keyed_sums import BEGAN, PER_SECOND, Events
from engine.connectors.contract import Json, Sink, SinkContext, SinkWriter
from engine.connectors.generator import GeneratorSource
from engine.elements import Micros
from engine.functions import Row


class Factors(GeneratorSource):
    """The control messages: each key gets a new factor each second, in the order of the keys."""

    def __init__(self, seconds: int, keys: int) -> None:
        super().__init__(keys, rows=seconds * keys, anchor=BEGAN, paced=False)
        self.keys = keys

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        return {"id": pl.Int64(), "factor": pl.Float64(), "time": pl.Int64()}

    def splits(self) -> Sequence[str]:
        return ["all"]

    def generate(self, split: str, row: npt.NDArray[np.int64], began: Micros) -> pl.DataFrame:
        key, second = row % self.keys, row // self.keys
        time = began - 1_000_000 + row * 1_000_000 // self.keys
        return pl.DataFrame({"id": key, "factor": (second % 10).astype(float), "time": time})


class Counted(Sink):
    """Counts rows: a file with `n` per checkpoint and writer."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, context: SinkContext) -> SinkWriter:
        self.path.mkdir(parents=True, exist_ok=True)
        return _Counter(self.path, f"{context.attempt_id}-{context.subtask}")

    def shadow(self, name: str) -> Sink:
        return Counted(self.path.with_name(f"{self.path.name}@{name}"))


class _Counter(SinkWriter):
    def __init__(self, path: Path, writer: str) -> None:
        self._path = path
        self._writer = writer.replace("/", "-")
        self._rows = 0
        self._total = 0.0

    def write(self, frame: pl.DataFrame) -> None:
        self._rows += frame.height
        self._total += float(frame["value"].sum())

    def prepare(self, checkpoint_id: int) -> Json | None:
        counted: list[Json] = [f"{self._writer}-{checkpoint_id}", self._rows, self._total]
        self._rows, self._total = 0, 0.0
        return counted if counted[1] else None

    def commit(self, committable: Json) -> None:
        assert isinstance(committable, list)
        name, rows, total = committable
        pl.DataFrame({"n": [rows], "total": [total]}).write_parquet(self._path / f"{name}.parquet")


class Amplifier(hw.CoProcessFunction):
    """Multiplies by the factor that was last set."""

    factor = hw.ValueState(float, default=1.0)

    def process_left(self, row: Row, ctx: hw.FunctionContext) -> Iterator[Row]:
        yield row | {"value": row["value"] * self.factor.get()}

    def process_right(self, row: Row, ctx: hw.FunctionContext) -> None:
        self.factor.set(row["factor"])


def main() -> None:
    """Describe the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--row-by-row", action="store_true")
    parser.add_argument("--lag", type=int, default=0)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    env = hw.Environment("amplifier", checkpoint_interval="1s")
    in_time = hw.bounded_out_of_orderness(args.lag, column="time")
    source = Events(args.rows, args.keys, lag=args.lag + 1)
    readings = env.source(source, uid="readings", watermarks=in_time)
    seconds = args.rows // PER_SECOND + 2
    factors = env.source(
        Factors(seconds, args.keys), uid="factors", watermarks=hw.monotonic("time")
    )
    by_key, set_by = readings.key_by("key"), factors.select("id", "factor").key_by("id")
    if args.row_by_row:
        amplified = by_key.connect(set_by).process(Amplifier(), uid="amplifier")
    else:
        amplified = by_key.temporal_join(
            set_by, how="left", defaults={"factor": 1.0}, uid="amplifier"
        ).with_columns(value=pl.col("value") * pl.col("factor"))
    amplified.sink(Counted(args.output), uid="counted")
    env.execute()


if __name__ == "__main__":
    main()
