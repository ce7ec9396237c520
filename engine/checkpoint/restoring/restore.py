"""Restore: from the manifest of a snapshot to what each subtask of a job starts from.

    load_manifest --> check_restore (compatibility.py) --> assign --SubtaskRestore, as JSON-->
    worker: read_restore --> RestoredOperator --> Task

Order    keyed state goes by key-group range, so to any parallelism; splits are assigned anew among
         the subtasks of the source; every staged committable goes to subtask 0; an operator's
         watermark is the smallest of its old subtasks.
Errors   RestoreError and SnapshotCorrupt, each with one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from engine.checkpoint.format.entries import OperatorEntry, OperatorPart, StateEntry
from engine.checkpoint.format.files import JsonObject
from engine.checkpoint.format.frozen import RestoredOperator
from engine.checkpoint.format.layers import chain_parts, chains
from engine.checkpoint.format.manifest import METADATA, Manifest, parse_manifest
from engine.checkpoint.restoring.migration import ColumnMove, Migration, migration
from engine.checkpoint.restoring.renames import Renames
from engine.checkpoint.storage.addresses import open_folder
from engine.checkpoint.storage.folder import Folder, check_present, open_verified
from engine.elements import MAX_TIME, MIN_TIME, Micros
from engine.errors import RestoreError, SnapshotMissing
from engine.graph.jobgraph import Partitioning, TaskId
from engine.graph.plan import Plan, VertexPlan
from engine.keygroups import KeyGroupRange, range_of

OpenFolder = Callable[[str], Folder]

READ_AT_ONCE_BYTES = 2 << 30
"""Hashed in a few seconds, which is no more than people wait for a job to be accepted."""


@dataclass(frozen=True, slots=True)
class SubtaskRestore:
    """What one subtask has to read: the files that overlap its key groups, and the rest."""

    folder: str
    key_groups: KeyGroupRange
    operators: tuple[OperatorPart, ...]
    moves: Mapping[str, tuple[ColumnMove, ...]] = field(default_factory=dict)
    """By uid/state: the columns of states that migrate."""

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        return {
            "folder": self.folder,
            "key_groups": [self.key_groups.lo, self.key_groups.hi],
            "operators": [part.to_json() for part in self.operators],
            "moves": {
                path: [move.to_json() for move in moves] for path, moves in self.moves.items()
            },
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> SubtaskRestore:
        """Read what `to_json` gave."""
        lo, hi = value["key_groups"]
        return cls(
            folder=str(value["folder"]),
            key_groups=KeyGroupRange(int(lo), int(hi)),
            operators=tuple(OperatorPart.from_json(part) for part in value["operators"]),
            moves={
                path: tuple(map(ColumnMove.from_json, moves))
                for path, moves in value["moves"].items()
            },
        )


def load_manifest(url: str, open_at: OpenFolder = open_folder) -> Manifest:
    """Read the manifest of a snapshot. Raises RestoreError, SnapshotCorrupt, ConfigError.

    Of RestoreErrors, SnapshotMissing says that there is nothing.
    """
    folder = open_at(url)
    content = folder.read(METADATA)
    if content is not None:
        return parse_manifest(content, folder.url)
    if folder.is_file():
        msg = f"snapshot is a folder, and {folder.url} is a file; pass the folder that it lies in"
    elif not folder.exists():
        msg = f"snapshot is not there: no folder {folder.url}; check the path"
        raise SnapshotMissing(msg)
    else:
        msg = (
            f"folder {folder.url} is not a snapshot: it has no {METADATA}; pass the folder of one "
            "savepoint or checkpoint, the one that holds this file"
        )
    raise RestoreError(msg)


def assign(
    manifest: Manifest,
    folder: str,
    plan: Plan,
    renames: Renames = Renames(),  # noqa: B008 - it is frozen
) -> dict[TaskId, SubtaskRestore]:
    """Share a snapshot out among all subtasks of a job that `check_restore` has accepted."""
    manifest = renames.applied(manifest)
    moves = _moves(manifest, plan, renames)
    return {
        TaskId(vertex.id, subtask): replace(
            _subtask(manifest, folder, plan, vertex, subtask),
            moves={
                path: moves[path]
                for operator in vertex.operators
                for state in operator.states
                if (path := f"{operator.uid}/{state.name}") in moves
            },
        )
        for vertex in plan.vertices
        for subtask in range(vertex.parallelism)
    }


def read_restore(
    restore: SubtaskRestore, open_at: OpenFolder = open_folder
) -> tuple[RestoredOperator, ...]:
    """What one subtask starts from; its files are read and verified as the tables are."""
    folder = open_at(restore.folder)
    return tuple(
        RestoredOperator(
            uid=part.uid,
            watermark=part.watermark,
            tables={
                state.name: _StoredTable(
                    state, folder, restore.key_groups, restore.moves.get(f"{part.uid}/{state.name}")
                )
                for state in part.states
                if state.files
            },
            splits=part.splits,
            committables=part.committables,
        )
        for part in restore.operators
    )


def check_files(manifest: Manifest, url: str, open_at: OpenFolder = open_folder) -> None:
    """Look for files that are missing, torn or altered. Raises SnapshotCorrupt, StorageError.

    Those of a very large snapshot are not read here: its subtasks find what is altered, before any
    of them processes a row.
    """
    folder = open_at(url)
    read = manifest.size_bytes <= READ_AT_ONCE_BYTES
    for file in manifest.files:
        if read:
            open_verified(folder, file.path, file.stored).close()
        else:
            check_present(folder, file.path, file.stored)


def key_groups_of(plan: Plan, vertex: VertexPlan, subtask: int) -> KeyGroupRange:
    """The key groups of a subtask; all of them when its rows are not partitioned by key."""
    edges = (edge for edge in plan.edges if edge.target == vertex.id)
    if any(edge.partitioning == Partitioning.HASH for edge in edges):
        return range_of(subtask, vertex.parallelism, plan.max_parallelism)
    return KeyGroupRange(0, plan.max_parallelism)


def _moves(
    manifest: Manifest, plan: Plan, renames: Renames
) -> Mapping[str, tuple[ColumnMove, ...]]:
    moves = {}
    for operator in plan.operators:
        entry = manifest.operator(operator.uid)
        stored = {} if entry is None else {state.name: state for state in entry.states}
        for wanted in operator.states:
            if wanted.name in stored:
                columns = renames.columns(operator.uid, wanted.name)
                planned = migration(stored[wanted.name], wanted, columns)
                if planned.steps:
                    moves[f"{operator.uid}/{wanted.name}"] = planned.columns
    return moves


def _subtask(
    manifest: Manifest, folder: str, plan: Plan, vertex: VertexPlan, subtask: int
) -> SubtaskRestore:
    ours = key_groups_of(plan, vertex, subtask)
    entries = [manifest.operator(operator.uid) for operator in vertex.operators]
    return SubtaskRestore(
        folder=folder,
        key_groups=ours,
        operators=tuple(
            OperatorPart(
                uid=entry.uid,
                watermark=_watermark(manifest, entry),
                states=tuple(_overlapping(state, ours) for state in entry.states),
                splits=entry.splits,
                committables=entry.committables if subtask == 0 else (),
            )
            for entry in entries
            if entry is not None
        ),
    )


def _watermark(manifest: Manifest, entry: OperatorEntry) -> Micros:
    """Where event time goes on; a drained job's has reached its end, and would make all late."""
    if entry.watermark != MAX_TIME:
        return entry.watermark
    splits = (split for operator in manifest.operators for split in operator.splits.values())
    return MAX_TIME if all(split.finished for split in splits) else MIN_TIME


def _overlapping(state: StateEntry, ours: KeyGroupRange) -> StateEntry:
    # A state without keys is broadcast: whole, from the one subtask that wrote it, to all.
    files = tuple(file for file in state.files if not state.keys or file.key_groups.overlaps(ours))
    return StateEntry(state.name, state.kind, state.keys, state.values, files)


@dataclass(frozen=True, slots=True)
class _StoredTable:
    """The table of one state: its files are read part by part."""

    state: StateEntry
    folder: Folder
    ours: KeyGroupRange
    moves: tuple[ColumnMove, ...] | None

    def __iter__(self) -> Iterator[pl.DataFrame]:
        ours = self.ours if self.state.keys else None
        for chain in chains(self.state.files):
            for part in chain_parts(chain, self.folder, ours):
                yield part if self.moves is None else Migration(self.moves).apply(part)
