"""Small savepoints on disk, made of rows that a test writes down."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from engine.checkpoint.format.entries import OperatorEntry
from engine.checkpoint.format.frozen import OperatorSnapshot, TaskSnapshot
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.format.writer import write_manifest, write_snapshot
from engine.checkpoint.storage.addresses import open_folder
from engine.elements import Barrier, Micros, SnapshotKind
from engine.graph.jobgraph import TaskId
from engine.keygroups import range_of
from engine.operators.sources.source import SplitState
from engine.state.contract import FrozenState, StateDescriptor, StateKind
from engine.state.schema import table_schema

COUNTS = StateDescriptor("counts", StateKind.VALUE, {"k": pl.String()}, {"n": pl.Int64()})
PAGES = StateDescriptor(
    "pages", StateKind.MAP, {"k": pl.String()}, {"map_key": pl.String(), "value": pl.Int64()}
)
WAITING = StateDescriptor(
    "waiting", StateKind.ROWS, {"k": pl.String()}, {"event_time": pl.Int64(), "n": pl.Int64()}
)
HELD = StateDescriptor("held", StateKind.HELD, WAITING.keys, WAITING.values)
PANES = StateDescriptor(
    "panes", StateKind.FRAMES, {"k": pl.String()}, {"row.index": pl.Int64(), "n": pl.Int64()}
)


class Frozen(FrozenState):
    """Rows as they were."""

    def __init__(self, descriptor: StateDescriptor, rows: list[tuple[object, ...]]) -> None:
        self.descriptor = descriptor
        self._rows = rows

    def table(self) -> pl.DataFrame:
        return pl.DataFrame(self._rows, schema=table_schema(self.descriptor), orient="row")


def save(path: Path, *states: Frozen, split: int = 1) -> str:
    """Write a savepoint of one operator with some states."""
    folder, groups = open_folder(str(path)), range_of(0, 1, 128)
    operator = OperatorSnapshot(
        "count", Micros(5), groups, states, {"a": SplitState({"row": split}, Micros(5))}
    )
    barrier = Barrier(1, SnapshotKind.SAVEPOINT, folder=str(path))
    snapshot = TaskSnapshot(TaskId("v", 0), barrier, (operator,), Micros(0), Micros(0))
    part = write_snapshot(snapshot, folder).operators[0]
    entry = OperatorEntry("count", "count", "v", 1, 128, part.watermark, part.states, part.splits)
    manifest = Manifest(
        "f" * 32, "job", "hash", 1, SnapshotKind.SAVEPOINT, 0, "1", operators=(entry,)
    )
    write_manifest(manifest, folder)
    return str(path)


def counts(*rows: tuple[str, int | None]) -> Frozen:
    return Frozen(COUNTS, [(index, *row) for index, row in enumerate(rows)])
