"""What surrounds every page: counts of the navigation, operations to follow."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Count, Q

from controlplane.access.lookup import visible_jobs
from controlplane.alerts.models import Alert
from controlplane.operations.queries import OperationLine, unfinished_by
from controlplane.replay.models import OPEN, Replay


@dataclass(frozen=True, slots=True)
class Shell:
    """What surrounds every page."""

    jobs: int
    alerts: int
    """That fire."""
    open_replays: int
    operations: tuple[OperationLine, ...]


def shell(user: User) -> Shell:
    """Counts of the navigation, and the operations that this person follows."""
    jobs = visible_jobs(user)
    firing = Q(alerts__state=Alert.State.FIRING)
    counts = jobs.aggregate(
        jobs=Count("pk", distinct=True), alerts=Count("alerts", filter=firing, distinct=True)
    )
    return Shell(
        **counts,
        open_replays=Replay.objects.filter(job__in=jobs.values("pk"), status__in=OPEN).count(),
        operations=unfinished_by(user),
    )
