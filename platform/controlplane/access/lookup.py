"""From a request to an object: the only way to get one, so that no view forgets to ask.

Errors   404 when there is none and when it belongs to others; 403 when the role is too low.
         Who comes with a token has no more than its grant, in all of these.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, TypeVar

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Model, QuerySet

from controlplane.access.errors import Refused, not_found
from controlplane.access.grants import grant_of
from controlplane.access.models import ApiToken, Membership, Role, Team
from controlplane.alerts.models import Alert, AlertRule, Route
from controlplane.backends.models import Cluster
from controlplane.jobs.models import Job, JobVersion
from controlplane.operations.models import Operation
from controlplane.replay.models import Difference, Replay
from controlplane.snapshots.models import Savepoint, SavepointSchedule, StrayFolder

if TYPE_CHECKING:
    Person = User | AnonymousUser

Found = TypeVar("Found", bound=Model)
RANK = {Role.VIEWER: 1, Role.OPERATOR: 2, Role.ADMIN: 3}


def visible_jobs(user: Person) -> QuerySet[Job]:
    """Every job of the teams that `user` is in; all of them for a superuser."""
    if not user.is_authenticated:
        return Job.objects.none()
    only = grant_of(user).team_id
    jobs = Job.objects.all() if only is None else Job.objects.filter(team_id=only)
    return jobs if user.is_superuser else jobs.filter(team__memberships__user=user)


def job_for(user: Person, name: str) -> Job:
    """The job of that name, when `user` may see it."""
    return _one(visible_jobs(user).select_related("team", "cluster").filter(name=name), "job", name)


def job_by_id(user: Person, job_id: int) -> Job:
    """The job with that id, when `user` may see it."""
    return _one(
        visible_jobs(user).select_related("team", "cluster").filter(pk=job_id), "job", job_id
    )


def cluster_for(user: Person, name: str) -> Cluster:
    """The cluster of that name; clusters are shared by all teams, so everybody sees them."""
    found = Cluster.present.all() if user.is_authenticated else Cluster.present.none()
    return _one(found.filter(name=name), "cluster", name)


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


def stray_for(user: Person, stray_id: int) -> StrayFolder:
    """The folder without a row with that id, when `user` may see the job it is named after."""
    found = StrayFolder.objects.filter(job__in=visible_jobs(user)).select_related(
        "job__team", "cluster"
    )
    return _one(found.filter(pk=stray_id), "stray folder", stray_id)


def replay_for(user: Person, replay_id: int) -> Replay:
    """The replay with that id, when `user` may see its job."""
    found = Replay.objects.filter(job__in=visible_jobs(user)).select_related(
        "job__team", "job__cluster", "savepoint", "version", "run"
    )
    return _one(found.filter(pk=replay_id), "replay", replay_id)


def difference_for(replay: Replay, difference_id: int) -> Difference:
    """One kind of differences of a replay that the user may see."""
    found = Difference.objects.filter(output__replay=replay).select_related("output__replay__job")
    return _one(found.filter(pk=difference_id), "difference", difference_id)


def operation_for(user: Person, operation_id: uuid.UUID | str) -> Operation:
    """The operation with that id, when `user` may see its job."""
    try:
        key = uuid.UUID(str(operation_id))
    except ValueError:
        missing = not_found(what="operation", name=operation_id)
        raise missing from None
    found = Operation.objects.filter(job__in=visible_jobs(user)).select_related("job__team", "run")
    return _one(found.filter(pk=key), "operation", operation_id)


def alert_for(user: User, alert_id: int) -> Alert:
    """The alert with that id, when `user` may see its job."""
    found = Alert.objects.filter(job__in=visible_jobs(user)).select_related("rule__team", "job")
    return _one(found.filter(pk=alert_id), "alert", alert_id)


def alert_rule_for(user: User, rule_id: int) -> AlertRule:
    """The rule with that id, when `user` is in its team."""
    found = AlertRule.objects.filter(team__in=visible_teams(user)).select_related("team", "job")
    return _one(found.filter(pk=rule_id), "alert rule", rule_id)


def alert_route_for(user: User, route_id: int) -> Route:
    """The route with that id, when `user` is in its team."""
    found = Route.objects.filter(team__in=visible_teams(user)).select_related("team")
    return _one(found.filter(pk=route_id), "alert route", route_id)


def visible_teams(user: User) -> QuerySet[Team]:
    """The teams that `user` is in; all of them for a superuser."""
    only = grant_of(user).team_id
    teams = Team.objects.all() if only is None else Team.objects.filter(pk=only)
    return teams if user.is_superuser else teams.filter(memberships__user=user)


def team_for(user: User, name: str) -> Team:
    """The team of that name, when `user` is in it."""
    return _one(visible_teams(user).filter(name=name), "team", name)


def api_token_for(user: User, token_id: int) -> ApiToken:
    """The token with that id, when it is the user's own; any for a platform admin."""
    tokens = ApiToken.objects.select_related("owner", "team")
    mine = tokens if is_platform_admin(user) else tokens.filter(owner=user)
    return _one(mine.filter(pk=token_id), "token", token_id)


