"""What the job manager measures of jobs and processes, under Flink's names.

`rest/model/metrics.py` says what each of them is; those of subtasks come from workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.checkpoint.coordination.stats import CheckpointStats
from engine.clock import now_ms
from engine.cluster.jobs.master import JobMaster
from engine.cluster.machines.fleet import TaskManagerState
from engine.rest.model.jobs import Latency, MetricValue
from engine.runtime.control import ProcessUse


def job_metrics(master: JobMaster) -> Mapping[str, MetricValue]:
    """Restarts, uptime, checkpoints."""
    history = master.snapshots.log.history()
    numbers: dict[str, MetricValue] = {
        "numRestarts": master.restarts,
        "fullRestarts": master.restarts,
        "numRescales": master.rescaling.count,
        "numberOfCompletedCheckpoints": history.counts.completed,
        "numberOfFailedCheckpoints": history.counts.failed,
        "numberOfInProgressCheckpoints": history.counts.in_progress,
        "totalNumberOfCheckpoints": history.counts.total,
    }
    attempt = master.attempt
    if attempt is not None and attempt.running and not master.life.status.terminal:
        numbers["uptime"] = now_ms() - attempt.started_ms
    last = history.latest_completed
    return numbers if last is None else numbers | checkpoint_metrics(last)


def latencies(master: JobMaster) -> Iterator[Latency]:
    """What markers have told, as far as workers have reported."""
    tasks = {} if master.attempt is None else master.attempt.tasks
    for id_, task in tasks.items():
        for source, statistics in task.latencies.items():
            yield Latency(source, id_.vertex, id_.subtask, statistics)


def checkpoint_metrics(last: CheckpointStats) -> dict[str, MetricValue]:
    """The last completed checkpoint: its size, and how long its phases took at most."""
    parts = list(last.subtasks())
    return {
        "lastCompletedCheckpointId": last.id,
        "lastCheckpointCompletedTimestamp": last.triggered_ms + last.duration_ms,
        "lastCheckpointDuration": last.duration_ms,
        "lastCheckpointSize": sum(part.checkpointed_bytes for part in parts),
        "lastCheckpointFullSize": last.state_bytes,
        "lastCheckpointStartDelay": max((part.start_delay_ms for part in parts), default=0),
        "lastCheckpointAlignmentTime": max((part.alignment_ms for part in parts), default=0),
        "lastCheckpointSyncDuration": max((part.sync_ms for part in parts), default=0),
        "lastCheckpointAsyncDuration": max((part.async_ms for part in parts), default=0),
    }


def use_metrics(use: ProcessUse) -> Mapping[str, MetricValue]:
    """What one worker uses."""
    return {
        "Status.Process.CPU.Load": use.cpu_percent / 100,
        "Status.Process.Memory.Resident": use.memory_bytes,
    }


def process_metrics(state: TaskManagerState) -> Mapping[str, MetricValue]:
    """What a task manager and its workers use together."""
    if state.beat is None:
        return {}
    uses: list[ProcessUse] = [state.beat.itself, *state.beat.workers.values()]
    return {
        "Status.Process.CPU.Load": sum(use.cpu_percent for use in uses) / 100,
        "Status.Process.Memory.Resident": sum(use.memory_bytes for use in uses),
        "Status.Process.Count": len(uses),
    }
