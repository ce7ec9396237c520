"""The manifest of a snapshot: what is in the folder, readable by anyone.

    <folder>/_metadata                            this manifest: JSON, written last, atomically
    <folder>/<uid-slug>/<state>-<subtask>.parquet the canonical table of a state, of one subtask
    <folder>/../shared/chk-<id>/…                 layers of large states: see files.py, shared.py

    SubtaskSnapshot (one acknowledgement) --merge by operator uid--> OperatorEntry --> Manifest

Shapes   paths are relative to the folder, so a moved folder can be restored. A watermark of null
         means that event time is not known yet. Format 1 has no layers, format 2 may.
Errors   SnapshotCorrupt when the JSON is damaged, RestoreError when a newer engine wrote it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.checkpoint.format.entries import OperatorEntry, time_json
from engine.checkpoint.format.files import JsonObject, StateFile
from engine.elements import MIN_TIME, Micros, SnapshotKind
from engine.errors import RestoreError, SnapshotCorrupt

METADATA = "_metadata"
FORMAT_VERSION = 2
CHECKSUM = "sha256"
LARGEST = 1 << 53
"""Whole numbers that every reader of JSON takes as they are."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A whole snapshot."""

    job_id: str
    job_name: str
    plan_hash: str
    checkpoint_id: int
    kind: SnapshotKind
    created_ms: int
    engine_version: str
    operators: tuple[OperatorEntry, ...]
    format_version: int = FORMAT_VERSION

    @property
    def min_watermark(self) -> Micros:
        """The event-time position: how far the slowest split has come; MIN_TIME if none knows."""
        splits = [split for operator in self.operators for split in operator.splits.values()]
        known = [split for split in splits if split.watermark != MIN_TIME]
        moving = [split for split in known if not (split.finished or split.idle)]
        return min((split.watermark for split in moving or known), default=MIN_TIME)

    @property
    def size_bytes(self) -> int:
        """Bytes of all state files."""
        return sum(state.size_bytes for entry in self.operators for state in entry.states)

    @property
    def written_bytes(self) -> int:
        """Those that this snapshot has written; the others are files of earlier checkpoints."""
        states = (state for entry in self.operators for state in entry.states)
        return sum(state.written_bytes(self.checkpoint_id) for state in states)

    @property
    def files(self) -> Iterator[StateFile]:
        """All files of state."""
        for entry in self.operators:
            for state in entry.states:
                yield from state.files

    def operator(self, uid: str) -> OperatorEntry | None:
        """The entry of an operator, if the snapshot has it."""
        return next((entry for entry in self.operators if entry.uid == uid), None)

    def to_json(self) -> JsonObject:
        """Return plain JSON."""
        return {
            "format_version": self.format_version,
            "engine_version": self.engine_version,
            "job_id": self.job_id,
            "job_name": self.job_name,
            "plan_hash": self.plan_hash,
            "checkpoint_id": self.checkpoint_id,
            "kind": self.kind.value,
            "created_ms": self.created_ms,
            "event_time": {"min_watermark": time_json(self.min_watermark)},
            "operators": [entry.to_json() for entry in self.operators],
        }

    def dump(self) -> bytes:
        """Return the content of `_metadata`, with a checksum of all the rest in it."""
        body = self.to_json()
        return json.dumps({**body, CHECKSUM: _checksum(body)}, indent=1).encode()


def parse_manifest(content: bytes, folder: str) -> Manifest:
    """Read `_metadata`; `folder` is for messages. Raises SnapshotCorrupt, RestoreError."""
    try:
        value = json.loads(content)
        version = int(value["format_version"])
        if version > FORMAT_VERSION:
            msg = (
                f"snapshot {folder} was written by a newer engine: format {version}, this engine "
                f"reads up to {FORMAT_VERSION}; upgrade the engine"
            )
            raise RestoreError(msg)
        _check_sum(value)
        return Manifest(
            job_id=str(value["job_id"]),
            job_name=str(value["job_name"]),
            plan_hash=str(value["plan_hash"]),
            checkpoint_id=_whole(value["checkpoint_id"]),
            kind=SnapshotKind(value["kind"]),
            created_ms=int(value["created_ms"]),
            engine_version=str(value["engine_version"]),
            operators=tuple(OperatorEntry.from_json(entry) for entry in value["operators"]),
            format_version=_whole(version, least=1),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = (
            f"snapshot {folder} cannot be read: its {METADATA} is damaged ({_reason(error)}); "
            "choose another snapshot"
        )
        raise SnapshotCorrupt(msg) from error


def _check_sum(value: JsonObject) -> None:
    """A flipped digit is still JSON: compare with the checksum, where there is one."""
    written = value.pop(CHECKSUM, None)
    if written is not None and written != _checksum(value):
        msg = "its content does not match its checksum"
        raise ValueError(msg)


def _checksum(body: JsonObject) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _whole(value: Any, least: int = 0) -> int:
    number = int(value)
    if not least <= number < LARGEST:
        msg = f"{number} is out of range"
        raise ValueError(msg)
    return number


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"no {error.args[0]!r} in it"
    return str(error).split("\n", maxsplit=1)[0]
