"""A small, plausible job: the graph, figures and snapshots that `FakeService` shows.

Source: flights → by day (partial)  ──hash(carrier)──▶  by day → files
"""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoint.coordination.stats import (
    CheckpointStats,
    CheckpointStatus,
    SubtaskCheckpoint,
    VertexCheckpoint,
)
from engine.checkpoint.format.entries import OperatorEntry, StateEntry
from engine.checkpoint.format.files import StateFile
from engine.checkpoint.format.manifest import Manifest
from engine.elements import AfterBarrier, Micros, SnapshotKind
from engine.graph.plan import EdgePlan, OperatorKind, OperatorPlan, Plan, StatePlan, VertexPlan
from engine.keygroups import DEFAULT_MAX_PARALLELISM, range_of
from engine.operators.sources.source import SplitState
from engine.rest.model.cluster import Slot, TaskManagerInfo
from engine.rest.model.jobs import JobDetails, SubtaskDetails, TaskStatus, TaskTotals, VertexDetails
from engine.rest.model.statistics import (
    BatchFigures,
    Delay,
    SourceStatistics,
    StreamingStatistics,
)
from engine.state.contract import StateKind
from engine.version import VERSION

SOURCE_ID = "bd9c186e89cc37a76d776844dfa8ccba"
WINDOW_ID = "3c5e29a5caf3389602b723bb1ef03912"
MANAGERS = ("localhost:tm-1-a1b2c3", "localhost:tm-2-d4e5f6")
EVENT_TIME = Micros(1_363_000_000_000_000)

_KEYS = {"carrier": "String"}
_VALUES = {"flights": "Int64"}


def plan(name: str, parallelism: int) -> Plan:
    """The graph of the job."""
    state = StatePlan("slices", StateKind.RUNS.value, _KEYS, _VALUES)
    source = OperatorPlan("flights", "Source: flights", OperatorKind.SOURCE, "source")
    partial = OperatorPlan(
        "daily.partial", "by day (partial)", OperatorKind.TRANSFORM, "partial_aggregate"
    )
    window = OperatorPlan(
        "daily", "by day", OperatorKind.TRANSFORM, "window_aggregate", states=(state,)
    )
    sink = OperatorPlan("files", "files", OperatorKind.SINK, "sink")
    return Plan(
        name=name,
        max_parallelism=DEFAULT_MAX_PARALLELISM,
        checkpoint_interval_ms=1_000,
        vertices=(
            VertexPlan(
                SOURCE_ID, "Source: flights → by day (partial)", parallelism, (source, partial)
            ),
            VertexPlan(WINDOW_ID, "by day → files", parallelism, (window, sink)),
        ),
        edges=(EdgePlan(SOURCE_ID, WINDOW_ID, "hash", operator=1, keys=("carrier",)),),
    )


def vertex(planned: VertexPlan, status: TaskStatus, start_ms: int, end_ms: int) -> VertexDetails:
    """A vertex of the graph with all its subtasks in one state."""
    subtasks = tuple(
        _subtask(index, planned.id == SOURCE_ID, status, start_ms, end_ms)
        for index in range(planned.parallelism)
    )
    return VertexDetails(
        planned.id, planned.name, planned.parallelism, DEFAULT_MAX_PARALLELISM, subtasks
    )


def checkpoint(
    checkpoint_id: int,
    of: Plan,
    triggered_ms: int,
    kind: SnapshotKind = SnapshotKind.CHECKPOINT,
    then: AfterBarrier = AfterBarrier.CONTINUE,
    path: str = "",
) -> CheckpointStats:
    """A completed checkpoint that took 75 ms."""
    return CheckpointStats(
        id=checkpoint_id,
        kind=kind,
        then=then,
        status=CheckpointStatus.COMPLETED,
        triggered_ms=triggered_ms,
        duration_ms=75,
        vertices=tuple(
            VertexCheckpoint(
                planned.id,
                planned.parallelism,
                tuple(_part(index, triggered_ms) for index in range(planned.parallelism)),
            )
            for planned in of.vertices
        ),
        external_path=path or f"file:///data/checkpoints/chk-{checkpoint_id}",
    )


