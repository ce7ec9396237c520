"""The job of `slow_sink`: rows without end, of which the sink takes one batch in 50 ms."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

import engine as hw
from engine.connectors.contract import Json, Sink, SinkContext, SinkWriter
from engine.connectors.generator import GeneratorSource
from engine.elements import Micros

PAUSE_S = 0.05


class Wide(GeneratorSource):
    """Rows of some 130 bytes."""

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        return {"key": pl.Int64(), "text": pl.String()}

    def splits(self) -> Sequence[str]:
        return ["a", "b", "c", "d"]

    def generate(self, split: str, row: npt.NDArray[np.int64], began: Micros) -> pl.DataFrame:
        text = pl.Series([split * 120]).new_from_index(0, len(row))
        return pl.DataFrame({"key": row % 1_000, "text": text})


class Slow(Sink):
    """Throws rows away, slowly."""

    def open(self, context: SinkContext) -> SinkWriter:
        return SlowWriter()

    def shadow(self, name: str) -> Sink:
        return self


class SlowWriter(SinkWriter):
    def write(self, frame: pl.DataFrame) -> None:
        time.sleep(PAUSE_S)

    def prepare(self, checkpoint_id: int) -> Json | None:
        return None


env = hw.Environment("slow sink", checkpoint_interval="5s")
rows = env.source(Wide(rate=1, rows=10**12, paced=False), uid="rows")
rows.rebalance().sink(Slow(), uid="slow")
env.execute()
