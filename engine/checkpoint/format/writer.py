"""The writer of snapshots: frozen state to Parquet, on any thread but the subtask's.

    TaskSnapshot --one Parquet file per state with rows--> folder --> SubtaskSnapshot, to be acked
    what has changed in a large state --one or two files--> a layer on those of its base

Cost     all of the asynchronous part of a checkpoint; a state without rows costs no file. A state
         larger than memory is written part by part. One that has not changed costs nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import polars as pl

from engine import clock
from engine.checkpoint.format.entries import (
    OperatorPart,
    SnapshotTiming,
    StateEntry,
    SubtaskSnapshot,
)
from engine.checkpoint.format.files import Layer, StateFile
from engine.checkpoint.format.frozen import OperatorSnapshot, TaskSnapshot
from engine.checkpoint.format.layers import layer_of
from engine.checkpoint.format.manifest import METADATA, Manifest
from engine.checkpoint.format.shared import shared_path
from engine.checkpoint.format.tables import write_parts
from engine.checkpoint.storage.folder import Folder
from engine.elements import EVENT_TIME, Barrier
from engine.errors import InternalError
from engine.state.contract import (
    SLICE_END,
    Frozen,
    FrozenChanges,
    StateDescriptor,
    StateKind,
)
from engine.state.schema import type_name

_TIMES = {StateKind.RUNS: SLICE_END, StateKind.ROWS: EVENT_TIME}
"""The column by which rows leave a state all at once."""


def write_snapshot(
    snapshot: TaskSnapshot, folder: Folder, sync_ms: int = 0, chains: Chains | None = None
) -> SubtaskSnapshot:
    """Write all states of a subtask; `sync_ms`: how long taking the snapshot held up the flow.

    `chains`: the same one for all checkpoints of a subtask. Raises StorageError.
    """
    started = clock.monotonic()
    writing = _Writing(snapshot, folder, Chains() if chains is None else chains)
    parts = [writing.operator(operator) for operator in snapshot.operators]
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


class Chains:
    """The files of the checkpoints of one subtask that later ones may build on."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], dict[int, tuple[StateFile, ...]]] = {}

    def put(self, uid: str, state: str, barrier: Barrier, files: tuple[StateFile, ...]) -> None:
        """A checkpoint has written its part of a state; those before its base are over."""
        known = self._files.get((uid, state), {})
        base = barrier.base or 0
        kept = {id_: files for id_, files in known.items() if id_ >= base}
        self._files[uid, state] = {**kept, barrier.checkpoint_id: files}

    def files(self, uid: str, state: str, checkpoint_id: int) -> tuple[StateFile, ...]:
        """What a checkpoint consists of. Raises InternalError."""
        found = self._files.get((uid, state), {}).get(checkpoint_id)
        if found is None:
            msg = (
                f"state {state!r} of operator {uid!r} builds on checkpoint {checkpoint_id}, whose "
                "files are not known; a backend may build only on what it gave as a base"
            )
            raise InternalError(msg)
        return found


@dataclass(frozen=True, slots=True)
class _Writing:
    """One snapshot of one subtask on its way to a folder."""

    snapshot: TaskSnapshot
    folder: Folder
    chains: Chains

    def operator(self, operator: OperatorSnapshot) -> OperatorPart:
        """Write the states of one operator."""
        return OperatorPart(
            uid=operator.uid,
            watermark=operator.watermark,
            states=tuple(self._state(operator, state) for state in operator.states),
            splits=operator.splits,
            committables=operator.committables,
        )

    def _state(self, operator: OperatorSnapshot, state: Frozen) -> StateEntry:
        descriptor = state.descriptor
        if isinstance(state, FrozenChanges):
            files = self._layer(operator, state)
        else:
            layer = self._place(descriptor, 0) if state.is_base else None
            files = self._file(operator, descriptor, state.tables(), layer)
        if isinstance(state, FrozenChanges) or state.is_base:
            self.chains.put(operator.uid, descriptor.name, self.snapshot.barrier, files)
        return StateEntry(
            name=descriptor.name,
            kind=descriptor.kind,
            keys={name: type_name(dtype) for name, dtype in descriptor.keys.items()},
            values={name: type_name(dtype) for name, dtype in descriptor.values.items()},
            files=files,
        )

    def _layer(self, operator: OperatorSnapshot, state: FrozenChanges) -> tuple[StateFile, ...]:
        """The files of the base as far as they still count, and what has changed since."""
        descriptor = state.descriptor
        before = self.chains.files(operator.uid, descriptor.name, state.since)
        number = max((layer_of(file).number for file in before), default=0) + 1
        layer = self._place(descriptor, number, state.by if state.replaces else ())
        removed = replace(layer, by=state.by, removed=True, time=None)
        return (
            *_without(before, state.dropped),
            *self._file(operator, descriptor, state.rows(), layer),
            *self._file(operator, descriptor, state.removed(), removed),
        )

    def _place(self, descriptor: StateDescriptor, number: int, by: tuple[str, ...] = ()) -> Layer:
        return Layer(number, self.snapshot.task.subtask, by, time=_TIMES.get(descriptor.kind))

    def _file(
        self,
        operator: OperatorSnapshot,
        descriptor: StateDescriptor,
        tables: Iterable[pl.DataFrame],
        layer: Layer | None,
    ) -> tuple[StateFile, ...]:
        """One file of parts of a table; none for no rows."""
        parts = (part for part in tables if part.height)
        first = next(iter(parts), None)
        if first is None:
            return ()
        counted = _Counted(chain([first], parts), None if layer is None else layer.time)
        path = self._path(operator.uid, descriptor.name, layer)
        stored = self.folder.write(path, lambda file: write_parts(counted, file))
        if layer is not None:
            layer = replace(layer, last=counted.last)
        return (
            StateFile(
                path, counted.rows, stored.size_bytes, stored.sha256, operator.key_groups, layer
            ),
        )

    def _path(self, uid: str, state: str, layer: Layer | None) -> str:
        name = f"{slug(uid)}/{slug(state)}-{self.snapshot.task.subtask}"
        if layer is None:
            return f"{name}.parquet"
        shared = shared_path(self.snapshot.barrier.checkpoint_id)
        return f"{shared}/{name}{'-removed' if layer.removed else ''}.parquet"


@dataclass(slots=True)
class _Counted:
    """Parts of a table, and what is known of them once they were all taken."""

    parts: Iterable[pl.DataFrame]
    time: str | None
    rows: int = 0
    last: int | None = None

    def __iter__(self) -> Iterator[pl.DataFrame]:
        for part in self.parts:
            self.rows += part.height
            if self.time is not None:
                last = part.get_column(self.time).max()
                assert isinstance(last, int)
                self.last = last if self.last is None else max(self.last, last)
            yield part


def _without(files: Sequence[StateFile], dropped: int | None) -> Iterator[StateFile]:
    """Files that still have rows whose time is greater."""
    for file in files:
        layer = layer_of(file)
        if dropped is None:
            yield file
        elif layer.last is None or layer.last > dropped:
            after = dropped if layer.after is None else max(layer.after, dropped)
            yield replace(file, layer=replace(layer, after=after))
