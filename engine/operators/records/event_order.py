"""Event order: the waiting rows of one input or two, as one sequence by event time.

    left   ──sorted──▶ (time, key) ┐
                                   ├──sort──▶ left, right, left, … ──▶ each side's next row
    right  ──sorted──▶ (time, key) ┘

Order    by event time, then key, then input, then all other columns: rows that are equal in these
         cannot be told apart, so there is one order, whatever batches and splits they came in. A
         row without a key goes before the rows of its time that have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import polars as pl

from engine.elements import EVENT_TIME, KEY_GROUP, Micros
from engine.functions.row_class import RowClass
from engine.operators.records.rows import columns_of, rows_of
from engine.operators.records.slots import slots_of
from engine.state.handles import Key

Arrived = tuple[int, Any, int, Micros]
"""Input, row, place of its key in `EventOrder.keys`, event time."""

_INPUT = "input"


def in_total_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows that are in order of event time, with those of one time in order of their values.

    Between splits the order of arrival is a matter of speed.
    """
    times = rows.get_column(EVENT_TIME).to_numpy()
    if not (times[1:] == times[:-1]).any():
        return rows
    return rows.sort([EVENT_TIME, *(name for name in rows.columns if name != EVENT_TIME)])


class EventOrder:
    """Rows in order; each is made when it is asked for."""

    def __init__(self) -> None:
        self._slots: dict[Key, int] = {}
        self._inputs: list[pl.DataFrame] = []
        self._arrived: list[Iterator[Arrived]] = []

    @property
    def keys(self) -> list[Key]:
        """All different keys."""
        return list(self._slots)

    def add(
        self,
        port: int,
        rows: pl.DataFrame,
        names: Sequence[str],
        visible: Iterable[str],
        made: RowClass | None = None,
    ) -> None:
        """Add the rows of an input, which are in order; the inputs in theirs.

        `names`: the key columns. `visible`: the columns that authors see. `made`: the rows' class.
        """
        columns = columns_of(rows)
        keys, places = slots_of(columns, names, rows.get_column(KEY_GROUP).to_list())
        slots = self.add_keys(keys)
        seen = rows_of({name: columns[name] for name in visible}, made)
        own = (slots[place] for place in places)
        self._arrived.append(zip(repeat(port), seen, own, columns[EVENT_TIME], strict=False))
        unnamed = [pl.col(name).alias(f"key {number}") for number, name in enumerate(names)]
        self._inputs.append(
            rows.select(EVENT_TIME, KEY_GROUP, *unnamed, pl.lit(len(self._inputs)).alias(_INPUT))
        )

    def add_keys(self, keys: Iterable[Key]) -> list[int]:
        """Give keys a place, if they have none; tell the places."""
        return [self._slots.setdefault(key, len(self._slots)) for key in keys]

    def rows(self) -> Iterator[Arrived]:
        """All rows, in order. To be asked once."""
        if len(self._inputs) == 1:
            return self._arrived[0]
        return (next(self._arrived[number]) for number in self._next_inputs())

    def _next_inputs(self) -> Iterable[int]:
        """Which input has the next row. Each is in order, so that this is all there is to know."""
        if not self._inputs:
            return ()
        merged = pl.concat(self._inputs, how="diagonal")
        by = [name for name in merged.columns if name != _INPUT]
        return merged.sort(by, maintain_order=True).get_column(_INPUT).to_list()
