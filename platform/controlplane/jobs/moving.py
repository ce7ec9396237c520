"""Moving a job to another cluster, or to another team.

Errors   Refused, with one sentence.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.backends.models import Cluster
from controlplane.jobs import lifecycle
from controlplane.jobs.health import live_run
from controlplane.jobs.models import Job
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
    if live_run(locked):
        params = {"cluster": cluster.pk}
        return start_operation("move", locked, actor, params, idempotency_key, reason=reason)
    require_no_replay(locked, "move")
    before = {"cluster": locked.cluster.name}
    lifecycle.place(locked, cluster)
    after = {"cluster": cluster.name}
    record(actor, "job.move", job.name, job=locked, reason=reason, before=before, after=after)
    return None
