"""Key by: stamps each row with its key group, so that keys hash once. Broadcast: with none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import polars as pl

from engine.elements import KEY_GROUP
from engine.kernels import KeySlots, active, plain
from engine.keygroups import key_groups
from engine.operators.contract import Context, Operator

_MOST_KEYS = 2**18
"""More are hashed row by row: looking them up would not fit into the processor's cache."""


class KeyBy(Operator):
    """Adds the column `key_group`. Runs before the hash edge that partitions by it."""

    name: ClassVar[str] = "key_by"

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)

    def open(self, ctx: Context) -> None:
        """Know no key yet."""
        self._slots: KeySlots | None = KeySlots(self.keys, ctx.max_parallelism)
        self._groups = np.zeros(0, dtype=np.uint16)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Stamp the rows of a batch."""
        columns = [column for column in frame.get_columns() if column.name != KEY_GROUP]
        ctx.emit(pl.DataFrame([*columns, self._key_groups(frame, ctx)]))

    def _key_groups(self, frame: pl.DataFrame, ctx: Context) -> pl.Series:
        """The key group of each row: looked up, as most keys have come before."""
        # The plain loops take longer than hashing.
        if self._slots is None or active() is plain:
            return key_groups(frame, self.keys, ctx.max_parallelism)
        slots = self._slots.of(frame)
        if len(self._slots) > len(self._groups):
            self._groups = self._slots.known()[0].to_numpy()
        groups = pl.Series(KEY_GROUP, self._groups[slots])
        if len(self._slots) > _MOST_KEYS:
            self._slots = None
        return groups

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        return {"keys": ", ".join(self.keys)}


class ToAll(Operator):
    """Stamps rows that every subtask of the next operator gets.

    Needs    to run as one subtask: then all get the rows in the same order.
    """

    name: ClassVar[str] = "broadcast"

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Give rows the key group of what has no key."""
        ctx.emit(frame.with_columns(pl.lit(0, pl.UInt16).alias(KEY_GROUP)))
