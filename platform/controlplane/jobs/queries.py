"""What the pages of jobs show, read in a fixed number of queries.

Units    points in time are epoch milliseconds, as on the socket, so that page and patch agree.
Missing  a figure that nobody knows is absent or None; nothing is made up.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib.auth.models import User
from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from controlplane.access.lookup import allows
from controlplane.access.models import Role
from controlplane.alerts.models import Alert
from controlplane.jobs.first_replay import CORRECTED, FIRST, has_file, next_step
from controlplane.jobs.models import NO_RUN, TERMINAL, Job, JobVersion, Run, RunFailure
from controlplane.jobs.plan_view import PlanView, plan_view
from controlplane.live import topics
from controlplane.live.queries import latest
from controlplane.operations.queries import OperationLine, unfinished
from controlplane.replay.models import OPEN, Replay
from controlplane.snapshots.models import Savepoint, SavepointSchedule
from controlplane.snapshots.queries import CheckpointLine, last_checkpoints
from controlplane.snapshots.usable import usable

HISTORY = 240
"""Checkpoints on a job's page: its timeline draws each as a bar."""


def state_of(run: Run | None, figures: dict[str, Any]) -> str:
    """What is shown as the state: the row's, or the socket's when that is newer news."""
    return shown_state(run.state if run else None, figures)


def shown_state(state: str | None, figures: dict[str, Any]) -> str:
    """The same, of a run in that state; None is no run."""
    if state is None or state in TERMINAL:
        return state or NO_RUN
    live = figures.get("state")
    return str(live) if live and live != NO_RUN else state


def newest_runs(job_ids: Iterable[int]) -> QuerySet[Run]:
    """The newest live run of each job; those before it are not read."""
    live = Run.objects.filter(job=OuterRef("pk"), purpose=Run.Purpose.LIVE)
    newest = live.order_by("-started_at", "-id").values("pk")[:1]
    jobs = Job.objects.filter(pk__in=list(job_ids)).annotate(newest_run=Subquery(newest))
    return Run.objects.filter(pk__in=jobs.values("newest_run"))


def current_runs(job_ids: Iterable[int]) -> dict[int, Run]:
    """The same, by job."""
    runs = newest_runs(job_ids).select_related("version", "cluster")
    return {run.job_id: run for run in runs}


def current_run(job: Job) -> Run | None:
    """The newest live run of one job."""
    return current_runs([job.pk]).get(job.pk)


def as_said(state: str, why: str | None) -> str:
    """A state as a person would say it: a job that runs and ails, for that reason, is degraded."""
    return "DEGRADED" if state == "RUNNING" and why else state


@dataclass(frozen=True, slots=True)
class JobFrame:
    """What every page of one job shows: its head, its tabs, its running operations."""

    job: Job
    run: Run | None
    state: str
    note: str
    figures: dict[str, Any]
    may_operate: bool
    operations: tuple[OperationLine, ...]
    savepoints: int
    versions: int
    replays: int
    alerts: int
    """That fire."""
    failures: int
    """Of the last 24 hours, replays left aside."""
    newest_version: JobVersion | None
    active_replay: Replay | None

    @property
    def is_running(self) -> bool:
        """Whether there is a live run that has not ended."""
        return self.run is not None and not self.run.is_terminal

    @property
    def shown(self) -> str:
        """Its state as a person would say it."""
        return as_said(self.state, self.figures.get("why"))

    @property
    def figures_topic(self) -> str:
        """Topic of its figures."""
        return topics.job(self.job.pk)

    @property
    def start_versions(self) -> QuerySet[JobVersion]:
        """What it can be started with, newest first."""
        return self.job.versions.order_by("-number")[:100]

    @property
    def start_savepoints(self) -> QuerySet[Savepoint]:
        """What it can be started from, newest first."""
        return usable(self.job.savepoints.all())[:100]

    @property
    def older_code(self) -> bool:
        """Whether a newer version than the running one is there."""
        newest, run = self.newest_version, self.run
        return bool(newest and run and newest.number > run.version.number)

    @property
    def suggests_replay(self) -> bool:
        """Whether it is the demo's flights, which nobody has replayed yet."""
        newest = self.newest_version
        known = has_file(newest, FIRST) or has_file(newest, CORRECTED)
        return known and self.is_running and self.may_operate and not self.replays

    @property
    def first_replay(self) -> str:
        """What is to be done next for that: savepoint, upload or replay."""
        return next_step(self.job, self.newest_version)


