"""Versions of keys: which one is valid at a time, found for whole batches at once.

    add      versions that event time has passed      [default row | latest of each key | fresh …]
    look_up  key and time ──▶ row: the last fresh one up to that time, else the latest before
    settle   the last fresh version of a key becomes its latest

Order    of a key's versions of one time the largest counts, by its columns from left to right:
         that does not depend on which came first.
Cost     a lookup is a look into an array, and a binary search when the key has fresh versions.
         Versions that nobody can ask for any more are dropped when they are as many as the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from engine.elements import EVENT_TIME, MIN_TIME, Micros
from engine.kernels import KeySlots, active
from engine.state.contract import StateDescriptor

NUMBER = "version.number"
_PLACE = "version.place"

_SLACK = 1_024
"""So many versions may be of no use before they are dropped, even when there are few."""

_MOST_KEYS = 2**18
"""So many keys without a version may be known, then they are forgotten: most may not come again."""

_Whole = npt.NDArray[np.int64]


class Versions:
    """The versions of one subtask's keys; row 0 is what rows get that find none."""

    def __init__(
        self,
        state: StateDescriptor,
        default: pl.DataFrame,
        ttl: Micros | None,
        held: pl.DataFrame,
        max_parallelism: int,
    ) -> None:
        """`held`: versions of a snapshot, among them some that are not the latest of their key.
        `default`: one row like them.
        """
        self._keys = list(state.keys)
        self._order = [EVENT_TIME, *(name for name in state.values if name != EVENT_TIME)]
        self._default = default
        self._ttl = Micros(0) if ttl is None else ttl
        self._slots = KeySlots(self._keys, max_parallelism)
        self._load(held)

    def _load(self, held: pl.DataFrame) -> None:
        self._slots.clear()
        self._rows = self._default
        self._times = np.array([MIN_TIME], dtype=np.int64)
        self._latest, self._begins, self._ends = (np.zeros(0, dtype=np.int64) for _ in range(3))
        self._fresh = np.zeros(0, dtype=np.int32)
        if held.height:
            self.add(held)
            self._settle_fresh()
        self._limit = 2 * self._rows.height + _SLACK

    @property
    def rows(self) -> pl.DataFrame:
        """All versions that are kept."""
        return self._rows.slice(1)

    def column(self, name: str, rows: npt.NDArray[np.uint32]) -> pl.Series:
        """A column of the versions that were found."""
        return self._rows.get_column(name)[pl.Series(rows)]

    def add(self, fresh: pl.DataFrame) -> None:
        """Add versions that are not older than those that have settled."""
        slots = self._slots.of(fresh)
        self._grow()
        order = self._in_order(fresh, slots)
        slots = slots[order]
        start = self._rows.height
        self._rows = pl.concat([self._rows, fresh[order]], rechunk=True)
        self._times = self._rows.get_column(EVENT_TIME).to_numpy()
        firsts = np.flatnonzero(np.diff(slots, prepend=-1))
        self._fresh = slots[firsts]
        self._begins[self._fresh] = firsts + start
        self._ends[self._fresh] = np.append(firsts[1:], len(slots)) + start

    def _in_order(self, fresh: pl.DataFrame, slots: npt.NDArray[np.int32]) -> _Whole:
        """The order of versions by key, time, and the columns that decide between equal times."""
        times = fresh.get_column(EVENT_TIME).to_numpy()
        order: _Whole = np.lexsort((times, slots))
        equal = (np.diff(slots[order]) == 0) & (np.diff(times[order]) == 0)
        if not equal.any():
            return order
        columns = [fresh.get_column(name) for name in self._order]
        ranked = pl.DataFrame([pl.Series(NUMBER, slots), *columns])
        places = pl.int_range(len(slots), eager=True).alias(_PLACE)
        return ranked.insert_column(0, places).sort(NUMBER, *self._order)[_PLACE].to_numpy()

    def look_up(self, keys: Sequence[pl.Series], times: pl.Series) -> npt.NDArray[np.uint32]:
        """The row of the version that is valid for each key and time; 0 for none."""
        found = np.empty(len(times), dtype=np.uint32)
        columns = zip(keys, self._keys, strict=True)
        slots = self._slots.of(pl.DataFrame([key.alias(name) for key, name in columns]))
        self._grow()
        fresh = self._begins, self._ends
        active().latest_rows(
            slots, times.to_numpy(), self._latest, fresh, self._times, self._ttl, found
        )
        return found

    def settle(self, time: Micros) -> None:
        """Keep the latest version of each key before a time: none older will be asked for."""
        self._settle_fresh()
        unknown = len(self._slots) - self._rows.height
        if self._rows.height > self._limit or unknown > _MOST_KEYS:
            latest = self._latest[self._latest > 0]
            if self._ttl:
                latest = latest[self._times[latest] > time - self._ttl]
            self._load(self._rows[np.sort(latest)])

    def _settle_fresh(self) -> None:
        self._latest[self._fresh] = self._ends[self._fresh] - 1
        self._begins[self._fresh] = self._ends[self._fresh] = 0
        self._fresh = self._fresh[:0]

    def _grow(self) -> None:
        """Make room in the arrays for keys that are new."""
        missing = len(self._slots) - len(self._latest)
        if missing > 0:
            more = np.zeros(max(missing, len(self._latest)), dtype=np.int64)
            self._latest, self._begins, self._ends = (
                np.concatenate([array, more]) for array in (self._latest, self._begins, self._ends)
            )
