"""What a subtask holds at a barrier: references only, ready to be written on another thread.

    Task --at the barrier--> TaskSnapshot --writer.py, other thread--> SubtaskSnapshot
    Manifest --restore.py--> RestoredOperator, one per operator --> Task of a new attempt

Cost     taking one copies no rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from engine.connectors.contract import Json
from engine.elements import MIN_TIME, Barrier, Micros
from engine.graph.jobgraph import TaskId
from engine.keygroups import KeyGroupRange
from engine.operators.sources.source import SplitState
from engine.state.contract import Frozen


@dataclass(frozen=True, slots=True)
class OperatorSnapshot:
    """One operator of one subtask, as it was at a barrier."""

    uid: str
    watermark: Micros
    key_groups: KeyGroupRange
    states: tuple[Frozen, ...] = ()
    splits: Mapping[str, SplitState] = field(default_factory=dict)
    committables: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """One subtask, as it was at a barrier. Times are processing time, µs."""

    task: TaskId
    barrier: Barrier
    operators: tuple[OperatorSnapshot, ...]
    first_barrier: Micros
    """When the first barrier of the checkpoint came in."""
    aligned: Micros
    """When the last one came in, and this snapshot was taken."""


@dataclass(frozen=True, slots=True)
class RestoredOperator:
    """What one operator of one subtask starts from."""

    uid: str
    watermark: Micros = MIN_TIME
    tables: Mapping[str, Iterable[pl.DataFrame]] = field(default_factory=dict)
    """Canonical table per state name, in parts that are read as they are asked for: rows of this
    subtask's key groups only. Raises SnapshotCorrupt, StorageError."""
    splits: Mapping[str, SplitState] = field(default_factory=dict)
    """The splits of all subtasks: each source subtask picks its own."""
    committables: tuple[Json, ...] = ()
    """Those of all subtasks, at subtask 0; none elsewhere."""
