"""Handles of keyed state: what an operator reads and writes, the same for every backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from engine.elements import Micros

Key = tuple[Any, ...]
"""The key group, then one Python object per key column."""

Merge = Callable[[pl.DataFrame, Sequence[str], Sequence[str]], pl.DataFrame]
"""Combines the rows of a frame that agree in some columns, and therefore in some others too."""


class ValueHandle(ABC):
    """One value per key. A key without a value is absent."""

    @abstractmethod
    def get_many(self, keys: Iterable[Key]) -> dict[Key, Any]:
        """The values of those keys that have one."""

    @abstractmethod
    def put_many(self, values: Mapping[Key, Any]) -> None:
        """Set values; `DELETED` removes the key's value."""


class _Deleted:
    def __repr__(self) -> str:
        return "DELETED"


DELETED = _Deleted()
"""Put in place of a value to remove it."""


class RunsHandle(ABC):
    """Immutable runs of partials: rows (key_group, keys…, slice_end, values…) per slice."""

    @abstractmethod
    def merge_with(self, merge: Merge) -> None:
        """Say how partials combine. Called once, before anything else."""

    @abstractmethod
    def append(self, run: pl.DataFrame) -> None:
        """Add partials of any keys and slices."""

    @abstractmethod
    def take_until(self, time: Micros) -> pl.DataFrame | None:
        """Remove all slices with slice_end <= time; their merged rows, or None for none."""

    @abstractmethod
    def slice_ends(self) -> Sequence[int]:
        """The ends of all slices that hold something, in order."""

    @abstractmethod
    def read(self, after: int, until: int) -> Sequence[pl.DataFrame]:
        """The runs of slices with after < slice_end <= until, which stay; not merged."""

    @abstractmethod
    def drop_until(self, time: int) -> None:
        """Remove all slices with slice_end <= time."""
