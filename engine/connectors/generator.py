"""Deterministic generators: streams whose rows are computed from their numbers.

    row numbers [lo, hi) --generate--> frame      paced like a log, see `paced_log`

Order      `SensorGenerator` shuffles within blocks that are shorter than `disorder`: the order of
           arrival depends on seed and row number only.
Guarantee  replayable from any position: exactly once with a sink that is.
Units      `rate` is rows per second of each split; `disorder` is in ms.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import pi, sin
from zlib import crc32

import numpy as np
import numpy.typing as npt
import polars as pl

from engine import clock
from engine.connectors.contract import Json, Source, SplitReader
from engine.connectors.paced_log import (
    PacedLog,
    PacedReader,
    anchor_of,
    micros_of,
    rows_missing,
)
from engine.elements import Micros
from engine.errors import ConfigError, SourceError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SECOND = 1_000_000


class GeneratorSource(Source):
    """Base of generators: a subclass says its schema, its splits, and what row n is.

    `rows` limits each split (None: endless); `paced=False` makes all rows readable at once.
    """

    def __init__(
        self,
        rate: int,
        *,
        rows: int | None = None,
        anchor: datetime | None = None,
        paced: bool = True,
        delay_ms: int = 0,
    ) -> None:
        _check_whole("rate", rate, least=1)
        if rows is not None:
            _check_whole("rows", rows, least=0)
        if rows is None and not paced:
            msg = (
                "endless generator needs a pace: got paced=False without rows; pass rows=1_000_000"
            )
            raise ConfigError(msg)
        self.rate = rate
        self.rows = rows
        self.paced = paced
        self.delay_ms = delay_ms
        self.bounded = rows is not None
        self.anchor = clock.now_micros() if anchor is None else micros_of(anchor)

    @abstractmethod
    def generate(self, split: str, row: Ints, began: Micros) -> pl.DataFrame:
        """Compute rows by their numbers, the same ones each time; `began` is when row 0 was due."""

    def open(self, split: str, position: Json | None) -> SplitReader:
        """Continue at a position; nothing is held open."""
        if split not in self.splits():
            msg = f"generator has no split '{split}': it has {', '.join(self.splits())}"
            raise SourceError(msg)
        # The stored anchor wins: it is what the times of the rows are computed from.
        began = anchor_of(position, self.anchor)
        return PacedReader(split, _Generated(self, split, began), began, self.bounded, position)

    def position_at(self, split: str, stored: Json | None, time: Micros | None) -> Json:
        """The first row that is appended then, on the clock that the stored one goes by."""
        began, row = anchor_of(stored, self.anchor), 0
        if time is not None:
            row = max(0, -(-(time - began - self.delay_ms * 1_000) * self.rate // SECOND) - 1)
        return {"row": row if self.rows is None else min(row, self.rows), "anchor_us": began}

    def missing(self, split: str, position: Json | None) -> str:
        """Nothing of its splits, as long as there are enough rows: they are computed."""
        if split not in self.splits():
            return f"all of it: the generator has {', '.join(self.splits())}"
        return rows_missing(split, self.rows, position)


class _Generated(PacedLog):
    """One split of a generator."""

    def __init__(self, source: GeneratorSource, split: str, began: Micros) -> None:
        self.length = source.rows
        self._source = source
        self._split = split
        self._began = began

    def appended(self, elapsed: int) -> int:
        if not self._source.paced:
            return self.length or 0
        due = max(0, (elapsed - self._source.delay_ms * 1_000) * self._source.rate // SECOND)
        return due if self.length is None else min(due, self.length)

    def due(self, row: int) -> int:
        return self._source.delay_ms * 1_000 - (-(row + 1) * SECOND // self._source.rate)

    def rows(self, lo: int, hi: int) -> pl.DataFrame:
        return self._source.generate(self._split, np.arange(lo, hi, dtype=np.int64), self._began)


def _check_whole(name: str, number: object, least: int) -> None:
    if not isinstance(number, int) or number < least:
        msg = (
            f"{name} of a generator must be a whole number, at least {least}: got {number!r}; "
            f"pass e.g. {name}=1000"
        )
        raise ConfigError(msg)


class SensorGenerator(GeneratorSource):
    """Three sensors, a split each, `rate` readings a second of event time, out of order.

    temperature   drifts slowly between 17 and 23
    pressure      a sine of period one second: each whole second sums to zero, to rounding
    door          closed (0.0) for five seconds, open (1.0) for five seconds

    A reading comes at most `disorder_ms` behind a later one.

    >>> source = SensorGenerator(rate=4, disorder_ms=0, rows=4, paced=False)
    >>> reader = source.open("pressure", None)
    >>> [round(value, 9) for value in reader.poll(10, Micros(0)).frame["value"]]
    [0.0, 1.0, 0.0, -1.0]
    """

    def __init__(
        self,
        rate: int = 100,
        *,
        disorder_ms: int = 300,
        seed: int = 1,
        rows: int | None = None,
        anchor: datetime | None = None,
        paced: bool = True,
    ) -> None:
        super().__init__(rate, rows=rows, anchor=anchor, paced=paced, delay_ms=disorder_ms)
        self.seed = seed
        self.block = max(1, disorder_ms * rate // 1_000)

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """Which sensor, when, and what it read."""
        return {"sensor": pl.String(), "time": pl.Datetime("us", "UTC"), "value": pl.Float64()}

    def splits(self) -> Sequence[str]:
        """The sensors."""
        return ["door", "pressure", "temperature"]

    def generate(self, split: str, row: Ints, began: Micros) -> pl.DataFrame:
        """The readings that arrive at these places."""
        reading = self._shuffled(split, row)
        # Whole seconds, so that no reading's second is cut by a window.
        second, part = np.divmod(reading, self.rate)
        time = (began // SECOND + second) * SECOND + part * SECOND // self.rate
        value = self._value(split, second, part, reading)
        columns = {"sensor": pl.repeat(split, len(row), eager=True), "time": time, "value": value}
        return pl.DataFrame(columns).with_columns(
            pl.col("time").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        )

    def _value(self, split: str, second: Ints, part: Ints, reading: Ints) -> Floats:
        """What the sensor read: tables and exact arithmetic only, so the same bits everywhere."""
        if split == "pressure":
            return np.array([sin(2 * pi * n / self.rate) for n in range(self.rate)])[part]
        if split == "door":
            return (second // 5 % 2).astype(np.float64)
        phase = (second % 600 * self.rate + part) / (600 * self.rate)
        noise = (_mix(reading.astype(np.uint64)) >> np.uint64(11)) / 2.0**53
        return 17.0 + 6.0 * np.abs(2.0 * phase - 1.0) + 0.1 * (noise - 0.5)

    def _shuffled(self, split: str, row: Ints) -> Ints:
        """Which reading arrives at each place: a permutation of every whole block."""
        first, last = int(row[0]) // self.block, int(row[-1]) // self.block
        whole = np.arange(first * self.block, (last + 1) * self.block, dtype=np.int64)
        # The last block of a bounded stream may be short: readings past the end sort last.
        luck = _mix(whole.astype(np.uint64) + np.uint64(_salt(self.seed, split)))
        if self.rows is not None:
            luck[whole >= self.rows] = np.uint64(2**64 - 1)
        order = np.argsort(luck.reshape(-1, self.block), axis=1, kind="stable")
        arrived = (whole.reshape(-1, self.block)[:, :1] + order).reshape(-1)
        shuffled: Ints = arrived[row - whole[0]]
        return shuffled


def _salt(seed: int, split: str) -> int:
    return (seed * 0x9E3779B97F4A7C15 + (crc32(split.encode()) << 31)) % 2**64


def _mix(number: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """splitmix64: spreads consecutive numbers; the same on every platform and version."""
    with np.errstate(over="ignore"):
        number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
