"""Checkpoint statistics in Flink's form.

All barriers are aligned, and a blocked channel waits at its sender: no alignment buffers, processes
or persists data in flight, so those figures are 0 by construction, not unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.checkpoint.coordination.stats import (
    CheckpointHistory,
    CheckpointStats,
    CheckpointStatus,
    SubtaskCheckpoint,
    VertexCheckpoint,
)
from engine.elements import AfterBarrier, SnapshotKind
from engine.rest.model.checkpoints import CheckpointSettings
from engine.rest.render.statistics import summary


def history(checkpoints: CheckpointHistory) -> dict[str, object]:
    """The body of `/jobs/:id/checkpoints`."""
    counts, restored = checkpoints.counts, checkpoints.restored
    completed = [
        stats for stats in checkpoints.history if stats.status is CheckpointStatus.COMPLETED
    ]
    return {
        "counts": {
            "restored": counts.restored,
            "total": counts.total,
            "in_progress": counts.in_progress,
            "completed": counts.completed,
            "failed": counts.failed,
        },
        "summary": _summary(completed),
        "latest": {
            "completed": _latest(checkpoints.latest_completed),
            "savepoint": _latest(checkpoints.latest_savepoint),
            "failed": _latest(checkpoints.latest_failed),
            "restored": restored
            and {
                "id": restored.id,
                "restore_timestamp": restored.restored_ms,
                "is_savepoint": restored.is_savepoint,
                "external_path": restored.external_path,
            },
        },
        "history": [statistics(stats) for stats in checkpoints.history],
    }


def details(stats: CheckpointStats) -> dict[str, object]:
    """The body of `/jobs/:id/checkpoints/details/:cid`: with the part of each vertex."""
    tasks = {vertex.vertex_id: _vertex(stats, vertex) for vertex in stats.vertices}
    return statistics(stats) | {"tasks": tasks}


def subtasks(stats: CheckpointStats, vertex: VertexCheckpoint) -> dict[str, object]:
    """The body of `/jobs/:id/checkpoints/details/:cid/subtasks/:vid`."""
    acknowledged = {subtask.index: subtask for subtask in vertex.subtasks}
    return _vertex(stats, vertex) | {
        "summary": _subtask_summary(vertex.subtasks),
        "subtasks": [
            _subtask(acknowledged[index]) if index in acknowledged else _pending(index)
            for index in range(vertex.parallelism)
        ],
    }


def settings(chosen: CheckpointSettings) -> dict[str, object]:
    """The body of `/jobs/:id/checkpoints/config`; an interval of 0 is Flink's "never"."""
    return {
        "mode": "exactly_once",
        "interval": chosen.interval_ms or 2**63 - 1,
        "timeout": chosen.timeout_ms,
        "min_pause": chosen.min_pause_ms,
        "max_concurrent": chosen.max_concurrent,
        "externalization": {"enabled": True, "delete_on_cancellation": False},
        "state_backend": chosen.state_backend,
        "checkpoint_storage": chosen.storage,
        "unaligned_checkpoints": False,
        "tolerable_failed_checkpoints": chosen.tolerable_failures,
        "aligned_checkpoint_timeout": 0,
        "checkpoints_after_tasks_finish": True,
        "state_changelog_enabled": False,
        "headwater": {"retained": chosen.retained},
    }


def statistics(stats: CheckpointStats) -> dict[str, object]:
    """One checkpoint as it appears in the history."""
    savepoint = stats.kind is SnapshotKind.SAVEPOINT
    body = {
        "className": stats.status.value.lower(),
        "id": stats.id,
        "status": stats.status,
        "is_savepoint": savepoint,
        "savepointFormat": "CANONICAL" if savepoint else None,
        "trigger_timestamp": stats.triggered_ms,
        **_figures(tuple(stats.subtasks()), stats.num_subtasks),
        "end_to_end_duration": stats.duration_ms,
        "checkpoint_type": _type(stats),
        "tasks": {},
    }
    if stats.status is CheckpointStatus.COMPLETED:
        body |= {"external_path": stats.external_path, "discarded": stats.discarded}
    if stats.status is CheckpointStatus.FAILED:
        body |= {
            "failure_timestamp": stats.failed_ms,
            "failure_message": stats.failure,
            "headwater": {"reason": stats.reason},
        }
    return body


