"""Key by: stamps each row with its key group, so that keys hash once. Broadcast: with none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import polars as pl

from engine.elements import KEY_GROUP
from engine.keygroups import key_groups
from engine.operators.contract import Context, Operator


class KeyBy(Operator):
    """Adds the column `key_group`. Runs before the hash edge that partitions by it."""

    name: ClassVar[str] = "key_by"

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = tuple(keys)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Hash the keys of a batch."""
        ctx.emit(frame.with_columns(key_groups(frame, self.keys, ctx.max_parallelism)))

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
