"""Frozen states that are larger than memory: their tables come in parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import polars as pl

from engine.state.contract import FrozenState
from engine.state.schema import table_schema

T = TypeVar("T")


def in_parts(
    found: Iterable[T], size_of: Callable[[T], int], limit_bytes: int
) -> Iterator[list[T]]:
    """What is found, about so many bytes at a time."""
    part: list[T] = []
    part_bytes = 0
    for each in found:
        part.append(each)
        part_bytes += size_of(each)
        if part_bytes >= limit_bytes:
            yield part
            part, part_bytes = [], 0
    if part:
        yield part


class PartedState(FrozenState):
    """A state of which the table exists part by part only."""

    def table(self) -> pl.DataFrame:
        """The canonical table, whole: for states that are known to be small."""
        parts = list(self.tables())
        return pl.concat(parts) if parts else pl.DataFrame(schema=table_schema(self.descriptor))

    @abstractmethod
    def tables(self) -> Iterator[pl.DataFrame]:
        """The canonical table in parts."""
