"""Moving a job to another cluster: it is stopped, so that nothing of it runs at two places.

Errors   Refused, with one sentence.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from controlplane.access.errors import Refused
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.backends.models import Cluster
from controlplane.jobs.health import live_run
from controlplane.jobs.models import Job


@transaction.atomic
def move_job(job: Job, actor: User, cluster: Cluster, reason: str = "") -> Job:
    """Start the job on that cluster from now on. Operator."""
    require(actor, job, Role.OPERATOR)
    locked = Job.objects.select_for_update().select_related("cluster", "team").get(pk=job.pk)
    if live_run(locked):
        msg = (
            f"job {job.name} runs on {locked.cluster.name}: stop it with a savepoint, move it, and "
            f"start it from that on {cluster.name}"
        )
        raise Refused(409, "running", msg, {"cluster": msg})
    before = {"cluster": locked.cluster.name}
    locked.cluster = cluster
    locked.save(update_fields=["cluster"])
    after = {"cluster": cluster.name}
    record(actor, "job.move", job.name, job=job, reason=reason, before=before, after=after)
    return locked
