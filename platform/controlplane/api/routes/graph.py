"""A job from inside: its graph, the subtasks of its operators, its settings and their source."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from ninja import Router

from controlplane.access.lookup import job_for
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, part
from controlplane.api.schema.figures import GraphOut, SubtaskOut
from controlplane.api.schema.jobs import ConfigurationOut, RecoveryOut
from controlplane.jobs.configuration import configuration
from controlplane.jobs.operator_page import COLUMNS, operator_view
from controlplane.jobs.queries import current_run, job_overview
from controlplane.snapshots.recovery_point import RecoveryPoint, recovery_points

router = Router(tags=["graph"])


class Subtasks(Page[SubtaskOut]):
    """The subtasks of one operator, and since when that is so."""

    vertex: str
    at_ms: int
    away: str


@router.get("jobs/{name}/operators", response=GraphOut, summary="The graph of a job")
def graph(request: ApiRequest, name: str) -> dict[str, Any]:
    """Its operators with their latest figures, and where rows go."""
    job = job_for(request.auth, name)
    found = job_overview(job, current_run(job))
    nodes = [
        {
            "id": node.id,
            "name": node.name,
            "kind": node.kind,
            "parallelism": node.par,
            "chain": node.chain,
            "figures": figures,
        }
        for node, figures in found.rows
    ]
    return {"nodes": nodes, "edges": found.plan.edges}


@router.get("jobs/{name}/operators/{vertex}", response=Subtasks, summary="One operator")
def operator(
    request: ApiRequest,
    name: str,
    vertex: str,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> dict[str, Any]:
    """Its subtasks, as they are now."""
    view = operator_view(current_run(job_for(request.auth, name)), vertex)
    seen = view.subtasks
    rows = [{key: read(view, row) for key, read in COLUMNS.items()} for row in seen.rows]
    head = {"vertex": view.node.id, "at_ms": seen.at_ms, "away": seen.away}
    return head | part(rows, lambda row: (row["index"],), limit, cursor)


@router.get("jobs/{name}/configuration", response=ConfigurationOut, summary="Settings in force")
def settings(request: ApiRequest, name: str) -> dict[str, Any]:
    """Each setting with its source, what waits for the next start, and what keeps the job up."""
    job = job_for(request.auth, name)
    found = configuration(job, current_run(job))
    back = found.healthy.number if found.healthy else None
    return {"settings": found.rows, "upkeep": found.upkeep, "rollback_to": back}


@router.get("jobs/{name}/recovery-point", response=RecoveryOut, summary="Recovery point")
def recovery(request: ApiRequest, name: str) -> RecoveryPoint:
    """The age of its newest restorable state, against its objective."""
    job = job_for(request.auth, name)
    return recovery_points([job], timezone.now())[job.pk]
