"""What the job manager knows, as the values that REST serves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import psutil

from engine.clock import now_ms
from engine.cluster.answers.measures import job_metrics, latencies, process_metrics, use_metrics
from engine.cluster.jobs.attempt import Attempt, TaskLife
from engine.cluster.jobs.master import JobMaster
from engine.cluster.machines.fleet import Fleet, TaskManagerState
from engine.cluster.machines.scheduler import Allocation
from engine.elements import Micros
from engine.graph.jobgraph import TaskId
from engine.graph.plan import VertexPlan
from engine.rest.model.cluster import Slot, TaskManagerInfo
from engine.rest.model.jobs import (
    JobDetails,
    SubtaskDetails,
    TaskStatus,
    TaskTotals,
    VertexDetails,
)
from engine.rest.model.operations import JobProgress, SourceProgress

_NOT_METRICS = ("currentInputWatermark", "currentOutputWatermark")


def job_details(master: JobMaster, fleet: Fleet) -> JobDetails:
    """One job."""
    plan, row = master.plan, master.row
    return JobDetails(
        id=row.job_id,
        name=row.name,
        status=master.life.status,
        start_ms=row.submitted_ms,
        end_ms=master.life.end_ms,
        timestamps=dict(master.life.entered_ms),
        parallelism=plan.slots,
        max_parallelism=plan.max_parallelism,
        plan=plan,
        vertices=tuple(_vertex(vertex, master, fleet) for vertex in plan.vertices),
        restart_strategy=str(master.failures.policy.strategy),
        settings=row.settings,
        arguments=row.arguments,
        waiting_for=master.waiting_for,
        failure=master.failure,
        metrics=job_metrics(master),
        latencies=tuple(latencies(master)),
    )


def _vertex(vertex: VertexPlan, master: JobMaster, fleet: Fleet) -> VertexDetails:
    subtasks = (
        _subtask(TaskId(vertex.id, index), master.attempt, fleet, vertex in master.plan.sources)
        for index in range(vertex.parallelism)
    )
    return VertexDetails(
        vertex.id, vertex.name, vertex.parallelism, master.plan.max_parallelism, tuple(subtasks)
    )


def _subtask(id_: TaskId, attempt: Attempt | None, fleet: Fleet, source: bool) -> SubtaskDetails:
    if attempt is None:
        return SubtaskDetails(id_.subtask, TaskStatus.CREATED)
    task = attempt.tasks[id_]
    host = attempt.where(id_)
    numbers = task.metrics
    return SubtaskDetails(
        index=id_.subtask,
        status=task.status,
        attempt=attempt.number,
        endpoint=host,
        task_manager_id=task_manager_id(host, fleet),
        start_ms=task.entered_ms.get(TaskStatus.DEPLOYING, -1),
        end_ms=task.entered_ms[task.status] if task.status.terminal else -1,
        status_ms=_durations(task),
        totals=_totals(task),
        metrics={name: value for name, value in numbers.items() if name not in _NOT_METRICS},
        input_watermark=None if source else _watermark(numbers, "currentInputWatermark"),
        output_watermark=_watermark(numbers, "currentOutputWatermark"),
    )


def _durations(task: TaskLife) -> Mapping[TaskStatus, int]:
    """How long it has been in each state, in the order in which it was."""
    entered = list(task.entered_ms.items())
    ends = [at for _, at in entered[1:]] + [now_ms()]
    return {status: max(0, end - at) for (status, at), end in zip(entered, ends, strict=True)}


def _totals(task: TaskLife) -> TaskTotals:
    numbers = task.metrics
    return TaskTotals(
        read_records=int(numbers.get("numRecordsIn", 0)),
        write_records=int(numbers.get("numRecordsOut", 0)),
        busy_ms=int(numbers.get("accumulateBusyTimeMs", 0)),
        backpressured_ms=int(numbers.get("accumulateBackPressuredTimeMs", 0)),
        idle_ms=int(numbers.get("accumulateIdleTimeMs", 0)),
        complete=bool(numbers),
    )


def _watermark(numbers: Mapping[str, float], name: str) -> Micros | None:
    return Micros(int(numbers[name])) if name in numbers else None


def job_progress(master: JobMaster) -> JobProgress:
    """How far a job is in event time; unknown until every subtask that reads has reported."""
    attempt = master.attempt
    sources = tuple(source_progress(vertex, attempt) for vertex in master.plan.sources)
    marks = [s.watermark for s in sources if s.watermark is not None and not s.finished]
    marks = marks or [s.watermark for s in sources if s.watermark is not None]
    reports = [] if attempt is None else [t.metrics_ms for t in attempt.tasks.values()]
    silent = any(_is_silent(_subtasks(vertex, attempt)) for vertex in master.plan.sources)
    return JobProgress(
        at_ms=max((at for at in reports if at is not None), default=now_ms()),
        position=None if silent else min(marks, default=None),
        sources=sources,
    )


def _subtasks(vertex: VertexPlan, attempt: Attempt | None) -> list[TaskLife]:
    ids = [TaskId(vertex.id, index) for index in range(vertex.parallelism)]
    return [] if attempt is None else [attempt.tasks[id_] for id_ in ids]


def _is_silent(tasks: Iterable[TaskLife]) -> bool:
    """Whether any that reads has not reported yet."""
    return any(task.metrics_ms is None and not task.input_ended for task in tasks)


def source_progress(vertex: VertexPlan, attempt: Attempt | None) -> SourceProgress:
    """How far one source is. Of several subtasks the slowest counts, so all must be known."""
    operator = vertex.operators[0]
    tasks = _subtasks(vertex, attempt)
    reading = [task for task in tasks if not task.input_ended]
    marks = [_watermark(task.metrics, "currentOutputWatermark") for task in reading or tasks]
    pending = [task.metrics.get("pendingRecords") for task in tasks]
    known = [rows for rows in pending if rows is not None]
    newest = [_watermark(task.metrics, "newestEventTime") for task in tasks]
    silent = _is_silent(tasks)
    return SourceProgress(
        uid=operator.uid,
        name=operator.name,
        vertex_id=vertex.id,
        watermark=None if silent else min((m for m in marks if m is not None), default=None),
        newest=max((time for time in newest if time is not None), default=None),
        pending_rows=int(sum(known)) if known and len(known) == len(pending) else None,
        finished=bool(tasks) and not reading,
    )


def task_manager_id(name: str, fleet: Fleet) -> str:
    """The id under which REST knows a task manager."""
    state = fleet.task_managers.get(name)
    if state is None:
        return f"(lost):{name}"
    born = 0 if state.process is None else int(state.process.created * 1000)
    return f"{state.hello.host}:{name}-{(born ^ state.hello.pid) & 0xFFFFFF:06x}"


def task_manager(
    state: TaskManagerState, fleet: Fleet, attempts: Mapping[str, JobMaster]
) -> TaskManagerInfo:
    """One task manager; `attempts`: who runs which attempt."""
    name = state.hello.name
    held = [slot for slot in fleet.slots.held_on(name) if slot.attempt_id in attempts]
    return TaskManagerInfo(
        id=task_manager_id(name, fleet),
        address=name,
        slots=state.hello.slots,
        allocated=tuple(_slot(attempts[slot.attempt_id], slot, state) for slot in held),
        last_heartbeat_ms=state.heard_ms,
        cpu_cores=psutil.cpu_count() or 1,
        physical_memory=psutil.virtual_memory().total,
        free_memory=psutil.virtual_memory().available,
        pid=state.hello.pid,
        metrics=process_metrics(state),
    )


def _slot(master: JobMaster, held: Allocation, state: TaskManagerState) -> Slot:
    attempt, index = master.attempt, held.index
    worker = None if attempt is None else attempt.workers.get(index)
    process = None if worker is None else worker.process
    tasks = 0 if attempt is None else sum(1 for _ in attempt.tasks_in(index))
    uses = {} if state.beat is None else state.beat.workers
    use = uses.get(f"{held.attempt_id}/{index}")
    pid = None if process is None else process.pid
    return Slot(master.row.job_id, tasks, pid, index, {} if use is None else use_metrics(use))
