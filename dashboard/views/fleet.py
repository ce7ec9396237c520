"""The list of jobs, and deploying a new one."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import cluster_for, team_for
from controlplane.jobs.actions import create_job
from controlplane.jobs.actions import deploy as deploy_job
from controlplane.jobs.fleet import fleet
from controlplane.jobs.fleet_query import FleetQuery
from controlplane.jobs.fleet_rates import rates_lately
from controlplane.jobs.settings import split_arguments
from controlplane.moments import now_ms
from dashboard.answers import checked, started
from dashboard.forms import DeployForm
from dashboard.views.requests import UserRequest

VIEWS = (
    ("all", "All"),
    ("attention", "Need attention"),
    ("running", "Running"),
    ("stopped", "Not running"),
)
COLUMNS = (
    ("Job", "c-name", "name"),
    ("State", "c-state", ""),
    ("Records in", "num c-in", "in"),
    ("Event time", "num c-ev", "event_ms"),
    ("Watermark delay", "num c-lag", "delay_ms"),
    ("Last checkpoint", "c-ck", "ckpt_ms"),
    ("Busy, waiting", "c-bp", "busy"),
    ("Restarts", "num c-rs", "restarts"),
    ("Version", "num c-up", ""),
)
"""Title, class, and what it can be sorted by."""


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """The jobs that this person may see: those that are asked for, a page of them."""
    found = fleet(request.user, FleetQuery.of(request.GET.dict()))
    context = {
        "section": "jobs",
        "fleet": found,
        "form": DeployForm(),
        "views": VIEWS,
        "columns": [_column(found.query, *column) for column in COLUMNS],
    }
    return render(request, "jobs/list.html", context)


@login_required
@require_safe
def rates(request: UserRequest) -> JsonResponse:
    """What the small lines of these rows begin with: `?job=1&job=2`."""
    asked = [int(one) for one in request.GET.getlist("job") if one.isdecimal() and len(one) < 19]
    return JsonResponse(rates_lately(request.user, asked, now_ms()))


@login_required
@require_POST
def deploy(request: UserRequest) -> HttpResponse:
    """Create a job from an uploaded file and start it."""
    asked = checked(DeployForm(request.POST, request.FILES))
    team = team_for(request.user, asked["team"])
    job = create_job(
        asked["name"],
        team,
        request.user,
        asked["file"].name,
        asked["file"].read(),
        {
            "parallelism": asked["parallelism"],
            "arguments": split_arguments(asked["arguments"]),
        },
        cluster=cluster_for(request.user, asked["cluster"]) if asked["cluster"] else None,
    )
    operation = deploy_job(job, request.user, idempotency_key=asked["idempotency_key"])
    return started(request, operation, reverse("dashboard:job", args=[job.name]), move=True)


def _column(query: FleetQuery, title: str, css: str, name: str) -> dict[str, str | None]:
    """A heading: a click sorts by largest, then by smallest, then as at first."""
    if not name:
        return {"title": title, "css": css, "next": None, "direction": None}
    turns = ["name", "-name"] if name == "name" else [f"-{name}", name, "name"]
    held = query.sort in turns and query.column == name
    following = turns[(turns.index(query.sort) + 1) % len(turns)] if held else turns[0]
    direction = ("descending" if query.sort.startswith("-") else "ascending") if held else None
    return {"title": title, "css": css, "next": following, "direction": direction}
