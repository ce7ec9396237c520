"""Frozen states that are larger than memory: their tables come in parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import polars as pl

from engine.state.contract import FrozenState
from engine.state.schema import table_schema


class PartedState(FrozenState):
    """A state of which the table exists part by part only."""

    def table(self) -> pl.DataFrame:
        """The canonical table, whole: for states that are known to be small."""
        parts = list(self.tables())
        return pl.concat(parts) if parts else pl.DataFrame(schema=table_schema(self.descriptor))

    @abstractmethod
    def tables(self) -> Iterator[pl.DataFrame]:
        """The canonical table in parts."""
