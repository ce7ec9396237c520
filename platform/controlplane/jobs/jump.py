"""Where the search box leads: jobs, their operators, savepoints and replays, by a part of a name.

Cost     four queries, however many jobs there are; without a text two, and nothing is searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from django.contrib.auth.models import User
from django.db.models import Q

from controlplane.access.lookup import visible_jobs
from controlplane.jobs.models import TERMINAL, Job, Run
from controlplane.jobs.plan_view import plan_view
from controlplane.replay.models import OPEN, Replay
from controlplane.snapshots.models import Savepoint

OF_A_KIND = 8
"""Places of one kind: more than that is no longer read."""
SHORTEST = 2
"""Letters from which on operators and savepoints are searched: fewer would find them all."""


@dataclass(frozen=True, slots=True)
class Jump:
    """One place that the search box leads to."""

    name: str
    note: str
    icon: str
    url: str


def jumps(user: User, text: str) -> list[Jump]:
    """What fits `text`, the best first; without a text, jobs and open replays."""
    words = text.strip().lower()
    jobs = {job.pk: job for job in visible_jobs(user).select_related("team").distinct()}
    found = [*_jobs(jobs, words), *_replays(jobs, words)]
    if len(words) >= SHORTEST:
        found += [*_operators(jobs, words), *_savepoints(jobs, words)]
    return found


def _jobs(jobs: dict[int, Job], words: str) -> list[Jump]:
    fitting = [job for job in jobs.values() if words in f"{job.name} {job.team.name}".lower()]
    fitting.sort(key=lambda job: (not job.name.startswith(words), job.name))
    return [
        Jump(job.name, f"job, {job.team.name}", "jobs", f"/jobs/{job.name}/")
        for job in fitting[:OF_A_KIND]
    ]


def _replays(jobs: dict[int, Job], words: str) -> list[Jump]:
    chosen = Replay.objects.filter(job__in=jobs)
    chosen = chosen if words else chosen.filter(status__in=OPEN)
    named = ((f"{jobs[one.job_id].name}@{one.name}", one) for one in chosen.order_by("-number"))
    fitting = [(name, one) for name, one in named if words in name.lower()]
    return [
        Jump(name, f"replay, {one.get_status_display().lower()}", "replay", f"/replays/{one.pk}/")
        for name, one in fitting[:OF_A_KIND]
    ]


def _operators(jobs: dict[int, Job], words: str) -> list[Jump]:
    runs = Run.objects.filter(job__in=jobs, purpose=Run.Purpose.LIVE).exclude(state__in=TERMINAL)
    fitting = (
        Jump(name, f"operator of {job}", icon, f"/jobs/{job}/op/{vertex}/")
        for job, vertex, icon, name in _named(runs.only("job", "plan"), jobs)
        if words in name.lower()
    )
    return list(islice(fitting, OF_A_KIND))


def _named(runs: Iterable[Run], jobs: dict[int, Job]) -> Iterator[tuple[str, str, str, str]]:
    """Job, vertex, icon and name of every operator of these runs."""
    for run in runs:
        for node in plan_view(run.plan).nodes:
            for name in node.chain:
                yield jobs[run.job_id].name, node.id, node.icon, name


def _savepoints(jobs: dict[int, Job], words: str) -> list[Jump]:
    fits = Q(label__icontains=words) | Q(pk=int(words) if words.isdecimal() else None)
    kept = Savepoint.objects.filter(fits, job__in=jobs).exclude(status=Savepoint.Status.DELETED)
    return [
        Jump(
            f"{one.pk} {one.label}".strip(),
            f"savepoint of {jobs[one.job_id].name}",
            "save",
            f"/jobs/{jobs[one.job_id].name}/savepoints/",
        )
        for one in kept.order_by("-pk")[:OF_A_KIND]
    ]
