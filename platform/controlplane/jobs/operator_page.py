"""One operator of a running job: where it stands in the graph, and how its subtasks differ.

Units    as on the socket: rates per second, percent, epoch ms, bytes. `rate` of a source is what it
         gives, of every other vertex what it takes.
Order    the table is sorted by one column, unknown values last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from controlplane.access.errors import not_found
from controlplane.backends.subtasks import SubtaskRow, Subtasks, look_at
from controlplane.jobs.models import Run
from controlplane.jobs.plan_view import PlanNode, plan_view
from controlplane.live import topics
from controlplane.live.queries import latest

PAGE = 200
"""Rows of the table at a time."""
NOTHING_RUNS = "the job does not run: start it to see what its subtasks do"


@dataclass(frozen=True, slots=True)
class OperatorView:
    """A vertex, its neighbours, and its figures over all subtasks."""

    node: PlanNode
    before: tuple[PlanNode, ...]
    after: tuple[PlanNode, ...]
    figures: dict[str, Any]
    job_figures: dict[str, Any]
    subtasks: Subtasks

    @property
    def newest_ms(self) -> float | None:
        """Newest event time that the job's sources have read."""
        position, delay = self.job_figures.get("event_ms"), self.job_figures.get("delay_ms")
        return None if position is None or delay is None else position + delay

    def rate(self, row: SubtaskRow) -> float | None:
        """What the subtask of a source gives, what any other takes."""
        return row.out_rate if self.node.kind == "source" else row.in_rate

    def delay_ms(self, row: SubtaskRow) -> float | None:
        """By how much its watermark is behind the newest row that was read."""
        if row.watermark_ms is None or self.newest_ms is None:
            return None
        return max(0.0, self.newest_ms - row.watermark_ms)


def operator_view(run: Run | None, vertex_id: str) -> OperatorView:
    """A vertex of the job's newest run. Raises Refused (404) when its plan has none of that id."""
    plan = plan_view(run.plan) if run else None
    nodes = {node.id: node for node in plan.nodes} if plan else {}
    if run is None or plan is None or vertex_id not in nodes:
        raise not_found(what="operator", name=vertex_id)
    job_figures = latest(topics.job(run.job_id)) if not run.is_terminal else {}
    checkpoint = (job_figures.get("ckpt") or {}).get("id")
    return OperatorView(
        node=nodes[vertex_id],
        before=tuple(nodes[edge.source] for edge in plan.edges if edge.target == vertex_id),
        after=tuple(nodes[edge.target] for edge in plan.edges if edge.source == vertex_id),
        figures=latest(topics.operators(run.job_id)).get(vertex_id, {}) if job_figures else {},
        job_figures=job_figures,
        subtasks=Subtasks(away=NOTHING_RUNS)
        if run.is_terminal
        else look_at(run.cluster, run.engine_job_id, vertex_id, checkpoint),
    )


Column = Callable[[OperatorView, SubtaskRow], Any]

COLUMNS: dict[str, Column] = {
    "index": lambda view, row: row.index,
    "host": lambda view, row: row.host,
    "state": lambda view, row: row.state,
    "rate": OperatorView.rate,
    "rows_in": lambda view, row: row.rows_in,
    "rows_out": lambda view, row: row.rows_out,
    "busy": lambda view, row: row.busy,
    "waiting": lambda view, row: row.waiting,
    "idle": lambda view, row: row.idle,
    "wm_ms": lambda view, row: row.watermark_ms,
    "bytes": lambda view, row: row.state_bytes,
}


def columns(view: OperatorView) -> dict[str, Any]:
    """Every subtask, as one list per column: what the browser draws."""
    rows = view.subtasks.rows
    return {
        "vertex": view.node.id,
        "at_ms": view.subtasks.at_ms,
        "away": view.subtasks.away,
        **{name: [read(view, row) for row in rows] for name, read in COLUMNS.items()},
    }


@dataclass(frozen=True, slots=True)
class SubtaskPage:
    """One page of the table."""

    rows: tuple[tuple[SubtaskRow, float | None, float | None], ...]
    """Subtask, rate and delay."""
    sort: str
    descending: bool
    number: int
    pages: int


def subtask_page(view: OperatorView, sort: str, number: int) -> SubtaskPage:
    """The rows of that page, ordered by `sort`: `-rate` is the highest rate first."""
    descending, name = sort.startswith("-"), sort.removeprefix("-")
    read: Column = OperatorView.delay_ms if name == "delay" else COLUMNS.get(name, COLUMNS["index"])
    known = [row for row in view.subtasks.rows if read(view, row) is not None]
    unknown = [row for row in view.subtasks.rows if read(view, row) is None]
    ordered = sorted(known, key=lambda row: read(view, row), reverse=descending) + unknown
    pages = max(1, -(-len(ordered) // PAGE))
    number = min(max(1, number), pages)
    shown = ordered[(number - 1) * PAGE : number * PAGE]
    rows = tuple((row, view.rate(row), view.delay_ms(row)) for row in shown)
    return SubtaskPage(rows, name, descending, number, pages)


@dataclass(frozen=True, slots=True)
class HostRow:
    """The subtasks that run in one place, together."""

    host: str
    subtasks: int
    rate: float | None
    busy: int | None
    """Of its busiest subtask."""
    state_bytes: int | None


def by_host(view: OperatorView) -> list[HostRow]:
    """One row per place, the one with most rows first."""
    hosts: dict[str, list[SubtaskRow]] = {}
    for row in view.subtasks.rows:
        hosts.setdefault(row.host, []).append(row)
    found = [_host(view, host, rows) for host, rows in hosts.items()]
    return sorted(found, key=lambda row: (-(row.rate or 0.0), row.host))


def _host(view: OperatorView, host: str, rows: list[SubtaskRow]) -> HostRow:
    rates = [rate for row in rows if (rate := view.rate(row)) is not None]
    loads = [row.busy for row in rows if row.busy is not None]
    sizes = [row.state_bytes for row in rows if row.state_bytes is not None]
    return HostRow(
        host,
        len(rows),
        sum(rates) if rates else None,
        max(loads, default=None),
        sum(sizes) if sizes else None,
    )
