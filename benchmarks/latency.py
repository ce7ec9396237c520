"""How long after the end of a window its results reach the sink, at a rate that events keep.

    4 splits of paced events --hash(key)--> tumbling("100ms") --> files, with the delay of each row

Shapes   an event has the time at which it is due; a result is delayed by the time of its arrival at
         the sink minus the end of its window: waiting for a batch to fill, the shuffle, the firing
         and the way to the sink are in it, the commit of files is not.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

import engine as hw
from engine import agg, windows
from engine.clock import now_micros
from engine.connectors.contract import Json, Sink, SinkContext, SinkWriter
from engine.connectors.generator import GeneratorSource
from engine.connectors.parquet_files import ParquetFilesSink
from engine.elements import Micros

KEYS = 1_000
SPLITS = 4


class Events(GeneratorSource):
    """Events that come when they are due; all of one split carry the keys in turn."""

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        return {"key": pl.Int64(), "time": pl.Int64()}

    def splits(self) -> Sequence[str]:
        return [str(split) for split in range(SPLITS)]

    def generate(self, split: str, row: npt.NDArray[np.int64], began: Micros) -> pl.DataFrame:
        return pl.DataFrame({"key": row % KEYS, "time": began + row * 1_000_000 // self.rate})


class DelaySink(Sink):
    """Adds to each row how late it comes, in ms, and hands it to the files."""

    def __init__(self, files: Sink) -> None:
        self.files = files

    def open(self, context: SinkContext) -> SinkWriter:
        return DelayWriter(self.files.open(context))

    def shadow(self, name: str) -> Sink:
        return DelaySink(self.files.shadow(name))


class DelayWriter(SinkWriter):
    """Asks the clock when rows come."""

    def __init__(self, files: SinkWriter) -> None:
        self._files = files

    def write(self, frame: pl.DataFrame) -> None:
        late = now_micros() - pl.col("window_end").dt.epoch("us")
        self._files.write(frame.with_columns(delay_ms=late / 1_000))

    def prepare(self, checkpoint_id: int) -> Json | None:
        return self._files.prepare(checkpoint_id)

    def commit(self, committable: Json) -> None:
        self._files.commit(committable)

    def recover(self, committables: Sequence[Json]) -> None:
        self._files.recover(committables)

    def close(self) -> None:
        self._files.close()


def delays(output: Path) -> str:
    """The delays of the second half of the run: in the first half the job makes up its start."""
    files = [pl.read_parquet(file) for file in output.glob("[!.]*.parquet")]
    results = pl.concat(files).sort("window_end")
    steady = results.tail(results.height // 2)["delay_ms"]
    shown = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    found = {name: steady.quantile(part, "nearest") for name, part in shown.items()}
    return ", ".join(f"{name} {value:.1f} ms" for name, value in found.items())


def main() -> None:
    """Describe the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--rate", type=int, required=True, help="rows a second, of all splits")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    env = hw.Environment("latency", checkpoint_interval="1s")
    source = Events(args.rate // SPLITS, rows=args.rows // SPLITS)
    events = env.source(source, uid="events", watermarks=hw.monotonic("time"))
    counts = events.key_by("key").window(windows.tumbling("100ms")).agg(n=agg.count(), uid="counts")
    counts.sink(DelaySink(ParquetFilesSink(args.output)), uid="files")
    env.execute()


if __name__ == "__main__":
    main()