def person_for(user: User, name: str) -> User:
    """The person of that name; only a platform admin looks people up."""
    require_platform_admin(user)
    return _one(User.objects.filter(username=name), "user", name)


def roles_of(user: User) -> dict[str, Role]:
    """Name of each team that `user` sees to their role there."""
    highest = grant_of(user).highest
    if user.is_superuser:
        return dict.fromkeys(visible_teams(user).values_list("name", flat=True), highest)
    held = Membership.objects.filter(user=user, team__in=visible_teams(user))
    pairs = held.values_list("team__name", "role")
    return {name: min(Role(role), highest, key=RANK.__getitem__) for name, role in pairs}


def operable_jobs(user: User) -> frozenset[int]:
    """Ids of the jobs with which `user` may do something: operator, or more."""
    held = roles_of(user).items()
    teams = [name for name, role in held if RANK[role] >= RANK[Role.OPERATOR]]
    found = visible_jobs(user).filter(team__name__in=teams)
    return frozenset(found.values_list("pk", flat=True))


def role_in(user: Person, team: Team) -> Role | None:
    """What `user` may do in `team`; a superuser is admin everywhere."""
    if not user.is_authenticated:
        return None
    grant = grant_of(user)
    if grant.team_id not in (None, team.pk):
        return None
    if user.is_superuser:
        return grant.highest
    found = Membership.objects.filter(user=user, team=team).values_list("role", flat=True).first()
    return min(Role(found), grant.highest, key=RANK.__getitem__) if found else None


def allows(user: Person, team: Team, role: Role) -> bool:
    """Whether `user` has at least `role` in `team`."""
    held = role_in(user, team)
    return held is not None and RANK[held] >= RANK[role]


def require(user: User, job: Job, role: Role) -> None:
    """Refuse unless `user` has at least `role` in the job's team."""
    require_in(user, job.team, role)


def require_in(user: User, team: Team, role: Role) -> None:
    """Refuse unless `user` has at least `role` in `team`."""
    if allows(user, team, role):
        return
    held = role_in(user, team) or "no role"
    token = grant_of(user).token
    have = f"token {token} gives {held}" if token else f"you have {held}"
    msg = f"this needs the {role.value} role in team {team.name}: {have}; ask an admin"
    raise Refused(403, "role", msg, {"role": role.value})


def is_platform_admin(user: Person) -> bool:
    """Whether `user` looks after people, teams and settings of the whole platform."""
    return user.is_authenticated and user.is_superuser and grant_of(user).is_whole


def require_platform_admin(user: User) -> None:
    """Refuse unless `user` looks after the whole platform."""
    if not is_platform_admin(user):
        msg = "this needs the platform admin role: you do not have it; ask one of them"
        raise Refused(403, "role", msg, {"role": "platform admin"})


def _one(candidates: QuerySet[Found], what: str, name: object) -> Found:
    found = candidates.first()
    if found is None:
        raise not_found(what, name)
    return found
