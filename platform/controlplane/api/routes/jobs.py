"""Jobs: listing, making, changing, starting and ending them."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import File, Form, Router, Status, UploadedFile

from controlplane.access.lookup import (
    cluster_for,
    job_for,
    roles_of,
    team_for,
    visible_jobs,
)
from controlplane.api.auth import ApiRequest
from controlplane.api.paging import DEFAULT_LIMIT, Cursor, Limit, Page, page
from controlplane.api.schema.jobs import (
    Heard,
    JobDetail,
    JobOut,
    LineIn,
    MoveIn,
    SettingsIn,
    TeamIn,
    UpkeepIn,
)
from controlplane.api.schema.operations import OperationOut
from controlplane.audit.redact import redacted
from controlplane.jobs import actions, keeping
from controlplane.jobs.models import Job
from controlplane.jobs.moving import change_team, move_job
from controlplane.jobs.queries import current_runs, state_of
from controlplane.live import topics
from controlplane.live.queries import latest
from controlplane.operations.models import Operation

router = Router(tags=["jobs"])


@router.get("jobs", response=Page[JobOut], summary="List jobs")
def list_jobs(
    request: ApiRequest, team: str = "", limit: Limit = DEFAULT_LIMIT, cursor: Cursor = ""
) -> dict[str, Any]:
    """Every job that you may see, by name; with `team`, those of one team."""
    jobs = visible_jobs(request.auth).select_related("team", "cluster").distinct()
    if team:
        jobs = jobs.filter(team=team_for(request.auth, team))
    return page(jobs, lambda found: _told(request, found), limit, cursor, "name")


@router.post("jobs", response={201: JobDetail}, summary="Make a job")
def make_job(
    request: ApiRequest,
    file: Annotated[
        UploadedFile, File(description="job file: .py, .zip or .whl; .jar for Apache Flink")
    ],
    name: Annotated[str, Form(max_length=64)],
    team: Annotated[str, Form(max_length=64)],
    parallelism: Annotated[int, Form()] = 1,
    arguments: Annotated[list[str], Form()] = [],  # noqa: B006 - a parameter of a form
    note: Annotated[str, Form(max_length=500)] = "",
    cluster: Annotated[
        str, Form(max_length=64, description="where it runs; else the first that can run the file")
    ] = "",
) -> Status[dict[str, Any]]:
    """A job with its first version; it is not started. Operator."""
    owner = team_for(request.auth, team)
    settings = {"parallelism": parallelism, "arguments": arguments}
    content = file.read()
    job = actions.create_job(
        name,
        owner,
        request.auth,
        file.name or "",
        content,
        settings=settings,
        note=note,
        cluster=cluster_for(request.auth, cluster) if cluster else None,
    )
    return Status(201, _detail(request, job))


@router.get("jobs/{name}", response=JobDetail, summary="One job")
def one_job(request: ApiRequest, name: str) -> dict[str, Any]:
    """The job, its run and its latest figures."""
    return _detail(request, job_for(request.auth, name))


@router.patch("jobs/{name}/settings", response=JobDetail, summary="Change settings")
def change_settings(request: ApiRequest, name: str, body: SettingsIn) -> dict[str, Any]:
    """They hold from the next start on. Operator."""
    job = job_for(request.auth, name)
    values = body.dict(exclude_unset=True)
    return _detail(request, actions.change_settings(job, request.auth, values))


@router.post(
    "jobs/{name}/move",
    response={200: JobDetail, 202: OperationOut},
    summary="Move to another cluster",
)
def move(
    request: ApiRequest, name: str, body: MoveIn
) -> Status[dict[str, Any]] | Status[Operation]:
    """A job that runs goes on there from a savepoint (202); another one starts there. Operator."""
    job, user = job_for(request.auth, name), request.auth
    if operation := move_job(job, user, cluster_for(user, body.cluster), body.reason):
        return Status(202, operation)
    return Status(200, _detail(request, job_for(user, name)))


@router.post("jobs/{name}/team", response=JobDetail, summary="Give to another team")
def give(request: ApiRequest, name: str, body: TeamIn) -> dict[str, Any]:
    """Its people lose it, the other team's get it. Admin of both."""
    job, user = job_for(request.auth, name), request.auth
    change_team(job, user, team_for(user, body.team), body.reason)
    return _detail(request, job_for(user, name))


@router.post("jobs/{name}/upkeep", response=JobDetail, summary="Pause or resume upkeep")
def upkeep(request: ApiRequest, name: str, body: UpkeepIn) -> dict[str, Any]:
    """Whether it is started again when its run ends. Operator."""
    keeping.WISHES[body.wish](job_for(request.auth, name), request.auth, body.reason)
    return _detail(request, job_for(request.auth, name))


@router.post("jobs/{name}/control", response=Heard, summary="Send a control line")
def control(request: ApiRequest, name: str, body: LineIn) -> Heard:
    """A line for the job's control stream. Operator."""
    job = job_for(request.auth, name)
    return Heard(listeners=actions.send_control(job, request.auth, body.line))


def _told(request: ApiRequest, jobs: list[Job]) -> list[dict[str, Any]]:
    """In the shape of JobOut."""
    runs, roles = current_runs(job.pk for job in jobs), roles_of(request.auth)
    for job in jobs:
        if run := runs.get(job.pk):
            run.job = job  # its name is told; nobody asks for the row again
    return [
        {
            "name": job.name,
            "team": job.team.name,
            "cluster": job.cluster.name,
            "role": str(roles[job.team.name]),
            "desired_state": job.desired_state,
            "state": state_of(runs.get(job.pk), {}),
            "settings": redacted(job.settings),
            "created_at": job.created_at,
            "run": runs.get(job.pk),
        }
        for job in jobs
    ]


def _detail(request: ApiRequest, job: Job) -> dict[str, Any]:
    (told,) = _told(request, [job])
    return told | {"figures": latest(topics.job(job.pk)) if told["run"] else {}}
