"""Checkpoint statistics as JSON, as small as they are many.

    [id, kind, …, [[vertex id, parallelism, operator uids, [subtask, subtask, …]], …]]

Shapes   the fields of each class in their order; the uids of a vertex once for all its subtasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.checkpoint.coordination.failure import FailureReason
from engine.checkpoint.coordination.stats import (
    CheckpointCounts,
    CheckpointStats,
    CheckpointStatus,
    RestoredCheckpoint,
    SubtaskCheckpoint,
    VertexCheckpoint,
)
from engine.elements import AfterBarrier, SnapshotKind

_FIGURES = (
    "index", "ack_ms", "duration_ms", "start_delay_ms", "alignment_ms", "sync_ms", "async_ms",
    "state_bytes", "checkpointed_bytes",
)  # fmt: skip


def stats_json(stats: CheckpointStats) -> dict[str, Any]:
    """Write an ended checkpoint."""
    return {
        "id": stats.id,
        "kind": stats.kind,
        "status": stats.status,
        "triggered_ms": stats.triggered_ms,
        "duration_ms": stats.duration_ms,
        "then": stats.then,
        "external_path": stats.external_path,
        "failed_ms": stats.failed_ms,
        "reason": stats.reason,
        "failure": stats.failure,
        "vertices": [_vertex_json(vertex) for vertex in stats.vertices],
    }


def stats_from_json(value: Mapping[str, Any]) -> CheckpointStats:
    """Read what `stats_json` gave."""
    reason = value["reason"]
    return CheckpointStats(
        **{
            **value,
            "kind": SnapshotKind(value["kind"]),
            "status": CheckpointStatus(value["status"]),
            "then": AfterBarrier(value["then"]),
            "reason": None if reason is None else FailureReason(reason),
            "vertices": tuple(map(_vertex, value["vertices"])),
        }
    )


def _vertex_json(vertex: VertexCheckpoint) -> list[Any]:
    uids = sorted({uid for subtask in vertex.subtasks for uid in subtask.operator_bytes})
    subtasks = [_subtask_json(subtask, uids) for subtask in vertex.subtasks]
    return [vertex.vertex_id, vertex.parallelism, uids, subtasks]


def _vertex(value: list[Any]) -> VertexCheckpoint:
    vertex_id, parallelism, uids, subtasks = value
    return VertexCheckpoint(
        vertex_id, parallelism, tuple(_subtask(each, uids) for each in subtasks)
    )


def _subtask_json(part: SubtaskCheckpoint, uids: list[str]) -> list[Any]:
    figures = (getattr(part, name) for name in _FIGURES)
    return [*figures, [part.operator_bytes.get(uid, 0) for uid in uids]]


def _subtask(value: list[Any], uids: list[str]) -> SubtaskCheckpoint:
    figures = dict(zip(_FIGURES, value, strict=False))
    return SubtaskCheckpoint(**figures, operator_bytes=dict(zip(uids, value[-1], strict=True)))


def summary_json(counts: CheckpointCounts, restored: RestoredCheckpoint | None) -> dict[str, Any]:
    """Write what is known of all checkpoints of a job."""
    return {
        "counts": [counts.restored, counts.completed, counts.failed],
        "restored": None
        if restored is None
        else [restored.id, restored.restored_ms, restored.is_savepoint, restored.external_path],
    }


def summary_from_json(
    value: Mapping[str, Any],
) -> tuple[CheckpointCounts, RestoredCheckpoint | None]:
    """Read what `summary_json` gave. Those that were under way have come to nothing unseen."""
    restored, completed, failed = value["counts"]
    counts = CheckpointCounts(restored, completed + failed, 0, completed, failed)
    return counts, None if value["restored"] is None else RestoredCheckpoint(*value["restored"])
