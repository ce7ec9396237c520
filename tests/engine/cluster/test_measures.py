"""What the job manager measures of a job."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoint.coordination.stats import CheckpointStats, CheckpointStatus, VertexCheckpoint
from engine.cluster.answers.measures import checkpoint_metrics, process_metrics, use_metrics
from engine.cluster.machines.fleet import TaskManagerState
from engine.elements import SnapshotKind
from engine.rest.model.metrics import METRICS, Scope
from engine.runtime.control import Heartbeat, ProcessUse
from engine.testing import fake_values


def last_checkpoint() -> CheckpointStats:
    """Of two subtasks: the second is slower in every phase, and wrote less than it holds."""
    stats = fake_values.checkpoint(7, fake_values.plan("flights", 1), 1_000)
    (first, *_), (second, *_) = (vertex.subtasks for vertex in stats.vertices)
    slower = replace(
        second, start_delay_ms=90, alignment_ms=80, sync_ms=70, async_ms=60, checkpointed_bytes=5
    )
    parts = (first, slower)
    return replace(stats, vertices=(VertexCheckpoint("v", 2, parts),))


def test_of_each_phase_the_slowest_subtask_is_told_and_sizes_are_sums():
    last = last_checkpoint()
    assert (last.status, last.kind) == (CheckpointStatus.COMPLETED, SnapshotKind.CHECKPOINT)
    assert checkpoint_metrics(last) == {
        "lastCompletedCheckpointId": 7,
        "lastCheckpointCompletedTimestamp": 1_075,
        "lastCheckpointDuration": 75,
        "lastCheckpointSize": 20_219 + 5,
        "lastCheckpointFullSize": 2 * 20_219,
        "lastCheckpointStartDelay": 90,
        "lastCheckpointAlignmentTime": 80,
        "lastCheckpointSyncDuration": 70,
        "lastCheckpointAsyncDuration": 60,
    }


def test_what_is_measured_is_defined():
    for name in checkpoint_metrics(last_checkpoint()):
        assert (Scope.JOB, name) in METRICS
    for name in use_metrics(ProcessUse(1, 2, 3.0)):
        assert (Scope.WORKER, name) in METRICS


def test_a_task_manager_counts_with_its_workers():
    beat = Heartbeat(ProcessUse(1, 100, 50.0), {"a/0": ProcessUse(2, 400, 150.0)})
    state = TaskManagerState(None, None, None, 0.0, 0, beat)  # type: ignore[arg-type]
    assert process_metrics(state) == {
        "Status.Process.CPU.Load": 2.0,
        "Status.Process.Memory.Resident": 500,
        "Status.Process.Count": 2,
    }
