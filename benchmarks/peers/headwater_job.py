"""The work of peers as a job of Headwater.

    the events --hash(key)--> window: count, sum, or a sum so far, row by row --> Parquet files

Shapes   key: Int64, but String from JSON lines; time: ms.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

import engine as hw
from benchmarks.peers.work import BEGAN, BOUND, GAP, PER_MS, SIZE, SLIDE, WORKS, Work
from engine import agg, windows
from engine.connectors.contract import Source
from engine.connectors.generator import GeneratorSource
from engine.connectors.json_lines import JsonLinesSource
from engine.connectors.parquet_files import ParquetFilesSink
from engine.elements import Micros
from engine.windows import Session, SlicedWindows

WINDOWS: dict[str, SlicedWindows | Session] = {
    "sliding": windows.sliding(f"{SLIDE}ms", f"{SIZE}ms"),
    "session": windows.session(f"{GAP}ms"),
}
TUMBLING = windows.tumbling(f"{SIZE}ms")


class Events(GeneratorSource):
    """The events of a work, in one split."""

    def __init__(self, work: Work, rows: int) -> None:
        anchor = datetime.fromtimestamp(BEGAN / 1_000, UTC)
        super().__init__(PER_MS * 1_000, rows=rows, anchor=anchor, paced=False)
        self.work = work

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        return {"key": pl.Int64(), "value": pl.Float64(), "time": pl.Int64()}

    def splits(self) -> Sequence[str]:
        return ["all"]

    def generate(self, split: str, row: npt.NDArray[np.int64], began: Micros) -> pl.DataFrame:
        key, time, value = self.work.events(int(row[0]), int(row[-1]) + 1)
        return pl.DataFrame({"key": key, "value": value, "time": time})


def summed(total: float, row: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """Add to the sum of the key so far."""
    total += row["value"]
    return total, {"key": row["key"], "total": total}


def main() -> None:
    """Describe the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--work", choices=WORKS, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--lines", type=Path, help="the events as a file of JSON lines")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    env = hw.Environment(f"peers-{args.work}", checkpoint_interval="1s")
    source: Source = Events(WORKS[args.work], args.rows)
    if args.lines is not None:
        source = JsonLinesSource(args.lines, schema={"key": str, "time": int, "value": float})
    in_time = hw.bounded_out_of_orderness(f"{BOUND}ms", column="time", unit="ms")
    by_key = env.source(source, uid="events", watermarks=in_time).key_by("key")
    if args.work == "running":
        result = by_key.map_with_state(
            summed,
            initial_state=0.0,
            state_type=float,
            schema={"key": int, "total": float},
            uid="sums",
        )
    else:
        window = by_key.window(WINDOWS.get(args.work, TUMBLING))
        result = window.agg(n=agg.count(), sum=agg.sum("value"), uid="sums")
    result.sink(ParquetFilesSink(args.output), uid="files")
    env.execute()


if __name__ == "__main__":
    main()
