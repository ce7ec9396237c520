"""How many different values, roughly: a HyperLogLog sketch.

    hash of a value:  index of a register | the rest: how many zeros it begins with, and one

Each register keeps the largest such rank. The largest of two is the same in any order, so sketches
merge exactly, and a value that comes again changes nothing.

Shapes   a partial is a sorted list of the registers that were hit: index · 64 + rank. It has as
         many entries as there are values, and at most one per register.
Units    the relative standard error is 1.04 / √registers, from a few values up to 2^60; few values
         are counted nearly exactly.
Cost     4 bytes per register of a key and slice; a result takes some 20 µs.
Source   Flajolet, Fusy, Gandouet, Meunier, HyperLogLog, 2007; the estimate is that of Ertl, New
         cardinality estimation algorithms for HyperLogLog sketches, 2017 (section 4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.aggregates.accumulators import Accumulator
from engine.aggregates.hashing import Hashes, hashes

_RANKS = 64
"""A rank is below this, so a register and its rank are one number."""
_REGISTERS = pl.List(pl.Int32())


class UniqueSketch(Accumulator):
    """How many different values that are not null, to a relative standard error."""

    def __init__(self, name: str, accuracy: float) -> None:
        super().__init__(name)
        self._registers = f"{name}.registers"
        self._bits = max(4, math.ceil(2 * math.log2(1.04 / accuracy)))

    @property
    def columns(self) -> Mapping[str, pl.DataType]:
        """Names and types of the partial columns."""
        return {self._registers: _REGISTERS}

    def lift(self, values: pl.Series) -> Sequence[pl.Series]:
        """Turn values into registers."""
        if values.dtype == pl.Null:
            return [values.cast(pl.Int32).alias(self._registers)]
        hashed = hashes(values)
        index = (hashed >> np.uint64(64 - self._bits)).astype(np.int32)
        rank = np.minimum(_leading_zeros(hashed << np.uint64(self._bits)), 64 - self._bits) + 1
        registers = pl.Series(self._registers, index * _RANKS + rank, dtype=pl.Int32)
        nulls = pl.Series([None], dtype=pl.Int32).new_from_index(0, len(values))
        return [
            registers.zip_with(values.is_not_null(), nulls) if values.null_count() else registers
        ]

    def reduce(self, frame: pl.DataFrame) -> Sequence[pl.Expr]:
        """Put the registers of a group side by side; `finish` keeps the largest of each."""
        column = pl.col(self._registers)
        if isinstance(frame.schema[self._registers], pl.List):
            column = column.explode()
        return [column.drop_nulls()]

    def finish(self, frame: pl.DataFrame) -> Sequence[pl.Series]:
        """The largest rank of each register, sorted by register."""
        register = pl.col(self._registers)
        numbered = frame.select(self._registers).with_row_index("row")
        single = numbered.explode(self._registers).drop_nulls()
        largest = single.group_by("row", register // _RANKS).agg(register.max().alias("largest"))
        ordered = largest.sort("row", "largest")
        lists = ordered.group_by("row", maintain_order=True).agg(pl.col("largest"))
        found = numbered.select("row").join(lists, on="row", how="left", maintain_order="left")
        filled = found.get_column("largest").fill_null(pl.Series([[]], dtype=_REGISTERS))
        return [filled.alias(self._registers)]

    def result(self, frame: pl.DataFrame) -> pl.Series:
        """The estimate, rounded."""
        held = (registers.to_numpy() for registers in frame.get_column(self._registers))
        counts = [round(self._estimate(registers % _RANKS)) for registers in held]
        return pl.Series(self.name, counts, dtype=pl.Int64)

    def _estimate(self, ranks: npt.NDArray[np.int32]) -> float:
        """How many values would leave such ranks."""
        registers, deepest = 1 << self._bits, 64 - self._bits
        counts = np.bincount(ranks, minlength=deepest + 2).tolist()
        counts[0] = registers - len(ranks)
        z = registers * _tau(1 - counts[deepest + 1] / registers)
        for count in counts[deepest:0:-1]:
            z = (z + count) / 2
        z += registers * _sigma(counts[0] / registers)
        return registers * registers / (2 * math.log(2) * z)


def _leading_zeros(words: Hashes) -> npt.NDArray[np.int32]:
    """Of 64 bits. In halves, which floats hold exactly."""
    high, low = words >> np.uint64(32), words & np.uint64(2**32 - 1)
    bits = np.where(
        high > 0, np.frexp(high.astype(np.float64))[1] + 32, np.frexp(low.astype(np.float64))[1]
    )
    zeros: npt.NDArray[np.int32] = (64 - bits).astype(np.int32)
    return zeros


def _sigma(x: float) -> float:
    """Corrects for registers that were never hit."""
    if x == 1.0:
        return math.inf
    y, z, before = 1.0, x, -1.0
    while z != before:
        x *= x
        before = z
        z += x * y
        y += y
    return z


def _tau(x: float) -> float:
    """Corrects for registers that can grow no more."""
    if x in (0.0, 1.0):
        return 0.0
    y, z, before = 1.0, 1 - x, -1.0
    while z != before:
        x = math.sqrt(x)
        before = z
        y /= 2
        z -= (1 - x) ** 2 * y
    return z / 3
