"""Every metric of the engine, told once: name, unit, kind, and what it means.

    worker, views ──Flink's names──▶ REST
                         │ METRICS
                         ▼
                      Sample ──▶ Prometheus text, InfluxDB points

Shapes   `name` is Flink's, for REST and points; `exposed` is Prometheus' by its rules: base units,
         `_total` for what only grows. A sample's value is in Flink's unit; `scale` makes the base
         unit of it.
Source   Flink 2.3, Metrics; Prometheus, Metric and label naming.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from engine.rest.model.jobs import MetricValue


class Kind(StrEnum):
    """What a scraper may do with a metric."""

    COUNTER = "counter"
    """It only grows, but for restarts."""
    GAUGE = "gauge"


class Scope(StrEnum):
    """What a metric is of: part of its name."""

    JOB_MANAGER = "jobmanager"
    TASK_MANAGER = "taskmanager"
    WORKER = "worker"
    JOB = "job"
    TASK = "task"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    scope: Scope
    exposed: str
    """Without the prefix and the scope."""
    help: str
    kind: Kind = Kind.GAUGE
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of one metric."""

    metric: Metric
    labels: Mapping[str, str]
    value: float
    extra: Mapping[str, str] = field(default_factory=dict)
    """A label that tells apart what one metric counts: the counters of functions."""


def number_of(value: MetricValue) -> float | None:
    """A value that can be written as a number."""
    return None if isinstance(value, str) else float(value)


_MS, _NOTHING = 1e-3, 1.0
_COUNTER, _GAUGE = Kind.COUNTER, Kind.GAUGE

_PROCESS = (
    ("Status.Process.CPU.Load", "cpu_cores", "Processor time per time, over one or more cores.",
     _GAUGE, _NOTHING),
    ("Status.Process.Memory.Resident", "memory_resident_bytes", "Resident memory.",
     _GAUGE, _NOTHING),
)  # fmt: skip

_JOB = (
    ("numRestarts", "restarts_total", "Restarts after failures.", _COUNTER, _NOTHING),
    ("fullRestarts", "full_restarts_total", "The same: every restart is one of all subtasks.",
     _COUNTER, _NOTHING),
    ("numRescales", "rescales_total", "Changes of parallelism.", _COUNTER, _NOTHING),
    ("uptime", "uptime_seconds", "Since the present attempt began.", _GAUGE, _MS),
    ("totalNumberOfCheckpoints", "checkpoints_total", "Checkpoints and savepoints that were begun.",
     _COUNTER, _NOTHING),
    ("numberOfCompletedCheckpoints", "checkpoints_completed_total", "Of these, completed ones.",
     _COUNTER, _NOTHING),
    ("numberOfFailedCheckpoints", "checkpoints_failed_total", "Of these, failed ones.",
     _COUNTER, _NOTHING),
    ("numberOfInProgressCheckpoints", "checkpoints_in_progress", "Of these, those under way.",
     _GAUGE, _NOTHING),
    ("lastCompletedCheckpointId", "checkpoint_last_id", "Of the last completed checkpoint.",
     _GAUGE, _NOTHING),
    ("lastCheckpointCompletedTimestamp", "checkpoint_last_completed_timestamp_seconds",
     "When the last checkpoint was completed.", _GAUGE, _MS),
    ("lastCheckpointDuration", "checkpoint_last_duration_seconds",
     "From the trigger of the last checkpoint to its completion.", _GAUGE, _MS),
    ("lastCheckpointSize", "checkpoint_last_size_bytes", "What the last checkpoint wrote.",
     _GAUGE, _NOTHING),
    ("lastCheckpointFullSize", "checkpoint_last_full_size_bytes",
     "What the last checkpoint holds, with what earlier ones wrote.", _GAUGE, _NOTHING),
    ("lastCheckpointStartDelay", "checkpoint_last_start_delay_seconds",
     "Phase 1: to the first barrier, in the subtask that took longest.", _GAUGE, _MS),
    ("lastCheckpointAlignmentTime", "checkpoint_last_alignment_seconds",
     "Phase 2: from the first barrier to the last, in the subtask that took longest.",
     _GAUGE, _MS),
    ("lastCheckpointSyncDuration", "checkpoint_last_sync_seconds",
     "Phase 3: freezing references, in the subtask that took longest.", _GAUGE, _MS),
    ("lastCheckpointAsyncDuration", "checkpoint_last_async_seconds",
     "Phase 4: writing files, in the subtask that took longest.", _GAUGE, _MS),
)  # fmt: skip

_ROWS = (
    ("numRecordsIn", "records_in_total", "Rows taken.", _COUNTER, _NOTHING),
    ("numRecordsOut", "records_out_total", "Rows given.", _COUNTER, _NOTHING),
    ("numRecordsInPerSecond", "records_in_per_second", "Rows taken per second.", _GAUGE, _NOTHING),
    ("numRecordsOutPerSecond", "records_out_per_second", "Rows given per second.",
     _GAUGE, _NOTHING),
)  # fmt: skip

