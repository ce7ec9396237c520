"""Which run a job has, and which runs and versions were healthy.

A run is healthy when it came up and completed a checkpoint after which the engine did not restart
it, and it has not failed. A version is healthy when a live run of it is or was.

    up ── checkpoint ── restart ── checkpoint ── …    healthy: the last checkpoint is the later one
    up ── checkpoint ── restart ── …                  not: it did not get that far again
    up ── checkpoint ── failed                        not, whatever it completed before
"""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Coalesce

from controlplane.jobs.models import TERMINAL, Job, JobVersion, Run, RunState
from controlplane.snapshots.models import Checkpoint


def live_run(job: Job) -> Run | None:
    """The run that the job has just now, if any."""
    alive = job.runs.filter(purpose=Run.Purpose.LIVE).exclude(state__in=TERMINAL)
    return alive.select_related("job__cluster", "version").first()


def healthy_runs(job: Job) -> QuerySet[Run]:
    """Its live runs that are or were healthy, the newest first."""
    since = Coalesce(OuterRef("restarted_at"), OuterRef("started_at"))
    later = Checkpoint.objects.filter(
        run=OuterRef("pk"), status=Checkpoint.Status.COMPLETED, trigger_at__gte=since
    )
    live = job.runs.filter(Exists(later), purpose=Run.Purpose.LIVE)
    return live.exclude(state=RunState.FAILED).order_by("-started_at", "-id")


def last_healthy_version(job: Job, besides: Run | None = None) -> JobVersion | None:
    """The version of the newest healthy run; not that of `besides`, or of the last run at all."""
    last = besides or job.runs.filter(purpose=Run.Purpose.LIVE).first()
    others = healthy_runs(job).exclude(version=last.version_id if last else None)
    found = others.select_related("version").first()
    return found.version if found else None


def is_healthy(run: Run) -> bool:
    """Whether that run is, or was when it ended."""
    return healthy_runs(run.job).filter(pk=run.pk).exists()
