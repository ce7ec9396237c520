"""Answers about checkpoints, savepoints and the operations that make them.

Units    times are epoch ms, durations ms, sizes bytes; -1 when not reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.checkpoint.coordination.stats import (
    CheckpointCounts,
    CheckpointStatus,
    RestoredCheckpoint,
)
from engine.rest.sentences import first_sentence

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PartSummary:
    """What a vertex, or a whole checkpoint, put together."""

    status: CheckpointStatus
    latest_ack_ms: int
    checkpointed_bytes: int
    state_bytes: int
    duration_ms: int
    subtasks: int
    acknowledged: int

    @classmethod
    def of(cls, body: JsonObject) -> PartSummary:
        """Read the figures of a checkpoint or of one vertex in it."""
        return cls(
            status=CheckpointStatus(body["status"]),
            latest_ack_ms=body["latest_ack_timestamp"],
            checkpointed_bytes=body["checkpointed_size"],
            state_bytes=body["state_size"],
            duration_ms=body["end_to_end_duration"],
            subtasks=body["num_subtasks"],
            acknowledged=body["num_acknowledged_subtasks"],
        )


@dataclass(frozen=True, slots=True)
class CheckpointEntry:
    """One checkpoint or savepoint of the history."""

    id: int
    is_savepoint: bool
    kind: str
    """CHECKPOINT, UNALIGNED_CHECKPOINT, SAVEPOINT or SYNC_SAVEPOINT."""
    triggered_ms: int
    total: PartSummary
    vertices: Mapping[str, PartSummary]
    """By vertex id; empty in a list, filled when one checkpoint is asked for."""
    external_path: str | None
    discarded: bool
    failed_ms: int | None
    failure: str | None
    reason: str | None
    """Typed reason of a failure; only from our engine."""

    @property
    def status(self) -> CheckpointStatus:
        """What became of it."""
        return self.total.status

    @classmethod
    def of(cls, body: JsonObject) -> CheckpointEntry:
        """Read an entry of the history, or `/checkpoints/details/:cid`."""
        return cls(
            id=body["id"],
            is_savepoint=body["is_savepoint"],
            kind=body["checkpoint_type"],
            triggered_ms=body["trigger_timestamp"],
            total=PartSummary.of(body),
            vertices={name: PartSummary.of(part) for name, part in body["tasks"].items()},
            external_path=body.get("external_path"),
            discarded=body.get("discarded", False),
            failed_ms=body.get("failure_timestamp"),
            failure=body.get("failure_message"),
            reason=body.get("headwater", {}).get("reason"),
        )


@dataclass(frozen=True, slots=True)
class CheckpointList:
    """The checkpoint history of a job."""

    counts: CheckpointCounts
    history: tuple[CheckpointEntry, ...]
    """Newest first."""
    latest_completed: CheckpointEntry | None
    latest_savepoint: CheckpointEntry | None
    latest_failed: CheckpointEntry | None
    restored: RestoredCheckpoint | None

    @classmethod
    def of(cls, body: JsonObject) -> CheckpointList:
        """Read `/jobs/:id/checkpoints`."""
        latest = body["latest"] or {}
        found = {name: entry and CheckpointEntry.of(entry) for name, entry in latest.items()
                 if name != "restored"}  # fmt: skip
        return cls(
            counts=CheckpointCounts(**body["counts"]),
            history=tuple(CheckpointEntry.of(entry) for entry in body["history"]),
            latest_completed=found.get("completed"),
            latest_savepoint=found.get("savepoint"),
            latest_failed=found.get("failed"),
            restored=_restored(latest.get("restored")),
        )


@dataclass(frozen=True, slots=True)
class SubtaskPart:
    """What one subtask put into a checkpoint; `acknowledged` False leaves only the index true."""

    index: int
    acknowledged: bool
    ack_ms: int = -1
    duration_ms: int = -1
    start_delay_ms: int = -1
    alignment_ms: int = -1
    sync_ms: int = -1
    async_ms: int = -1
    state_bytes: int = 0
    checkpointed_bytes: int = 0

    @classmethod
    def of(cls, body: JsonObject) -> SubtaskPart:
        """Read an entry of `/checkpoints/details/:cid/subtasks/:vid`."""
        if body["className"] != "completed":
            return cls(body["index"], acknowledged=False)
        return cls(
            index=body["index"],
            acknowledged=True,
            ack_ms=body["ack_timestamp"],
            duration_ms=body["end_to_end_duration"],
            start_delay_ms=body["start_delay"],
            alignment_ms=body["alignment"]["duration"],
            sync_ms=body["checkpoint"]["sync"],
            async_ms=body["checkpoint"]["async"],
            state_bytes=body["state_size"],
            checkpointed_bytes=body["checkpointed_size"],
        )


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """How a job takes checkpoints; `interval_ms` None is never."""

    interval_ms: int | None
    timeout_ms: int
    min_pause_ms: int
    max_concurrent: int
    tolerable_failures: int
    state_backend: str
    storage: str
    mode: str
    """exactly_once or at_least_once."""
    unaligned: bool

    @classmethod
    def of(cls, body: JsonObject) -> CheckpointConfig:
        """Read `/jobs/:id/checkpoints/config`."""
        interval = body["interval"]
        return cls(
            interval_ms=None if interval >= 2**63 - 1 else interval,
            timeout_ms=body["timeout"],
            min_pause_ms=body["min_pause"],
            max_concurrent=body["max_concurrent"],
            tolerable_failures=body["tolerable_failed_checkpoints"],
            state_backend=body["state_backend"],
            storage=body["checkpoint_storage"],
            mode=body["mode"],
            unaligned=body["unaligned_checkpoints"],
        )


@dataclass(frozen=True, slots=True)
class OperationStatus:
    """Where a savepoint, a stop, a manual checkpoint or a disposal stands."""

    done: bool
    location: str | None = None
    checkpoint_id: int | None = None
    failure: str | None = None
    """One sentence; done and None is success."""

    @classmethod
    def of(cls, body: JsonObject) -> OperationStatus:
        """Read a poll; a failure is COMPLETED too, and is spelled in two ways."""
        operation = body.get("operation") or {}
        cause = operation.get("failure-cause") or operation.get("failureCause")
        return cls(
            done=body["status"]["id"] == "COMPLETED",
            location=operation.get("location"),
            checkpoint_id=operation.get("checkpointId"),
            failure=cause and first_sentence(cause["stack-trace"]),
        )


def trigger_id_of(body: JsonObject) -> str:
    """Read the answer to a command that goes on: the id to poll."""
    return str(body["request-id"])


def _restored(body: JsonObject | None) -> RestoredCheckpoint | None:
    if body is None:
        return None
    return RestoredCheckpoint(
        id=body["id"],
        restored_ms=body["restore_timestamp"],
        is_savepoint=body["is_savepoint"],
        external_path=body.get("external_path"),
    )
