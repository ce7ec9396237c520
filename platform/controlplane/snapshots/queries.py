"""Checkpoints and schedules as pages show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from statistics import quantiles

from django.db.models import Count, OuterRef, Q, Subquery

from controlplane.jobs.models import Job, Run
from controlplane.moments import epoch_ms
from controlplane.snapshots.models import Checkpoint, Savepoint, SavepointSchedule
from controlplane.snapshots.usable import usable


@dataclass(frozen=True, slots=True)
class CheckpointLine:
    """One checkpoint, with the field names of the topic `job.<id>.ckpt`."""

    run: int
    checkpoint: int
    kind: str
    status: str
    trigger_ms: int
    dur_ms: int | None
    bytes: int | None
    failure: str
    path: str = ""

    @property
    def end_ms(self) -> int | None:
        """When it was complete or given up."""
        return None if self.dur_ms is None else self.trigger_ms + self.dur_ms


def line_of(row: Checkpoint) -> CheckpointLine:
    """A row as the pages show it."""
    return CheckpointLine(
        run=row.run_id,
        checkpoint=row.engine_checkpoint_id,
        kind=row.kind,
        status=row.status,
        trigger_ms=epoch_ms(row.trigger_at),
        dur_ms=row.duration_ms,
        bytes=row.size_bytes,
        failure=row.failure,
        path=row.external_path,
    )


def last_checkpoint(run: Run) -> Checkpoint | None:
    """The newest that the collector saw complete, of those that say where they lie."""
    done = run.checkpoints.filter(status=Checkpoint.Status.COMPLETED).exclude(external_path="")
    return done.order_by("-engine_checkpoint_id").first()


def newest_of(run: Run) -> Savepoint | None:
    """The newest savepoint of a run that a job can be started from."""
    return usable(run.savepoints.all()).select_related("job").order_by("-id").first()


def savepoint_under_way(run: Run) -> Checkpoint | None:
    """The one that the collector saw begin, and not end yet."""
    begun = run.checkpoints.filter(
        status=Checkpoint.Status.IN_PROGRESS, kind=Checkpoint.Kind.SAVEPOINT
    )
    return begun.order_by("-engine_checkpoint_id").first()


def last_checkpoints(run_ids: Sequence[int], n: int) -> dict[int, tuple[CheckpointLine, ...]]:
    """The newest `n` of each run, oldest first.

    Cost  two queries that read n rows of each run, however many it has.
    """
    numbers = Checkpoint.objects.filter(run=OuterRef("pk")).order_by("-engine_checkpoint_id")
    last = numbers.values("engine_checkpoint_id")[n - 1 : n]
    ends = Run.objects.filter(pk__in=run_ids).values_list("pk", Subquery(last))
    ranges = [Q(run=run, engine_checkpoint_id__gte=end or 0) for run, end in ends]
    found: dict[int, list[CheckpointLine]] = {}
    if ranges:
        rows = Checkpoint.objects.filter(reduce(or_, ranges))
        # No objects: the list of jobs reads thousands.
        columns = rows.order_by("trigger_at", "engine_checkpoint_id").values_list(*_OF_A_LINE)
        for run, number, kind, status, at, *rest in columns:
            line = CheckpointLine(run, number, kind, status, epoch_ms(at), *rest)
            found.setdefault(run, []).append(line)
    return {run: tuple(lines) for run, lines in found.items()}


_OF_A_LINE = (
    *("run", "engine_checkpoint_id", "kind", "status", "trigger_at"),
    *("duration_ms", "size_bytes", "failure", "external_path"),
)


@dataclass(frozen=True, slots=True)
class CheckpointHistory:
    """The page of checkpoints."""

    lines: tuple[CheckpointLine, ...]
    """Newest first."""
    completed: int
    failed: int
    p50_ms: float | None
    p99_ms: float | None

    @property
    def oldest_first(self) -> list[CheckpointLine]:
        """For the strip."""
        return list(reversed(self.lines))

    def tall(self, line: CheckpointLine) -> float:
        """Height of its bar in percent: the longest is 100, and what failed is as high."""
        if line.status != Checkpoint.Status.COMPLETED:
            return 100.0 if line.status == Checkpoint.Status.FAILED else 40.0
        longest = max(one.dur_ms or 0 for one in self.lines if one.status == line.status)
        return round(max(4.0, 100 * (line.dur_ms or 0) / max(1, longest)), 1)

    @property
    def last(self) -> CheckpointLine | None:
        """The newest completed one."""
        return next((line for line in self.lines if line.status == "completed"), None)


def checkpoint_history(job: Job, limit: int = 60) -> CheckpointHistory:
    """The newest checkpoints of a job's live runs, across engines and attempts."""
    rows = Checkpoint.objects.filter(run__job=job, run__purpose="live")
    counts = rows.aggregate(
        completed=Count("id", filter=Q(status=Checkpoint.Status.COMPLETED)),
        failed=Count("id", filter=Q(status=Checkpoint.Status.FAILED)),
    )
    lines = tuple(line_of(row) for row in rows[:limit])
    done = [line for line in lines if line.status == Checkpoint.Status.COMPLETED]
    times = sorted(line.dur_ms for line in done if line.dur_ms is not None)
    cuts = quantiles(times, n=100, method="inclusive") if len(times) > 1 else []
    return CheckpointHistory(
        lines,
        counts["completed"],
        counts["failed"],
        cuts[49] if cuts else None,
        cuts[98] if cuts else None,
    )


def schedules(job: Job) -> tuple[SavepointSchedule, ...]:
    """Its schedules, the next due first."""
    found = job.schedules.select_related("job", "created_by", "last_operation")
    return tuple(found.order_by("-enabled", "next_run_at"))
