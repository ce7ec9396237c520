"""What surrounds every page: counts of the navigation, operations to follow."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User

from controlplane.access.lookup import visible_jobs
from controlplane.operations.queries import OperationLine, unfinished_by
from controlplane.replay.models import OPEN, Replay


@dataclass(frozen=True, slots=True)
class Shell:
    """What surrounds every page."""

    jobs: int
    open_replays: int
    operations: tuple[OperationLine, ...]


def shell(user: User) -> Shell:
    """Counts of the navigation, and the operations that this person follows."""
    jobs = visible_jobs(user)
    return Shell(
        jobs=jobs.distinct().count(),
        open_replays=Replay.objects.filter(job__in=jobs.values("pk"), status__in=OPEN).count(),
        operations=unfinished_by(user),
    )
