"""One vertex in Flink's form: its subtasks, where they run, how busy they are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from engine.rest.model.jobs import MetricValue, SubtaskDetails, TaskStatus, VertexDetails
from engine.rest.render.statistics import aggregated
from engine.rest.render.times import duration

LOW, HIGH = 0.1, 0.5
"""Flink's limits: backpressured for more than a tenth of the time is low, for over a half high."""

_PRECEDENCE = (
    TaskStatus.FAILED,
    TaskStatus.CANCELING,
    TaskStatus.CANCELED,
    TaskStatus.INITIALIZING,
    TaskStatus.RUNNING,
)


def status_of(vertex: VertexDetails) -> TaskStatus:
    """The state of a vertex: the gravest of its subtasks' states, as Flink ranks them."""
    states = {subtask.status for subtask in vertex.subtasks}
    for state in _PRECEDENCE:
        if state in states:
            return state
    if TaskStatus.FINISHED in states:
        return TaskStatus.FINISHED if len(states) == 1 else TaskStatus.RUNNING
    return TaskStatus.CREATED


def vertex_span(vertex: VertexDetails) -> tuple[int, int]:
    """When its first subtask began, and when its last ended; -1 for what has not happened."""
    return _span(vertex.subtasks)


def totals_of(subtasks: Sequence[SubtaskDetails]) -> dict[str, object]:
    """What subtasks did together, under Flink's names; not `complete` is a lower bound."""
    reported = all(subtask.totals.complete for subtask in subtasks)
    summed = Counter[str]()
    for subtask in subtasks:
        summed.update(_numbers(subtask))
    read = reported and all(subtask.totals.read_bytes is not None for subtask in subtasks)
    written = reported and all(subtask.totals.write_bytes is not None for subtask in subtasks)
    body: dict[str, object] = {}
    for name, complete in (
        ("read-bytes", read),
        ("write-bytes", written),
        ("read-records", reported),
        ("write-records", reported),
    ):
        body |= {name: summed[name], f"{name}-complete": complete}
    times = ("accumulated-backpressured-time", "accumulated-idle-time")
    body |= {name: summed[name] for name in times}
    return body | {"accumulated-busy-time": float(summed["accumulated-busy-time"])}


def details(vertex: VertexDetails, now_ms: int) -> dict[str, object]:
    """The body of `/jobs/:id/vertices/:vid`."""
    return {
        "id": vertex.id,
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "maxParallelism": vertex.max_parallelism,
        "now": now_ms,
        "subtasks": [_subtask(subtask, now_ms) for subtask in vertex.subtasks],
        "aggregated": _aggregated(vertex.subtasks),
    }


def task_managers(vertex: VertexDetails, now_ms: int) -> dict[str, object]:
    """The body of `/jobs/:id/vertices/:vid/taskmanagers`: its subtasks by where they run."""
    groups: defaultdict[str, list[SubtaskDetails]] = defaultdict(list)
    for subtask in vertex.subtasks:
        groups[subtask.task_manager_id].append(subtask)
    return {
        "id": vertex.id,
        "name": vertex.name,
        "now": now_ms,
        "taskmanagers": [_task_manager(group, now_ms) for group in groups.values()],
    }


def backpressure(vertex: VertexDetails, now_ms: int) -> dict[str, object]:
    """The body of `/jobs/:id/vertices/:vid/backpressure`; "deprecated" says: no figures yet."""
    measured = [subtask for subtask in vertex.subtasks if _ratio(subtask.metrics, "idle") >= 0]
    if not measured:
        return {"status": "deprecated"}
    worst = max(_ratio(subtask.metrics, "backPressured") for subtask in measured)
    return {
        "status": "ok",
        "backpressureLevel": _level(worst),
        "backpressure-level": _level(worst),
        "end-timestamp": now_ms,
        "subtasks": [_pressure(subtask) for subtask in measured],
    }


def _subtask(subtask: SubtaskDetails, now_ms: int) -> dict[str, object]:
    return {
        "subtask": subtask.index,
        "status": subtask.status,
        "attempt": subtask.attempt,
        "endpoint": subtask.endpoint,
        "start-time": subtask.start_ms,
        "start_time": subtask.start_ms,
        "end-time": subtask.end_ms,
        "duration": duration(subtask.start_ms, subtask.end_ms, now_ms),
        "metrics": totals_of([subtask]),
        "taskmanager-id": subtask.task_manager_id,
        "status-duration": {status.value: ms for status, ms in subtask.status_ms.items()},
    }


def _task_manager(subtasks: Sequence[SubtaskDetails], now_ms: int) -> dict[str, object]:
    start_ms, end_ms = _span(subtasks)
    states = Counter(subtask.status for subtask in subtasks)
    together = VertexDetails("", "", len(subtasks), 0, tuple(subtasks))
    return {
        "endpoint": subtasks[0].endpoint,
        "taskmanager-id": subtasks[0].task_manager_id,
        "status": status_of(together),
        "start-time": start_ms,
        "end-time": end_ms,
        "duration": duration(start_ms, end_ms, now_ms),
        "metrics": totals_of(subtasks),
        "status-counts": {status.value: states[status] for status in TaskStatus},
        "aggregated": _aggregated(subtasks),
    }


def _aggregated(subtasks: Sequence[SubtaskDetails]) -> dict[str, object]:
    figures: defaultdict[str, list[int]] = defaultdict(list)
    spent: defaultdict[str, list[int]] = defaultdict(list)
    for subtask in subtasks:
        for name, value in _numbers(subtask).items():
            figures[name].append(value)
        for status, ms in subtask.status_ms.items():
            spent[status.value].append(ms)
    return {
        "metrics": {name: aggregated(values) for name, values in figures.items()},
        "status-duration": {name: aggregated(values) for name, values in spent.items()},
    }


def _numbers(subtask: SubtaskDetails) -> dict[str, int]:
    totals = subtask.totals
    return {
        "read-bytes": totals.read_bytes or 0,
        "read-records": totals.read_records,
        "write-bytes": totals.write_bytes or 0,
        "write-records": totals.write_records,
        "accumulated-backpressured-time": totals.backpressured_ms,
        "accumulated-idle-time": totals.idle_ms,
        "accumulated-busy-time": totals.busy_ms,
    }


def _pressure(subtask: SubtaskDetails) -> dict[str, object]:
    ratio = _ratio(subtask.metrics, "backPressured")
    return {
        "subtask": subtask.index,
        "backpressureLevel": _level(ratio),
        "backpressure-level": _level(ratio),
        "ratio": ratio,
        "idleRatio": _ratio(subtask.metrics, "idle"),
        "busyRatio": _ratio(subtask.metrics, "busy"),
    }


def _ratio(metrics: Mapping[str, MetricValue], kind: str) -> float:
    """Share of a second spent so, or -1 when it was not measured."""
    value = metrics.get(f"{kind}TimeMsPerSecond")
    return value / 1000 if isinstance(value, int | float) else -1.0


def _level(ratio: float) -> str:
    return "ok" if ratio <= LOW else "low" if ratio <= HIGH else "high"


def _span(subtasks: Sequence[SubtaskDetails]) -> tuple[int, int]:
    starts = [subtask.start_ms for subtask in subtasks if subtask.start_ms >= 0]
    ends = [subtask.end_ms for subtask in subtasks]
    return min(starts, default=-1), (-1 if not ends or -1 in ends else max(ends))
