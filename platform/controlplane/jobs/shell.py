"""What surrounds every page: counts of the navigation, places to jump to, operations to follow."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User

from controlplane.access.lookup import visible_jobs
from controlplane.operations.queries import OperationLine, unfinished_by
from controlplane.replay.models import OPEN, Replay


@dataclass(frozen=True, slots=True)
class Jump:
    """One place that the search box leads to."""

    name: str
    note: str
    icon: str
    url: str


@dataclass(frozen=True, slots=True)
class Shell:
    """What surrounds every page."""

    jobs: int
    open_replays: int
    jumps: tuple[Jump, ...]
    operations: tuple[OperationLine, ...]


def shell(user: User) -> Shell:
    """Counts of the navigation, places to jump to, operations that this person follows."""
    jobs = list(visible_jobs(user).select_related("team").distinct())
    replays = Replay.objects.filter(job__in=[job.pk for job in jobs]).select_related("job")
    newest = list(replays.order_by("-number")[:50])
    jumps = [
        Jump("Jobs", "page", "jobs", "/jobs/"),
        Jump("Replays", "page", "replay", "/replays/"),
        Jump("Cluster", "page", "cluster", "/cluster/"),
        *(Jump(job.name, f"job, {job.team.name}", "jobs", f"/jobs/{job.name}/") for job in jobs),
        *(
            Jump(str(one), one.get_status_display().lower(), "replay", f"/replays/{one.pk}/")
            for one in newest
        ),
    ]
    return Shell(
        jobs=len(jobs),
        open_replays=sum(one.status in OPEN for one in newest),
        jumps=tuple(jumps),
        operations=unfinished_by(user),
    )
