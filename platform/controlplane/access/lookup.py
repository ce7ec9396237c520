"""From a request to an object: the only way to get one, so that no view forgets to ask.

Errors   404 when there is none and when it belongs to others; 403 when the role is too low.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, TypeVar

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Model, QuerySet

from controlplane.access.errors import Refused, not_found
from controlplane.access.models import Membership, Role, Team
from controlplane.jobs.models import Job, JobVersion
from controlplane.operations.models import Operation
from controlplane.replay.models import Replay
from controlplane.snapshots.models import Savepoint, SavepointSchedule

if TYPE_CHECKING:
    Person = User | AnonymousUser

Found = TypeVar("Found", bound=Model)
RANK = {Role.VIEWER: 1, Role.OPERATOR: 2, Role.ADMIN: 3}


def visible_jobs(user: Person) -> QuerySet[Job]:
    """Every job of the teams that `user` is in; all of them for a superuser."""
    if not user.is_authenticated:
        return Job.objects.none()
    if user.is_superuser:
        return Job.objects.all()
    return Job.objects.filter(team__memberships__user=user)


def job_for(user: Person, name: str) -> Job:
    """The job of that name, when `user` may see it."""
    return _one(visible_jobs(user).select_related("team", "cluster").filter(name=name), "job", name)


def job_by_id(user: Person, job_id: int) -> Job:
    """The job with that id, when `user` may see it."""
    return _one(
        visible_jobs(user).select_related("team", "cluster").filter(pk=job_id), "job", job_id
    )


def version_for(job: Job, number: int) -> JobVersion:
    """Version `number` of a job that the user may see."""
    found = job.versions.select_related("job").filter(number=number)
    return _one(found, "version", f"{number} of {job.name}")


def savepoint_for(user: Person, savepoint_id: int) -> Savepoint:
    """The savepoint with that id, when `user` may see its job."""
    found = Savepoint.objects.filter(job__in=visible_jobs(user)).select_related(
        "job__team", "job__cluster", "run", "version"
    )
    return _one(found.filter(pk=savepoint_id), "savepoint", savepoint_id)


def schedule_for(user: Person, schedule_id: int) -> SavepointSchedule:
    """The schedule with that id, when `user` may see its job."""
    found = SavepointSchedule.objects.filter(job__in=visible_jobs(user)).select_related(
        "job__team", "job__cluster"
    )
    return _one(found.filter(pk=schedule_id), "schedule", schedule_id)


def replay_for(user: Person, replay_id: int) -> Replay:
    """The replay with that id, when `user` may see its job."""
    found = Replay.objects.filter(job__in=visible_jobs(user)).select_related(
        "job__team", "job__cluster", "savepoint", "version", "run"
    )
    return _one(found.filter(pk=replay_id), "replay", replay_id)


def operation_for(user: Person, operation_id: uuid.UUID | str) -> Operation:
    """The operation with that id, when `user` may see its job."""
    try:
        key = uuid.UUID(str(operation_id))
    except ValueError:
        missing = not_found(what="operation", name=operation_id)
        raise missing from None
    found = Operation.objects.filter(job__in=visible_jobs(user)).select_related("job__team", "run")
    return _one(found.filter(pk=key), "operation", operation_id)


def team_for(user: Person, name: str) -> Team:
    """The team of that name, when `user` is in it."""
    teams = Team.objects.all() if user.is_superuser else Team.objects.filter(members=user.pk)
    return _one(teams.filter(name=name), "team", name)


def role_in(user: Person, team: Team) -> Role | None:
    """What `user` may do in `team`; a superuser is admin everywhere."""
    if not user.is_authenticated:
        return None
    if user.is_superuser:
        return Role.ADMIN
    found = Membership.objects.filter(user=user, team=team).values_list("role", flat=True).first()
    return Role(found) if found else None


def allows(user: Person, team: Team, role: Role) -> bool:
    """Whether `user` has at least `role` in `team`."""
    held = role_in(user, team)
    return held is not None and RANK[held] >= RANK[role]


def require(user: Person, job: Job, role: Role) -> None:
    """Refuse unless `user` has at least `role` in the job's team."""
    require_in(user, job.team, role)


def require_in(user: Person, team: Team, role: Role) -> None:
    """Refuse unless `user` has at least `role` in `team`."""
    if allows(user, team, role):
        return
    held = role_in(user, team) or "no role"
    msg = f"this needs the {role.value} role in team {team.name}: you have {held}; ask an admin"
    raise Refused(403, "role", msg, {"role": role.value})


def _one(candidates: QuerySet[Found], what: str, name: object) -> Found:
    found = candidates.first()
    if found is None:
        raise not_found(what, name)
    return found
