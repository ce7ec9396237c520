"""A job with a large state: the last value of each key, and what came in its place.

    updates --hash(key)--> LastValue (a ValueState of text) --what was replaced--> counted

Shapes   key: 16 hex digits, value: 32 hex digits. Row n sets key n mod `keys`, in an order of no
         use to anybody: the first `keys` rows fill the state, later ones change it.
Order    rows are given up to a number that stands in the file `gate`, so that whoever measures says
         when the state is full, and how much of it changes next.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from pyarrow import lib as arrow

import engine as hw
from benchmarks.amplifier import Counted
from engine.connectors.contract import Json, Polled, Source, SplitReader
from engine.elements import Micros
from engine.functions import Row

KEEPER, STATE = "last-values", "last"
DIGITS = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
SPREAD = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that different numbers stay different."""
MEMORY = "256mb"
"""Of which the block cache is a quarter: it has to hold ten bits for each key, to know which are
not there."""
LOOK = 50_000
"""µs between two looks at the gate."""


def keys_of(number: npt.NDArray[np.uint64]) -> pl.Series:
    """The keys of some numbers, 16 hex digits each.

    >>> keys_of(np.array([0, 1], dtype=np.uint64)).to_list()
    ['0000000000000000', '9e3779b97f4a7c15']
    """
    return _text(number * SPREAD)


def values_of(row: npt.NDArray[np.uint64]) -> pl.Series:
    """The values that rows set, 32 hex digits each: they do not compress well."""
    mixed = row * SPREAD
    mixed = (mixed ^ mixed >> np.uint64(31)) * SPREAD
    return _text(mixed) + _text(mixed ^ mixed >> np.uint64(29))


def _text(number: npt.NDArray[np.uint64]) -> pl.Series:
    raw = number.astype(">u8").view(np.uint8).reshape(-1, 8)
    digits = DIGITS[np.stack([raw >> 4, raw & 15], axis=2)]
    ends = np.arange(0, 16 * len(number) + 1, 16, dtype=np.int32)
    buffers = [None, arrow.py_buffer(ends), arrow.py_buffer(digits.tobytes())]
    text = pl.from_arrow(arrow.Array.from_buffers(arrow.string(), len(number), buffers))
    assert isinstance(text, pl.Series)
    return text


class Updates(Source):
    """Rows by their number, as far as the gate is open."""

    def __init__(self, keys: int, gate: Path) -> None:
        self.keys = keys
        self.gate = gate

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        return {"key": pl.String(), "value": pl.String()}

    def splits(self) -> Sequence[str]:
        return ["all"]

    def open(self, split: str, position: Json | None) -> SplitReader:
        return _Reader(self, position if isinstance(position, int) else 0)


class _Reader(SplitReader):
    def __init__(self, source: Updates, row: int) -> None:
        self._source = source
        self._row = row
        self._end = 0

    def poll(self, max_rows: int, now: Micros) -> Polled:
        if self._row >= self._end:
            self._end = int(self._source.gate.read_text())
        lo, self._row = self._row, min(self._row + max_rows, self._end)
        if lo == self._row:
            return Polled(retry_at=Micros(now + LOOK), pending_rows=0)
        row = np.arange(lo, self._row, dtype=np.uint64)
        key = keys_of(row % np.uint64(self._source.keys))
        frame = pl.DataFrame({"key": key, "value": values_of(row)})
        return Polled(frame, pending_rows=self._end - self._row)

    @property
    def position(self) -> Json:
        return self._row


class LastValue(hw.KeyedProcessFunction):
    """Keeps what came last, and gives what it replaced."""

    last = hw.ValueState(str)

    def process(self, row: Row, ctx: hw.FunctionContext) -> Iterator[Row]:
        before = self.last.get()
        self.last.set(row["value"])
        if before is not None:
            yield {"value": 1.0}


def main() -> None:
    """Describe the job."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--gate", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    env = hw.Environment(
        "large-state", checkpoint_interval=None, state_backend="rocksdb", state_memory=MEMORY
    )
    updates = env.source(Updates(args.keys, args.gate), uid="updates")
    replaced = updates.key_by("key").process(LastValue(), schema={"value": pl.Float64}, uid=KEEPER)
    replaced.sink(Counted(args.output), uid="counted")
    env.execute()


if __name__ == "__main__":
    main()
