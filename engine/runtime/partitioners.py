"""Partitioners: which subtask of the target gets a row.

Order    rows keep their order within each target.
Cost     a hash edge filters the columns once per target: 270 µs for 16,384 rows and 2 targets,
         half of what sorting by target and slicing costs, until there are 8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from engine.elements import KEY_GROUP
from engine.graph.jobgraph import Partitioning
from engine.keygroups import subtask_of

Routed = Iterator[tuple[int, pl.DataFrame]]
"""(index of the target subtask, its rows)."""

Partitioner = Callable[[pl.DataFrame], Routed]


def partitioner(
    partitioning: Partitioning, targets: int, max_parallelism: int, start: int
) -> Partitioner:
    """Return the function that deals out frames; `start` is where a rebalance begins."""
    match partitioning:
        case Partitioning.HASH if targets > 1:
            return _Hash(targets, max_parallelism)
        case Partitioning.BROADCAST:
            return lambda frame: ((target, frame) for target in range(targets))
        case Partitioning.REBALANCE | Partitioning.RESCALE if targets > 1:
            return _Rebalance(targets, start)
        case _:
            return lambda frame: iter(((0, frame),))


class _Hash:
    """Rows go to the subtask that owns their key group."""

    def __init__(self, targets: int, max_parallelism: int) -> None:
        groups = range(max_parallelism)
        self._targets = np.array(
            [subtask_of(group, targets, max_parallelism) for group in groups], dtype=np.intp
        )

    def __call__(self, frame: pl.DataFrame) -> Routed:
        targets = self._targets[frame.get_column(KEY_GROUP).to_numpy()]
        columns = frame.get_columns()
        for target, rows in enumerate(np.bincount(targets).tolist()):
            if rows == frame.height:
                yield target, frame
            elif rows:
                mask = pl.Series(targets == target)
                yield target, pl.DataFrame([column.filter(mask) for column in columns])


class _Rebalance:
    """Whole batches go to the targets in turn."""

    def __init__(self, targets: int, start: int) -> None:
        self._targets = targets
        self._next = start % targets

    def __call__(self, frame: pl.DataFrame) -> Routed:
        yield self._next, frame
        self._next = (self._next + 1) % self._targets
