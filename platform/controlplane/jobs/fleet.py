"""The list of jobs, read in a fixed number of queries.

Units    points in time are epoch milliseconds, as on the socket, so that page and patch agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from controlplane.access.lookup import RANK, roles_of, visible_jobs
from controlplane.access.models import Role
from controlplane.jobs.models import NO_RUN, TERMINAL, Job, JobVersion, Run
from controlplane.jobs.queries import current_runs, state_of
from controlplane.live import topics
from controlplane.live.queries import latest, latest_fleet
from controlplane.moments import epoch_ms
from controlplane.replay.models import OPEN, Replay
from controlplane.snapshots.queries import CheckpointLine, last_checkpoints

ATTENTION = frozenset({"RESTARTING", "FAILING", "FAILED", "LOST"})
STRIP = 16
"""Checkpoints in a small strip."""


@dataclass(frozen=True, slots=True)
class FleetRow:
    """One job in the list."""

    id: int
    name: str
    team: str
    state: str
    since_ms: int | None
    reason: str
    """Why it needs attention, in one sentence."""
    version: int | None
    figures: dict[str, Any]
    may_operate: bool
    checkpoints: tuple[CheckpointLine, ...] = ()

    @property
    def key(self) -> str:
        """Its row in the topic `fleet`."""
        return str(self.id)

    @property
    def group(self) -> str:
        """Heading it stands under."""
        if self.state in ATTENTION or (self.state == "CREATED" and self.reason):
            return "attention"
        return "stopped" if self.state in {*TERMINAL, NO_RUN} else "running"


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """One open replay in the list of jobs."""

    id: int
    name: str
    number: int
    team: str
    status: str
    version: int
    figures: dict[str, Any]

    @property
    def topic(self) -> str:
        """Where its news come from."""
        return topics.replay(self.id)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The list of jobs."""

    rows: tuple[FleetRow, ...]
    replays: tuple[ReplayRow, ...]
    table: dict[str, Any]
    """Latest value of the topic `fleet`, as this person sees it."""
    teams: tuple[str, ...]
    """Teams in which this person may deploy."""

    def group(self, name: str) -> tuple[FleetRow, ...]:
        """Rows under one heading."""
        return tuple(row for row in self.rows if row.group == name)

    @property
    def strips(self) -> dict[str, tuple[CheckpointLine, ...]]:
        """Last checkpoints of each job."""
        return {row.key: row.checkpoints for row in self.rows}

    @property
    def groups(self) -> tuple[tuple[str, str, tuple[FleetRow, ...]], ...]:
        """Headings in the order of the page."""
        return (
            ("attention", "Need attention", self.group("attention")),
            ("running", "Running", self.group("running")),
            ("stopped", "Not running", self.group("stopped")),
        )


def fleet(user: User) -> Fleet:
    """Every job that this person may see, with its latest figures."""
    jobs = list(visible_jobs(user).select_related("team").distinct())
    runs = current_runs(job.pk for job in jobs)
    strips = last_checkpoints([run.pk for run in runs.values()], STRIP)
    versions = _newest_versions(job.pk for job in jobs)
    figures = latest_fleet(job.pk for job in jobs)
    roles = roles_of(user)
    rows = tuple(
        _fleet_row(job, runs.get(job.pk), figures.get(str(job.pk), {}), versions, roles, strips)
        for job in jobs
    )
    teams = tuple(sorted(name for name, role in roles.items() if _operates(role)))
    return Fleet(rows, _replay_rows(jobs), figures, teams)


def _fleet_row(
    job: Job,
    run: Run | None,
    figures: dict[str, Any],
    versions: dict[int, int],
    roles: dict[str, Role],
    strips: dict[int, tuple[CheckpointLine, ...]],
) -> FleetRow:
    state = state_of(run, figures)
    return FleetRow(
        id=job.pk,
        name=job.name,
        team=job.team.name,
        state=state,
        since_ms=epoch_ms(run.state_since) if run else None,
        reason=run.failure if run and state != "RUNNING" else "",
        version=run.version.number if run else versions.get(job.pk),
        figures=figures if run and not run.is_terminal else {},
        may_operate=_operates(roles.get(job.team.name)),
        checkpoints=strips.get(run.pk, ()) if run else (),
    )


def _newest_versions(job_ids: Iterable[int]) -> dict[int, int]:
    pairs = JobVersion.objects.filter(job__in=list(job_ids)).order_by("number")
    return dict(pairs.values_list("job_id", "number"))


def _operates(role: Role | None) -> bool:
    return role is not None and RANK[role] >= RANK[Role.OPERATOR]


def _replay_rows(jobs: list[Job]) -> tuple[ReplayRow, ...]:
    names = {job.pk: job for job in jobs}
    open_ones = Replay.objects.filter(job__in=names, status__in=OPEN)
    return tuple(
        ReplayRow(
            replay.pk,
            f"{names[replay.job_id].name}@{replay.name}",
            replay.number,
            names[replay.job_id].team.name,
            replay.status,
            replay.version.number,
            latest(topics.replay(replay.pk)),
        )
        for replay in open_ones.select_related("version")
    )
