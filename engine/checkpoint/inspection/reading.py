"""Reading a snapshot as tables: what any person or tool may ask of a savepoint.

    folder --manifest--> Snapshot --scan(operator, state)--> LazyFrame (the canonical table)
    Snapshot --verify--> Verification: every file that is missing, torn or altered

Shapes   a scan gives (key_group: UInt16, <keys>, [slice_end,] <values>), as the manifest says.
Cost     a scan reads what the query needs of the files; `verify` reads every byte.
Errors   RestoreError for an operator or state that the snapshot does not have, SnapshotCorrupt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from engine.checkpoint.format.entries import OperatorEntry, StateEntry
from engine.checkpoint.format.files import StateFile
from engine.checkpoint.format.layers import chains, scan_chain
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.restore import OpenFolder, load_manifest
from engine.checkpoint.storage.addresses import open_folder
from engine.checkpoint.storage.folder import Folder, check_present, open_verified
from engine.elements import KEY_GROUP
from engine.errors import RestoreError, SnapshotCorrupt, StorageError
from engine.state.contract import SLICE_END, StateKind
from engine.state.key_text import parsed_key
from engine.state.schema import type_named

Progress = Callable[[int, int], None]
"""Hears how much is done, and of how much."""


def unheard(_done: int, _total: int) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot, opened for reading."""

    manifest: Manifest
    folder: Folder

    def state(self, uid: str, name: str) -> StateEntry:
        """The entry of a state. Raises RestoreError, which names what there is."""
        entry = self.manifest.operator(uid)
        if entry is None:
            known = ", ".join(repr(one.uid) for one in self.manifest.operators if one.states)
            msg = (
                f"snapshot {self.folder.url} has no operator {uid!r}: those with state are "
                f"{known or 'none'}; pass the uid of one"
            )
            raise RestoreError(msg)
        for state in entry.states:
            if state.name == name:
                return state
        known = ", ".join(repr(state.name) for state in entry.states)
        msg = f"operator {uid!r} has no state {name!r}: it has {known or 'none'}; pass one of them"
        raise RestoreError(msg)

    def states(self) -> Iterator[tuple[OperatorEntry, StateEntry]]:
        """Every state, operator by operator."""
        for entry in self.manifest.operators:
            for state in entry.states:
                yield entry, state

    def scan(self, state: StateEntry) -> pl.LazyFrame:
        """The rows of a state, of all subtasks. Raises SnapshotCorrupt."""
        if not state.files:
            return pl.LazyFrame(schema=dict(schema_of(state)))
        for file in state.files:
            check_present(self.folder, file.path, file.stored)
        found = chains(state.files)
        return pl.concat(scan for chain in found for scan in scan_chain(chain, self.folder))

    def collect(self, query: pl.LazyFrame) -> pl.DataFrame:
        """Run a query over scans of this snapshot. Raises SnapshotCorrupt."""
        try:
            return query.collect(engine="streaming")
        except pl.exceptions.ComputeError as error:
            msg = (
                f"snapshot {self.folder.url} cannot be read: {error}; look which file is damaged "
                "with: headwater savepoint verify"
            )
            raise SnapshotCorrupt(msg) from error

    def problem(self, file: StateFile) -> str | None:
        """Read a file; what is wrong when it is not as it was written."""
        try:
            with open_verified(self.folder, file.path, file.stored):
                return None
        except (SnapshotCorrupt, StorageError) as error:
            return str(error)


def open_snapshot(url: str, open_at: OpenFolder = open_folder) -> Snapshot:
    """Open the snapshot in a folder. Raises RestoreError, SnapshotCorrupt, ConfigError."""
    return Snapshot(load_manifest(url, open_at), open_at(url))


def schema_of(state: StateEntry) -> Mapping[str, pl.DataType]:
    """Columns and types of the table of a state."""
    slices = {SLICE_END: "Int64"} if state.kind is StateKind.RUNS else {}
    columns = {**state.keys, **slices, **state.values}
    return {KEY_GROUP: pl.UInt16(), **{name: type_named(type_) for name, type_ in columns.items()}}


def of_key(rows: pl.LazyFrame, state: StateEntry, given: Mapping[str, str]) -> pl.LazyFrame:
    """The rows of one key, its parts written as text. Raises ConfigError."""
    schema = schema_of(state)
    parts = parsed_key(state.name, {name: schema[name] for name in state.keys}, given)
    for name, value in parts.items():
        rows = rows.filter(pl.col(name) == value)
    return rows
