"""A job's configuration: settings, cluster, parallelism, what keeps it running, and its runs."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from controlplane.access.lookup import cluster_for, job_for, operation_for, team_for
from controlplane.jobs import actions, keeping
from controlplane.jobs.configuration import configuration
from controlplane.jobs.moving import change_team, move_job, teams_for
from controlplane.jobs.queries import job_frame
from controlplane.operations.actions import cancel_operation
from dashboard.answers import checked, said, started
from dashboard.configuration_forms import (
    MoveForm,
    ReasonForm,
    RescaleForm,
    SettingsForm,
    TeamForm,
    UpkeepForm,
)
from dashboard.views.job_pages import job_page
from dashboard.views.requests import UserRequest


def _back(name: str) -> str:
    return reverse("dashboard:configuration", args=[name])


@login_required
@require_safe
def page(request: UserRequest, name: str) -> HttpResponse:
    """Settings with their source, runs with their lineage."""
    job = job_for(request.user, name)
    frame = job_frame(job, request.user)
    return job_page(
        request,
        "jobs/configuration.html",
        "configuration",
        job,
        frame,
        found=configuration(job, frame.run),
        teams=teams_for(job, request.user),
    )


@login_required
@require_POST
def settings(request: UserRequest, name: str) -> HttpResponse:
    """Change settings."""
    job, form = job_for(request.user, name), SettingsForm(request.POST)
    checked(form)
    actions.change_settings(job, request.user, form.settings())
    return said(request, f"Settings of {name} are kept", _back(name), move=True)


@login_required
@require_POST
def rescale(request: UserRequest, name: str) -> HttpResponse:
    """Run on at another parallelism."""
    job, asked = job_for(request.user, name), checked(RescaleForm(request.POST))
    operation = actions.rescale(job, request.user, asked["parallelism"], asked["idempotency_key"])
    return started(request, operation, _back(name))


@login_required
@require_POST
def rollback(request: UserRequest, name: str) -> HttpResponse:
    """Go back to the last version that was healthy."""
    job, asked = job_for(request.user, name), checked(ReasonForm(request.POST))
    operation = actions.rollback(
        job, request.user, asked["idempotency_key"], reason=asked["reason"]
    )
    return started(request, operation, _back(name))


@login_required
@require_POST
def upkeep(request: UserRequest, name: str) -> HttpResponse:
    """Whether the job is started again when its run ends."""
    job, asked = job_for(request.user, name), checked(UpkeepForm(request.POST))
    sentences = {
        "pause": f"{name} is left as it is when its run ends",
        "resume": f"{name} is kept running",
        "give_up": f"{name} is wanted no more",
    }
    keeping.WISHES[asked["wish"]](job, request.user, asked["reason"])
    return said(request, sentences[asked["wish"]], _back(name), move=True)


@login_required
@require_POST
def move(request: UserRequest, name: str) -> HttpResponse:
    """Run it on another cluster from now on."""
    job, asked = job_for(request.user, name), checked(MoveForm(request.POST))
    cluster = cluster_for(request.user, asked["cluster"])
    key = asked["idempotency_key"]
    if operation := move_job(job, request.user, cluster, asked["reason"], key):
        return started(request, operation, _back(name))
    return said(request, f"{name} starts on {cluster.name} from now on", _back(name), move=True)


@login_required
@require_POST
def team(request: UserRequest, name: str) -> HttpResponse:
    """Give it to another team."""
    job, asked = job_for(request.user, name), checked(TeamForm(request.POST))
    other = team_for(request.user, asked["team"])
    change_team(job, request.user, other, asked["reason"])
    return said(request, f"{name} is {other.name}'s from now on", _back(name), move=True)


@login_required
@require_POST
def cancel(request: UserRequest, operation_id: str) -> HttpResponse:
    """End an operation without its result."""
    operation = operation_for(request.user, operation_id)
    cancel_operation(operation, request.user, checked(ReasonForm(request.POST))["reason"])
    back = reverse("dashboard:job", args=[operation.job.name])
    return said(request, "It is being taken back", back)
