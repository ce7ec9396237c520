"""The list of jobs, and deploying a new one."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import team_for
from controlplane.jobs.actions import create_job
from controlplane.jobs.actions import deploy as deploy_job
from controlplane.jobs.fleet import fleet
from controlplane.jobs.settings import split_arguments
from dashboard.answers import checked, started
from dashboard.forms import DeployForm
from dashboard.views.requests import UserRequest


@login_required
@require_safe
def page(request: UserRequest) -> HttpResponse:
    """Every job that this person may see."""
    return render(
        request,
        "jobs/list.html",
        {"section": "jobs", "fleet": fleet(request.user), "form": DeployForm()},
    )


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
    )
    operation = deploy_job(job, request.user, idempotency_key=asked["idempotency_key"])
    return started(request, operation, reverse("dashboard:job", args=[job.name]), move=True)
