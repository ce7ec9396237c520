"""Numbers of keys: 0, 1, 2 … in the order in which keys are first seen, for lookups in arrays.

>>> numbers = KeyNumbers({"user": pl.String()})
>>> numbers.add([pl.Series(["ann", "bob", "ann"])]).tolist()
[0, 1, 0]
>>> numbers.find([pl.Series(["bob", "eve"])]).tolist()
[1, -1]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.operators.expressions import Schema

Numbers = npt.NDArray[np.int64]

_NUMBER = "number"


class KeyNumbers:
    """Which number each known key has. Not part of a snapshot: made again from the state."""

    def __init__(self, keys: Schema) -> None:
        self._columns = [str(place) for place in range(len(keys))]
        types = dict(zip(self._columns, keys.values(), strict=True))
        self._known = pl.DataFrame(schema={**types, _NUMBER: pl.Int64()})

    def __len__(self) -> int:
        return self._known.height

    def find(self, keys: Sequence[pl.Series]) -> Numbers:
        """The numbers of keys; -1 for those that are not known."""
        return self._joined(keys).fill_null(-1).to_numpy()

    def add(self, keys: Sequence[pl.Series]) -> Numbers:
        """The numbers of keys; those that are not known get the next ones."""
        found = self._joined(keys)
        if found.null_count():
            rows = self._rows(keys)
            fresh = rows.filter(found.is_null()).unique(maintain_order=True)
            numbers = pl.int_range(len(self), len(self) + fresh.height, eager=True)
            self._known = pl.concat([self._known, fresh.with_columns(numbers.alias(_NUMBER))])
            found = self._joined(keys)
        return found.to_numpy()

    def _rows(self, keys: Sequence[pl.Series]) -> pl.DataFrame:
        columns = zip(self._columns, keys, strict=True)
        return pl.DataFrame([series.alias(name) for name, series in columns])

    def _joined(self, keys: Sequence[pl.Series]) -> pl.Series:
        rows = self._rows(keys)
        found = rows.join(self._known, on=self._columns, how="left", maintain_order="left")
        return found.get_column(_NUMBER)