def manifest(job_id: str, name: str, stats: CheckpointStats) -> Manifest:
    """The manifest of a snapshot of the job."""
    parallelism = stats.vertices[0].parallelism
    files = tuple(_file(part, parallelism) for part in stats.vertices[1].subtasks)
    state = StateEntry("slices", StateKind.RUNS, _KEYS, _VALUES, files)
    splits = {
        airport: SplitState(position=1_000, watermark=EVENT_TIME, idle=False, finished=False)
        for airport in ("EWR", "JFK", "LGA")
    }
    return Manifest(
        job_id=job_id,
        job_name=name,
        plan_hash=plan(name, parallelism).hash,
        checkpoint_id=stats.id,
        kind=stats.kind,
        created_ms=stats.triggered_ms + stats.duration_ms,
        engine_version=VERSION,
        operators=(
            OperatorEntry(
                uid="flights",
                name="Source: flights",
                vertex=SOURCE_ID,
                parallelism=parallelism,
                max_parallelism=DEFAULT_MAX_PARALLELISM,
                watermark=EVENT_TIME,
                splits=splits,
            ),
            OperatorEntry(
                uid="daily",
                name="by day",
                vertex=WINDOW_ID,
                parallelism=parallelism,
                max_parallelism=DEFAULT_MAX_PARALLELISM,
                watermark=EVENT_TIME,
                states=(state,),
            ),
        ),
    )


def slot(job: JobDetails, index: int) -> Slot:
    """A worker of a job."""
    uses = {"Status.Process.CPU.Load": 0.5, "Status.Process.Memory.Resident": 120 * 2**20}
    return Slot(job.id, len(job.vertices), 5_000 + index, index, uses)


def task_manager(
    manager_id: str, allocated: tuple[Slot, ...], heartbeat_ms: int
) -> TaskManagerInfo:
    """A task manager with four slots."""
    return TaskManagerInfo(
        id=manager_id,
        address=f"unix:{manager_id}",
        slots=4,
        allocated=allocated,
        last_heartbeat_ms=heartbeat_ms,
        cpu_cores=2,
        physical_memory=8 * 2**30,
        free_memory=5 * 2**30,
        pid=4_001,
        metrics={"Status.Process.CPU.Load": 0.06, "Status.Process.Memory.Resident": 90 * 2**20},
    )


def statistics(to_ms: int, window_s: int, step_s: int) -> StreamingStatistics:
    """Ten batches of 90 rows a second, which wait for 4 ms and take 20 ms each."""

    def figures(seconds: int) -> BatchFigures:
        delays = Delay(4.0, 9.5), Delay(20.0, 31.0), Delay(24.0, 40.5)
        return BatchFigures(10 * seconds, 900 * seconds, 900.0, *delays, headroom=5.0)

    series = (figures(step_s),) * (window_s // step_s)
    job = SourceStatistics(figures(window_s), series)
    source = replace(job, uid="flights", name="Source: flights", vertex_id=SOURCE_ID)
    return StreamingStatistics(to_ms - window_s * 1000, to_ms, step_s, job, (source,))


def _subtask(
    index: int, source: bool, status: TaskStatus, start_ms: int, end_ms: int
) -> SubtaskDetails:
    busy = 100 + 50 * index
    totals = TaskTotals(
        read_records=0 if source else 55_127,
        write_records=55_127 if source else 0,
        busy_ms=2_537,
        backpressured_ms=11,
        idle_ms=34_878,
    )
    return SubtaskDetails(
        index=index,
        status=status,
        endpoint="localhost",
        task_manager_id=MANAGERS[index % len(MANAGERS)],
        start_ms=start_ms,
        end_ms=end_ms,
        status_ms={
            TaskStatus.SCHEDULED: 30,
            TaskStatus.DEPLOYING: 40,
            TaskStatus.INITIALIZING: 20,
            TaskStatus.RUNNING: 50_000,
        },
        totals=totals,
        metrics={
            "numRecordsIn": totals.read_records,
            "numRecordsOut": totals.write_records,
            "numRecordsInPerSecond": 903.0 + index,
            "numRecordsOutPerSecond": 42.5 + index,
            "busyTimeMsPerSecond": busy,
            "backPressuredTimeMsPerSecond": 11,
            "idleTimeMsPerSecond": 989 - busy,
            "isBackPressured": False,
        },
        input_watermark=None if source else EVENT_TIME,
        output_watermark=EVENT_TIME,
    )


def _part(index: int, triggered_ms: int) -> SubtaskCheckpoint:
    return SubtaskCheckpoint(
        index=index,
        ack_ms=triggered_ms + 28 + index,
        duration_ms=28 + index,
        start_delay_ms=9,
        alignment_ms=4,
        sync_ms=1,
        async_ms=14,
        state_bytes=20_219 + index,
        checkpointed_bytes=20_219 + index,
        operator_bytes={"daily": 20_219 + index},
    )


def _file(part: SubtaskCheckpoint, parallelism: int) -> StateFile:
    return StateFile(
        path=f"daily/slices-{part.index}.parquet",
        rows=40,
        size_bytes=part.state_bytes,
        sha256="0" * 64,
        key_groups=range_of(part.index, parallelism, DEFAULT_MAX_PARALLELISM),
    )