_TASK = (
    *_ROWS,
    ("busyTimeMsPerSecond", "busy_ratio", "Share of the time at work.", _GAUGE, _MS),
    ("backPressuredTimeMsPerSecond", "backpressured_ratio", "Share of the time without credits.",
     _GAUGE, _MS),
    ("idleTimeMsPerSecond", "idle_ratio", "Share of the time with nothing to do.", _GAUGE, _MS),
    ("isBackPressured", "is_backpressured", "1 while it waits for credits.", _GAUGE, _NOTHING),
    ("accumulateBusyTimeMs", "busy_seconds_total", "Time at work.", _COUNTER, _MS),
    ("accumulateBackPressuredTimeMs", "backpressured_seconds_total", "Time without credits.",
     _COUNTER, _MS),
    ("accumulateIdleTimeMs", "idle_seconds_total", "Time with nothing to do.", _COUNTER, _MS),
    ("currentInputWatermark", "input_watermark_timestamp_seconds",
     "Event time up to which all input has come.", _GAUGE, _MS),
    ("currentOutputWatermark", "output_watermark_timestamp_seconds",
     "Event time up to which all output has left.", _GAUGE, _MS),
    ("Shuffle.Netty.Input.Buffers.inputQueueLength", "input_queue_elements",
     "Elements that wait to be taken.", _GAUGE, _NOTHING),
    ("Shuffle.Netty.Input.Buffers.inputQueueSize", "input_queue_bytes",
     "Bytes of the rows that wait to be taken.", _GAUGE, _NOTHING),
    ("Shuffle.Netty.Input.Buffers.inPoolUsage", "input_queue_usage_ratio",
     "Share of the credits of its senders that are in use.", _GAUGE, _NOTHING),
    ("Shuffle.Netty.Output.Buffers.outputQueueLength", "output_queue_elements",
     "Elements that wait for credits.", _GAUGE, _NOTHING),
    ("Shuffle.Netty.Output.Buffers.outputQueueSize", "output_queue_bytes",
     "Bytes of the rows that wait for credits.", _GAUGE, _NOTHING),
)  # fmt: skip

_SOURCE = (
    ("pendingRecords", "pending_records", "Rows that the source could read at once.",
     _GAUGE, _NOTHING),
    ("numRecordsInErrors", "records_in_errors_total", "Records that cannot be read.",
     _COUNTER, _NOTHING),
    ("currentFetchEventTimeLag", "fetch_event_time_lag_seconds",
     "From the newest event time to the moment in which it was read.", _GAUGE, _MS),
    ("currentEmitEventTimeLag", "emit_event_time_lag_seconds",
     "From the newest event time to the moment in which all that came of it was handed on.",
     _GAUGE, _MS),
    ("watermarkAlignmentDrift", "watermark_alignment_drift_seconds",
     "How far the source is ahead of the slowest of its watermark group.", _GAUGE, _MS),
    ("newestEventTime", "newest_event_time_timestamp_seconds",
     "The largest event time that the source has read.", _GAUGE, 1e-6),
    ("numLateRecordsDropped", "late_records_dropped_total", "Rows that came too late.",
     _COUNTER, _NOTHING),
)  # fmt: skip

_JOB_MANAGER = (
    ("numRegisteredTaskManagers", "task_managers", "Connected task managers.", _GAUGE, _NOTHING),
    ("numRunningJobs", "running_jobs", "Jobs that run.", _GAUGE, _NOTHING),
    ("taskSlotsTotal", "task_slots", "Slots of all task managers.", _GAUGE, _NOTHING),
    ("taskSlotsAvailable", "task_slots_available", "Slots that no job holds.", _GAUGE, _NOTHING),
    ("reporterPointsDropped", "reporter_points_dropped_total",
     "Points that the InfluxDB reporter could not send, and had no room to keep.",
     _COUNTER, _NOTHING),
    ("reporterPointsWaiting", "reporter_points_waiting",
     "Points that the InfluxDB reporter has still to send.", _GAUGE, _NOTHING),
    ("reporterSilentTime", "reporter_silent_seconds",
     "Since when InfluxDB takes no points; 0 while it does.", _GAUGE, _MS),
    *_PROCESS,
)  # fmt: skip

_TASK_MANAGER = (
    ("Status.Process.Count", "processes", "It and its workers.", _GAUGE, _NOTHING),
    *_PROCESS,
)

METRICS: Mapping[tuple[Scope, str], Metric] = {
    (scope, name): Metric(name, scope, exposed, meaning, kind, scale)
    for scope, metrics in (
        (Scope.JOB_MANAGER, _JOB_MANAGER),
        (Scope.TASK_MANAGER, _TASK_MANAGER),
        (Scope.WORKER, _PROCESS),
        (Scope.JOB, _JOB),
        (Scope.TASK, _TASK),
        (Scope.OPERATOR, (*_ROWS, *_SOURCE)),
    )
    for name, exposed, meaning, kind, scale in metrics
}

METRICS_OF: Mapping[Scope, Mapping[str, Metric]] = {
    scope: {name: metric for (of, name), metric in METRICS.items() if of is scope}
    for scope in Scope
}
"""The same by scope: thousands are looked up in an answer."""

LATENCY = Metric(
    "latency",
    Scope.JOB,
    "latency_seconds",
    "From the moment in which a source reads to that in which a step takes, over two minutes.",
    scale=_MS,
)
"""One sample per source, step, subtask and quantile."""

COUNTED = Metric(
    "counter",
    Scope.OPERATOR,
    "counted_total",
    "What an operator counts by itself, by the name that it gives.",
    Kind.COUNTER,
)
"""Counters that the engine has no name for: those of functions."""
