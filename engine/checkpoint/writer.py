"""The writer of snapshots: frozen state to Parquet, on any thread but the subtask's.

    TaskSnapshot --one Parquet file per state with rows--> folder --> SubtaskSnapshot, to be acked

Cost     all of the asynchronous part of a checkpoint; a state without rows costs no file. A state
         larger than memory is written part by part.
"""

from __future__ import annotations

import hashlib
import re
from itertools import chain

from engine import clock
from engine.checkpoint.folder import Folder
from engine.checkpoint.manifest import (
    METADATA,
    Manifest,
    OperatorPart,
    SnapshotTiming,
    StateEntry,
    StateFile,
    SubtaskSnapshot,
)
from engine.checkpoint.snapshot import OperatorSnapshot, TaskSnapshot
from engine.checkpoint.tables import write_parts
from engine.state.contract import FrozenState
from engine.state.schema import type_name


def write_snapshot(snapshot: TaskSnapshot, folder: Folder, sync_ms: int = 0) -> SubtaskSnapshot:
    """Write all states of a subtask; `sync_ms`: how long taking the snapshot held up the flow.

    Raises StorageError.
    """
    started = clock.monotonic()
    parts = [
        _write_operator(operator, snapshot.task.subtask, folder) for operator in snapshot.operators
    ]
    barrier = snapshot.barrier
    timing = SnapshotTiming(
        start_delay_ms=max(0, snapshot.first_barrier // 1_000 - barrier.triggered_ms),
        alignment_ms=(snapshot.aligned - snapshot.first_barrier) // 1_000,
        sync_ms=sync_ms,
        async_ms=round((clock.monotonic() - started) * 1_000),
    )
    return SubtaskSnapshot(snapshot.task, barrier.checkpoint_id, tuple(parts), timing)


def write_manifest(manifest: Manifest, folder: Folder) -> None:
    """Complete a snapshot: from here on it can be restored. Raises StorageError."""
    content = manifest.dump()
    folder.write(METADATA, lambda file: file.write(content), create=True)


def slug(name: str) -> str:
    """A file name for a uid: readable, and unique also where case does not count.

    >>> slug("daily totals"), slug("Daily totals")
    ('daily-totals-a7a4f85a', 'Daily-totals-f46f41c3')
    """
    readable = re.sub(r"[^A-Za-z0-9_.]+", "-", name)[:40].strip("-.")
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _write_operator(operator: OperatorSnapshot, subtask: int, folder: Folder) -> OperatorPart:
    return OperatorPart(
        uid=operator.uid,
        watermark=operator.watermark,
        states=tuple(_write_state(operator, state, subtask, folder) for state in operator.states),
        splits=operator.splits,
        committables=operator.committables,
    )


def _write_state(
    operator: OperatorSnapshot, state: FrozenState, subtask: int, folder: Folder
) -> StateEntry:
    descriptor = state.descriptor
    parts = (part for part in state.tables() if part.height)
    files: tuple[StateFile, ...] = ()
    if (first := next(parts, None)) is not None:
        path = f"{slug(operator.uid)}/{slug(descriptor.name)}-{subtask}.parquet"
        rows: list[int] = []
        stored = folder.write(
            path, lambda file: rows.append(write_parts(chain([first], parts), file))
        )
        files = (StateFile(path, rows[-1], stored.size_bytes, stored.sha256, operator.key_groups),)
    return StateEntry(
        name=descriptor.name,
        kind=descriptor.kind,
        keys={name: type_name(dtype) for name, dtype in descriptor.keys.items()},
        values={name: type_name(dtype) for name, dtype in descriptor.values.items()},
        files=files,
    )
