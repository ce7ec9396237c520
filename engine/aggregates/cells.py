"""Cells: aggregates of many keys and slices side by side in arrays, one row added at a time.

    rows --outside--> those that no cell can take, which become partials by themselves
    rows --add--> cells <--merge-- partials
                  cells --take--> partial columns, the same as `Accumulator.lift` and `reduce` give

Order    partials merge exactly, so it does not show which rows went which way.
Cost     a row costs a few nanoseconds per aggregate; a batch costs no query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.aggregates import exact, squares
from engine.frames import present
from engine.kernels import active

At = npt.NDArray[np.int32]
"""The cell of each row."""

Taken = npt.NDArray[np.int64]
"""Some cells."""

Flags = npt.NDArray[np.bool_]

MOST_ROWS = 2**22
"""Take all cells before they hold more rows than this: limbs of 40 bits do not run over then."""


_MOST_TOP = 2**40
"""What the top limb of a partial is below: `MOST_ROWS` of them do not run over."""


class Cells(ABC):
    """The partial columns of one accumulator, or of a part of one, per cell."""

    @abstractmethod
    def reserve(self, cells: int) -> None:
        """Have at least so many cells; new ones are empty."""

    def outside(self, values: pl.Series) -> Flags | None:
        """Which rows `add` cannot take; None for no row."""
        return None

    @abstractmethod
    def add(self, at: At, values: pl.Series) -> None:
        """Add the value of each row to its cell; nulls are left out."""

    @abstractmethod
    def odd(self, partials: pl.DataFrame) -> Flags | None:
        """Which partials `merge` cannot take; None for none."""

    @abstractmethod
    def merge(self, at: At, partials: pl.DataFrame) -> None:
        """Merge each partial with its cell."""

    @abstractmethod
    def read(self, cells: Taken) -> list[pl.Series]:
        """The partial columns of some cells."""

    @abstractmethod
    def clear(self, cells: Taken) -> None:
        """Make some cells empty."""

    def take(self, cells: Taken) -> list[pl.Series]:
        """The partial columns of some cells, which are empty then."""
        found = self.read(cells)
        self.clear(cells)
        return found


class SumCells(Cells):
    """Cells of which a partial that was merged can be taken out again."""

    @abstractmethod
    def remove(self, at: At, partials: pl.DataFrame) -> None:
        """Take each partial out of its cell."""


class WholeSumCells(SumCells):
    """The sum of integers or booleans."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._sums = np.zeros(0, dtype=np.int64)

    def reserve(self, cells: int) -> None:
        """Have at least so many cells."""
        self._sums = extended(self._sums, cells, 0)

    def add(self, at: At, values: pl.Series) -> None:
        """Add the values."""
        at, known = _known(at, values.cast(pl.Int64))
        active().add_whole(at, known.to_numpy(), self._sums)

    def odd(self, partials: pl.DataFrame) -> Flags | None:
        """None: a cell holds any."""
        return None

    def merge(self, at: At, partials: pl.DataFrame) -> None:
        """Add the sums."""
        active().add_whole(at, partials.get_column(self._name).to_numpy(), self._sums)

    def remove(self, at: At, partials: pl.DataFrame) -> None:
        """Add the opposite."""
        active().add_whole(at, -partials.get_column(self._name).to_numpy(), self._sums)

    def read(self, cells: Taken) -> list[pl.Series]:
        """The sums."""
        return [pl.Series(self._name, self._sums[cells])]

    def clear(self, cells: Taken) -> None:
        """Back to 0."""
        self._sums[cells] = 0


class CountCells(WholeSumCells):
    """How many values are not null: the sum of ones."""

    def add(self, at: At, values: pl.Series) -> None:
        """Count the rows that have a value."""
        at, _ = _known(at, values)
        active().count(at, self._sums)