def _latest(stats: CheckpointStats | None) -> dict[str, object] | None:
    return statistics(stats) if stats else None


def _type(stats: CheckpointStats) -> str:
    if stats.kind is SnapshotKind.CHECKPOINT:
        return "CHECKPOINT"
    return "SAVEPOINT" if stats.then is AfterBarrier.CONTINUE else "SYNC_SAVEPOINT"


def _vertex(stats: CheckpointStats, vertex: VertexCheckpoint) -> dict[str, object]:
    whole = len(vertex.subtasks) == vertex.parallelism
    return {
        "id": stats.id,
        "status": CheckpointStatus.COMPLETED if whole else stats.status,
        **_figures(vertex.subtasks, vertex.parallelism),
        "end_to_end_duration": max((part.duration_ms for part in vertex.subtasks), default=-1),
    }


def _figures(acknowledged: Sequence[SubtaskCheckpoint], subtasks: int) -> dict[str, object]:
    return {
        "latest_ack_timestamp": max((part.ack_ms for part in acknowledged), default=-1),
        "checkpointed_size": sum(part.checkpointed_bytes for part in acknowledged),
        "state_size": sum(part.state_bytes for part in acknowledged),
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": subtasks,
        "num_acknowledged_subtasks": len(acknowledged),
    }


def _summary(completed: Sequence[CheckpointStats]) -> dict[str, object]:
    def over(figure: Callable[[SubtaskCheckpoint], int]) -> dict[str, object]:
        return summary([sum(map(figure, stats.subtasks())) for stats in completed])

    zero = summary([0 for _ in completed])
    return {
        "checkpointed_size": over(lambda part: part.checkpointed_bytes),
        "state_size": over(lambda part: part.state_bytes),
        "end_to_end_duration": summary([stats.duration_ms for stats in completed]),
        "alignment_buffered": zero,
        "processed_data": zero,
        "persisted_data": zero,
    }


def _subtask_summary(parts: Sequence[SubtaskCheckpoint]) -> dict[str, object]:
    def over(figure: Callable[[SubtaskCheckpoint], int]) -> dict[str, object]:
        return summary([figure(part) for part in parts])

    zero = summary([0 for _ in parts])
    return {
        "checkpointed_size": over(lambda part: part.checkpointed_bytes),
        "state_size": over(lambda part: part.state_bytes),
        "end_to_end_duration": over(lambda part: part.duration_ms),
        "checkpoint_duration": {
            "sync": over(lambda part: part.sync_ms),
            "async": over(lambda part: part.async_ms),
        },
        "alignment": {
            "buffered": zero,
            "processed": zero,
            "persisted": zero,
            "duration": over(lambda part: part.alignment_ms),
        },
        "start_delay": over(lambda part: part.start_delay_ms),
    }


def _subtask(part: SubtaskCheckpoint) -> dict[str, object]:
    return {
        "className": "completed",
        "index": part.index,
        "ack_timestamp": part.ack_ms,
        "end_to_end_duration": part.duration_ms,
        "checkpointed_size": part.checkpointed_bytes,
        "state_size": part.state_bytes,
        "checkpoint": {"sync": part.sync_ms, "async": part.async_ms},
        "alignment": {
            "buffered": 0,
            "processed": 0,
            "persisted": 0,
            "duration": part.alignment_ms,
        },
        "start_delay": part.start_delay_ms,
        "unaligned_checkpoint": False,
        "aborted": False,
        "status": "completed",
        "headwater": {"operator-bytes": dict(part.operator_bytes)},
    }


def _pending(index: int) -> dict[str, object]:
    return {"className": "pending", "index": index, "status": "pending_or_failed"}