def job_frame(job: Job, user: User) -> JobFrame:
    """The frame of a job that the user may see."""
    run = current_run(job)
    figures = latest(topics.job(job.pk)) if run and not run.is_terminal else {}
    state = state_of(run, figures)
    counts = (
        Job.objects.filter(pk=job.pk)
        .annotate(failed_lately=_failed_lately())
        .aggregate(
            savepoints=Count("savepoints", filter=_kept(), distinct=True),
            versions=Count("versions", distinct=True),
            replays=Count("replays", distinct=True),
            alerts=Count("alerts", filter=Q(alerts__state=Alert.State.FIRING), distinct=True),
            failures=Max("failed_lately"),
        )
    )
    return JobFrame(
        job=job,
        run=run,
        state=state,
        note=str(figures.get("note") or (run.failure if run and state != "RUNNING" else "")),
        figures=figures,
        may_operate=allows(user, job.team, Role.OPERATOR),
        operations=unfinished(job),
        newest_version=job.versions.order_by("-number").first(),
        active_replay=job.replays.filter(status__in=OPEN).order_by("-number").first(),
        **counts,
    )


def _failed_lately() -> Coalesce:
    lately = RunFailure.objects.filter(
        run__job=OuterRef("pk"),
        run__purpose=Run.Purpose.LIVE,
        at__gte=timezone.now() - timedelta(hours=24),
    )
    # Counted apart: joined with the others, each failure would be there once per savepoint.
    alone = lately.order_by().values("run__job").annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(alone), 0)


def _kept() -> Q:
    return ~Q(savepoints__status=Savepoint.Status.DELETED)


@dataclass(frozen=True, slots=True)
class JobOverview:
    """The first page of a job."""

    plan: PlanView
    operators: dict[str, Any]
    """Vertex id to its latest figures."""
    checkpoints: tuple[CheckpointLine, ...]
    events: list[dict[str, Any]]
    last_savepoint: Savepoint | None
    next_schedule: SavepointSchedule | None
    control: bool = field(default=False)
    """Whether it listens to a control stream."""
    SHOWN: ClassVar[int] = 60
    """Rows of the table of operators, until somebody asks for all."""

    @property
    def rows(self) -> list[tuple[Any, dict[str, Any]]]:
        """Nodes with their figures, for the table."""
        return [(node, self.operators.get(node.id, {})) for node in self.plan.nodes]

    @property
    def last_completed(self) -> dict[str, Any] | None:
        """The last completed checkpoint of the run, as in the topic `job.<id>`."""
        done = [line for line in self.checkpoints if line.status == "completed"]
        if not done:
            return None
        last = max(done, key=lambda line: line.end_ms or 0)
        return {"end_ms": last.end_ms, "dur_ms": last.dur_ms, "bytes": last.bytes}

    @property
    def recent_events(self) -> list[dict[str, Any]]:
        """What happened, newest first; told twice it is shown once."""
        once = {event["id"]: event for event in self.events}
        return sorted(once.values(), key=lambda event: -int(event["at_ms"]))[:12]


def job_overview(job: Job, run: Run | None) -> JobOverview:
    """The overview of a job; without a run it shows what is kept."""
    checkpoints = last_checkpoints([run.pk], HISTORY).get(run.pk, ()) if run else ()
    live = run is not None and not run.is_terminal
    return JobOverview(
        plan=plan_view(run.plan) if run else PlanView(),
        operators=latest(topics.operators(job.pk)) if live else {},
        checkpoints=checkpoints,
        events=latest(topics.events(job.pk)).get("events", []),
        last_savepoint=job.savepoints.filter(status=Savepoint.Status.COMPLETED).first(),
        next_schedule=job.schedules.filter(enabled=True).order_by("next_run_at").first(),
        control=bool(job.settings.get("control_port")),
    )


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version in the list."""

    version: JobVersion
    runs: int
    is_live: bool

    @property
    def before(self) -> int:
        """Number of the version that it came after; versions are numbered without gaps."""
        return self.version.number - 1


def version_rows(job: Job, run: Run | None) -> tuple[VersionRow, ...]:
    """Every version, newest first."""
    live = run.version_id if run and not run.is_terminal else None
    counted: QuerySet[JobVersion] = job.versions.select_related("created_by")
    return tuple(
        VersionRow(version, int(version.__dict__["run_count"]), version.pk == live)
        for version in counted.annotate(run_count=Count("runs")).order_by("-number")
    )
