"""One operator of a job: its subtasks as bars and as a table, and as JSON that both follow."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from controlplane.access.lookup import job_for
from controlplane.jobs.operator_page import by_host, columns, operator_view, subtask_page
from controlplane.jobs.queries import current_run, job_frame
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest

COLUMNS = (
    ("index", "Subtask", ""),
    ("host", "On", ""),
    ("state", "State", "opt"),
    ("rate", "Records/s", "num"),
    ("rows_in", "Rows in", "num opt"),
    ("rows_out", "Rows out", "num opt"),
    ("busy", "Busy", "num"),
    ("waiting", "Waiting", "num"),
    ("idle", "Idle", "num opt"),
    ("delay", "Watermark delay", "num"),
    ("bytes", "State size", "num"),
)
"""Name, heading and class of the table's columns."""


@login_required
@require_safe
def page(request: UserRequest, name: str, vertex: str) -> HttpResponse:
    """The page of one operator."""
    job = job_for(request.user, name)
    frame = job_frame(job, request.user)
    view = operator_view(frame.run, vertex)
    number = request.GET.get("page", "")
    return job_page(
        request,
        "jobs/operator.html",
        "overview",
        job,
        frame,
        view=view,
        columns=COLUMNS,
        table=subtask_page(
            view, request.GET.get("sort", "index"), int(number) if number.isdecimal() else 1
        ),
        hosts=by_host(view),
        now=columns(view),
        page_data={
            "subtasks": view.node.par,
            "figures": view.job_figures,
        },
    )


@login_required
@require_safe
def subtasks(request: UserRequest, name: str, vertex: str) -> JsonResponse:
    """The subtasks now."""
    job = job_for(request.user, name)
    run = current_run(job)
    return JsonResponse(columns(operator_view(run, vertex)))
