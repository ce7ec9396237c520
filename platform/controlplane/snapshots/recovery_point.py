"""What a job would lose if it started again now: the age of its newest restorable state.

    met        younger than the objective
    missed     older: work of that time would be done again
    none       there is nothing to start from, and an objective
    resting    the job is not wanted to run: nothing new can be lost
    no_objective

Restorable are completed checkpoints of the job's newest run, while an engine still has it, and
savepoints that are complete, not gone, and not found bad by their last verification. One that is
marked for deletion counts: Keep takes the mark back.

Cost     three queries, however many jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Max

from controlplane.jobs.models import Job, RunState
from controlplane.jobs.queries import newest_runs
from controlplane.snapshots.models import Checkpoint, Savepoint
from controlplane.snapshots.usable import BAD

FORGOTTEN = (RunState.CANCELED, RunState.FINISHED, RunState.LOST)
"""After these ends an engine has thrown the checkpoints away, or is gone with them."""


class State(StrEnum):
    """How a job stands against its objective."""

    MET = "met"
    MISSED = "missed"
    NONE = "none"
    RESTING = "resting"
    NO_OBJECTIVE = "no_objective"


@dataclass(frozen=True, slots=True)
class RecoveryPoint:
    """Where one job would start again."""

    job: int
    state: State
    at: datetime | None
    """When the newest restorable state was saved; None: there is none."""
    source: str
    """What holds it: checkpoint or savepoint; empty when there is none."""
    objective: timedelta | None
    age: timedelta | None

    @property
    def objective_ms(self) -> float | None:
        """The objective, for a page."""
        return None if self.objective is None else self.objective.total_seconds() * 1_000


def recovery_points(jobs: Sequence[Job], now: datetime) -> Mapping[int, RecoveryPoint]:
    """Of each job, by its id."""
    keys = [job.pk for job in jobs]
    checkpoints, savepoints = _checkpoints(keys), _savepoints(keys)
    return {
        job.pk: recovery_point(job, checkpoints.get(job.pk), savepoints.get(job.pk), now)
        for job in jobs
    }


def recovery_point(
    job: Job, checkpoint: datetime | None, savepoint: datetime | None, now: datetime
) -> RecoveryPoint:
    """The verdict about one job, from when its newest of each kind was taken."""
    both = ((checkpoint, "checkpoint"), (savepoint, "savepoint"))
    known = [(at, name) for at, name in both if at is not None]
    at, source = max(known, default=(None, ""))
    age = None if at is None else max(timedelta(), now - at)
    objective = objective_of(job)
    return RecoveryPoint(job.pk, _state(job, objective, age), at, source, objective, age)


def objective_of(job: Job) -> timedelta | None:
    """How old the newest state may become, from the job's settings; None: nobody has said."""
    seconds = job.settings.get("recovery_point_objective_s") or 0
    return timedelta(seconds=seconds) if seconds > 0 else None


def _state(job: Job, objective: timedelta | None, age: timedelta | None) -> State:
    if objective is None:
        return State.NO_OBJECTIVE
    if job.desired_state != Job.Desired.RUNNING:
        return State.RESTING
    if age is None:
        return State.NONE
    return State.MET if age <= objective else State.MISSED


def _checkpoints(job_ids: Iterable[int]) -> dict[int, datetime]:
    runs = newest_runs(job_ids).exclude(state__in=FORGOTTEN)
    alive = dict(runs.values_list("pk", "job_id"))
    done = Checkpoint.objects.filter(run__in=alive, status=Checkpoint.Status.COMPLETED)
    taken = done.values_list("run").annotate(at=Max("trigger_at"))
    return {alive[run]: at for run, at in taken}


def _savepoints(job_ids: Iterable[int]) -> dict[int, datetime]:
    usable = Savepoint.objects.filter(
        job__in=job_ids,
        status__in=[Savepoint.Status.COMPLETED, Savepoint.Status.MARKED],
        missing_since=None,
    ).exclude(verdict__in=BAD)
    return dict(usable.values_list("job").annotate(at=Max("taken_at")))
