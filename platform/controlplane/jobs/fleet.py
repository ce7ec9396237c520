"""The list of jobs, read in a fixed number of queries.

Units    points in time are epoch milliseconds, as on the socket, so that page and patch agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User

from controlplane.access.lookup import RANK, roles_of, visible_jobs
from controlplane.access.models import Role
from controlplane.backends.models import Cluster
from controlplane.jobs.fleet_query import GROUPS, PAGE, VIEWS, FleetQuery
from controlplane.jobs.models import NO_RUN, TERMINAL, Job, JobVersion
from controlplane.jobs.queries import as_said, newest_runs, shown_state
from controlplane.live import topics
from controlplane.live.fleet import DOWN, SUM, attention
from controlplane.live.queries import latest, latest_fleet
from controlplane.moments import epoch_ms
from controlplane.replay.models import OPEN, Replay
from controlplane.snapshots.queries import CheckpointLine, last_checkpoints

STRIP = 16
"""Checkpoints in a small strip."""
EVERYTHING = FleetQuery()
_TITLES = {"attention": "Need attention", "running": "Running", "stopped": "Not running"}


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
    run: int | None = None
    """Its newest live run."""
    checkpoints: tuple[CheckpointLine, ...] = ()

    @property
    def key(self) -> str:
        """Its row in the topic `fleet`."""
        return str(self.id)

    @property
    def group(self) -> str:
        """Heading it stands under."""
        if self.state in DOWN:
            return "attention"
        if self.state in {*TERMINAL, NO_RUN}:
            return "stopped"
        return "attention" if self.reason else "running"

    @property
    def shown(self) -> str:
        """Its state as a person would say it."""
        return as_said(self.state, self.reason)

    @property
    def views(self) -> tuple[str, ...]:
        """Those of the page that it is in."""
        runs = self.state not in {*DOWN, *TERMINAL, NO_RUN}
        return ("all", *dict.fromkeys((self.group, *(("running",) if runs else ()))))


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
    """The list of jobs: one page of those that were asked for, and counts of all."""

    rows: tuple[FleetRow, ...]
    """Those of this page."""
    replays: tuple[ReplayRow, ...]
    table: dict[str, Any]
    """Latest value of the topic `fleet`, as this person sees it."""
    teams: tuple[str, ...]
    """Teams in which this person may deploy."""
    clusters: tuple[str, ...]
    """Where, if they say."""
    query: FleetQuery
    total: int
    """Jobs that this person may see."""
    matching: int
    """Jobs that were asked for."""
    counts: dict[str, int]
    """Jobs of each view, whatever the filter."""

    @property
    def strips(self) -> dict[str, tuple[CheckpointLine, ...]]:
        """Last checkpoints of each job."""
        return {row.key: row.checkpoints for row in self.rows}

    @property
    def groups(self) -> tuple[tuple[str, str, tuple[FleetRow, ...]], ...]:
        """Headings in the order of the page, each with its key and its rows."""
        by_team = self.query.group == "team"
        found: dict[str, list[FleetRow]] = {} if by_team else {key: [] for key in GROUPS}
        for row in self.rows:
            found.setdefault(row.team if by_team else row.group, []).append(row)
        return tuple((key, _TITLES.get(key, key), tuple(rows)) for key, rows in found.items())

    @property
    def pages(self) -> int:
        """How many there are."""
        return max(1, -(-self.matching // PAGE))

    @property
    def is_partial(self) -> bool:
        """Whether there are jobs that are not on this page."""
        return len(self.rows) < self.total


def fleet(user: User, query: FleetQuery = EVERYTHING) -> Fleet:
    """The jobs that were asked for, of those that this person may see, with latest figures."""
    jobs = list(visible_jobs(user).select_related("team").distinct())
    figures = latest_fleet(job.pk for job in jobs)
    roles = roles_of(user)
    all_rows = _light_rows(jobs, figures, roles)
    wanted = query.ordered([row for row in all_rows if query.matches(row)])
    # What the database knows holds also while nobody looks at the engines.
    needing = [{"state": row.state, "why": row.group == "attention"} for row in all_rows]
    figures[SUM] = figures.get(SUM, {}) | attention(needing)
    page = min(query.page, max(1, -(-len(wanted) // PAGE)))
    return Fleet(
        rows=_whole_rows(wanted[(page - 1) * PAGE : page * PAGE]),
        replays=_replay_rows(jobs),
        table=figures,
        teams=tuple(sorted(name for name, role in roles.items() if _operates(role))),
        clusters=tuple(Cluster.present.order_by("name").values_list("name", flat=True)),
        query=replace(query, page=page),
        total=len(jobs),
        matching=len(wanted),
        counts={view: sum(view in row.views for row in all_rows) for view in VIEWS},
    )


def _light_rows(jobs: list[Job], figures: dict[str, Any], roles: dict[str, Role]) -> list[FleetRow]:
    """Every job, with what costs no query of its own."""
    # No objects: a run's plan would be read for each.
    found = newest_runs(job.pk for job in jobs).values(
        "pk", "job_id", "state", "state_since", "failure", "version__number"
    )
    runs: dict[int, dict[str, Any]] = {run["job_id"]: dict(run) for run in found}
    return [_light_row(job, runs.get(job.pk), figures.get(str(job.pk), {}), roles) for job in jobs]


def _light_row(
    job: Job, run: dict[str, Any] | None, figures: dict[str, Any], roles: dict[str, Role]
) -> FleetRow:
    state = shown_state(run["state"] if run else None, figures)
    live = figures if run and run["state"] not in TERMINAL else {}
    why = live.get("why")
    failure = run["failure"] if run and state != "RUNNING" else ""
    return FleetRow(
        id=job.pk,
        name=job.name,
        team=job.team.name,
        state=state,
        since_ms=live.get("why_ms") if why else epoch_ms(run["state_since"]) if run else None,
        reason=why or failure,
        version=run["version__number"] if run else None,
        figures=live,
        may_operate=_operates(roles.get(job.team.name)),
        run=run["pk"] if run else None,
    )


def _whole_rows(rows: Sequence[FleetRow]) -> tuple[FleetRow, ...]:
    """The rows of a page, with what they show besides."""
    strips = last_checkpoints([row.run for row in rows if row.run], STRIP)
    versions = _newest_versions(row.id for row in rows)
    return tuple(
        replace(
            row,
            version=row.version or versions.get(row.id),
            checkpoints=strips.get(row.run, ()) if row.run else (),
        )
        for row in rows
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