class ExactSumCells(SumCells):
    """The sum of floats in limbs: see `exact`."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns
        self._limbs = np.zeros(0, dtype=np.int64)

    def reserve(self, cells: int) -> None:
        """Have at least so many cells."""
        self._limbs = extended(self._limbs, 4 * cells, 0)

    def outside(self, values: pl.Series) -> Flags | None:
        """Infinities, NaN, and what is too large or too small for the limbs."""
        bits = _bits(values.fill_null(0.0) if values.null_count() else values)
        rows = np.empty(len(bits), dtype=np.bool_)
        return rows if active().outside(bits, rows) else None

    def add(self, at: At, values: pl.Series) -> None:
        """Add the values to the limbs."""
        at, known = _known(at, values)
        active().add_exact(at, _bits(known), self._limbs)

    def odd(self, partials: pl.DataFrame) -> Flags | None:
        """Sums with a special or a rest, and those of which the limbs could run over."""
        *limbs, special, rest = (partials.get_column(name) for name in self._columns)
        rows: Flags = (special.to_numpy() != 0.0) | (np.abs(limbs[-1].to_numpy()) >= _MOST_TOP)
        if rest.null_count() < len(rest):
            rows |= present(rest)
        return rows if rows.any() else None

    def merge(self, at: At, partials: pl.DataFrame) -> None:
        """Add the limbs."""
        for limb, name in enumerate(self._columns[:4]):
            active().add_whole(at * 4 + limb, partials.get_column(name).to_numpy(), self._limbs)

    def remove(self, at: At, partials: pl.DataFrame) -> None:
        """Add the opposite."""
        for limb, name in enumerate(self._columns[:4]):
            opposite = -partials.get_column(name).to_numpy()
            active().add_whole(at * 4 + limb, opposite, self._limbs)

    def read(self, cells: Taken) -> list[pl.Series]:
        """The limbs, carried; no specials, no rests."""
        found = np.empty((4, len(cells)), dtype=np.int64)
        active().read_limbs(cells, self._limbs, found)
        *limbs, rest = exact.spilled(list(found), exact.no_rests(len(cells)))
        special = pl.Series(np.zeros(len(cells)))
        parts = zip([*limbs, special, rest], self._columns, strict=True)
        return [part.alias(name) for part, name in parts]

    def clear(self, cells: Taken) -> None:
        """Back to 0."""
        self._limbs.reshape(-1, 4)[cells] = 0


class SquareSumCells(ExactSumCells):
    """The sum of the squares of floats."""

    def outside(self, values: pl.Series) -> Flags | None:
        """What has a square that is too large or too small for the limbs, or is not finite."""
        known = values.fill_null(0.0) if values.null_count() else values
        size = np.abs(_floats(known))
        # Also where it is NaN.
        rows: Flags = ~((size == 0.0) | ((size >= squares.SMALLEST) & (size < 2.0**32)))
        return rows if rows.any() else None

    def add(self, at: At, values: pl.Series) -> None:
        """Add both parts of each square."""
        at, known = _known(at, values)
        for part in squares.parts(_floats(known)):
            active().add_exact(at, part.view(np.int64), self._limbs)


class ExtremeCells(Cells):
    """The smallest or largest value."""

    def __init__(self, name: str, dtype: pl.DataType, *, largest: bool) -> None:
        self._name, self._dtype, self._largest = name, dtype, largest
        self._floats = dtype.is_float()
        self._physical = pl.Series(dtype=dtype).to_physical().dtype
        self._worst: float = -np.inf if largest else np.inf
        if not self._floats:
            whole = np.iinfo(np.int64)
            self._worst = whole.min if largest else whole.max
        self._best: npt.NDArray[Any] = np.zeros(0, dtype=np.float64 if self._floats else np.int64)
        self._seen = np.zeros(0, dtype=np.bool_)

    def reserve(self, cells: int) -> None:
        """Have at least so many cells."""
        self._best = extended(self._best, cells, self._worst)
        self._seen = extended(self._seen, cells, 0)

    def outside(self, values: pl.Series) -> Flags | None:
        """NaN, which has no place in an order."""
        if not self._floats:
            return None
        rows: Flags = np.isnan(values.to_numpy()) & present(values)
        return rows if rows.any() else None

    def add(self, at: At, values: pl.Series) -> None:
        """Keep the better of each two."""
        at, known = _known(at, values.cast(self._dtype))
        if self._floats:
            numbers = known.cast(pl.Float64).to_numpy()
            active().keep_float(at, numbers, self._best, self._seen, self._largest)
        else:
            whole = known.cast(pl.Int64).to_numpy()
            active().keep_whole(at, whole, self._best, self._seen, self._largest)

    def odd(self, partials: pl.DataFrame) -> Flags | None:
        """NaN."""
        return self.outside(partials.get_column(self._name))

    def merge(self, at: At, partials: pl.DataFrame) -> None:
        """Keep the better of each two."""
        self.add(at, partials.get_column(self._name))

    def read(self, cells: Taken) -> list[pl.Series]:
        """The best values; null where there was none."""
        best, seen = pl.Series(self._name, self._best[cells]), self._seen[cells]
        if not seen.all():
            best = best.zip_with(pl.Series(seen), pl.Series([None], dtype=best.dtype))
        return [best.cast(self._physical).cast(self._dtype)]

    def clear(self, cells: Taken) -> None:
        """Back to none."""
        self._best[cells] = self._worst
        self._seen[cells] = False


def extended(cells: npt.NDArray[Any], wanted: int, empty: float) -> npt.NDArray[Any]:
    """The same cells and more, which hold what `empty` is."""
    if len(cells) >= wanted:
        return cells
    more = (
        np.zeros(wanted, dtype=cells.dtype) if empty == 0 else np.full(wanted, empty, cells.dtype)
    )
    more[: len(cells)] = cells
    return more


def _known(at: At, values: pl.Series) -> tuple[At, pl.Series]:
    """The rows that have a value."""
    if not values.null_count():
        return at, values
    known = values.is_not_null()
    return at[known.to_numpy()], values.filter(known)


def _floats(values: pl.Series) -> npt.NDArray[np.float64]:
    return values.to_numpy() if values.dtype == pl.Float64 else values.cast(pl.Float64).to_numpy()


def _bits(values: pl.Series) -> npt.NDArray[np.int64]:
    return _floats(values).view(np.int64)
