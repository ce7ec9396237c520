"""Moving a job to another cluster, or to another team.

Errors   Refused, with one sentence.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from controlplane.access.errors import Refused
from controlplane.access.lookup import require, require_in, roles_of
from controlplane.access.models import Role, Team
from controlplane.alerts.models import AlertRule
from controlplane.audit.record import record
from controlplane.backends.models import Cluster
from controlplane.jobs import lifecycle
from controlplane.jobs.health import live_run
from controlplane.jobs.models import Job
from controlplane.jobs.placement import check_place
from controlplane.operations.kinds.checks import require_no_replay
from controlplane.operations.models import Operation
from controlplane.operations.start import start_operation


@transaction.atomic
def move_job(
    job: Job, actor: User, cluster: Cluster, reason: str = "", idempotency_key: str = ""
) -> Operation | None:
    """Start the job on that cluster from now on; one that runs goes on there. Operator.

    None when there is nothing to be done but to note it: the job does not run.
    """
    require(actor, job, Role.OPERATOR)
    locked = Job.objects.select_for_update().select_related("cluster", "team").get(pk=job.pk)
    if newest := locked.versions.order_by("-number").first():
        check_place(newest.filename, cluster)
    if live_run(locked):
        params = {"cluster": cluster.pk}
        return start_operation("move", locked, actor, params, idempotency_key, reason=reason)
    require_no_replay(locked, "move")
    before = {"cluster": locked.cluster.name}
    lifecycle.place(locked, cluster)
    after = {"cluster": cluster.name}
    record(actor, "job.move", job.name, job=locked, reason=reason, before=before, after=after)
    return None


@transaction.atomic
def change_team(job: Job, actor: User, team: Team, reason: str = "") -> Job:
    """Give the job to another team. Admin of both.

    What belongs to the job goes with it, rules about it alone too; what is under way goes on.
    Both teams can read that in the audit log.
    """
    require(actor, job, Role.ADMIN)
    require_in(actor, team, Role.ADMIN)
    locked = Job.objects.select_for_update().select_related("team").get(pk=job.pk)
    old = locked.team
    if old.pk == team.pk:
        msg = f"job {job.name} is team {team.name}'s already: choose another team"
        raise Refused(409, "same_team", msg, {"team": msg})
    locked.team = team
    locked.save(update_fields=["team"])
    rules = AlertRule.objects.filter(job=locked).update(team=team)
    record(
        actor,
        "job.team",
        job.name,
        job=locked,
        team=old,
        reason=reason,
        before={"team": old.name},
        after={"team": team.name, "alert_rules": rules},
    )
    return locked


def teams_for(job: Job, user: User) -> tuple[str, ...]:
    """The teams that this person may give the job to."""
    admin = {name for name, role in roles_of(user).items() if role == Role.ADMIN}
    return tuple(sorted(admin - {job.team.name})) if job.team.name in admin else ()
