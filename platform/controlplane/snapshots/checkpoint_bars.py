"""The checkpoints of a stretch of time, as so many bars as a screen can show.

    many checkpoints ─▶ groups of consecutive numbers ─▶ the longest of each; failed ones one by one

Units    trigger_ms is epoch ms, dur_ms ms; the stretch is half-open.
Cost     three queries, which read the index of each run; at most BARS + FAILED rows come back.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, F, Max, Min, QuerySet

from controlplane.jobs.models import Job, Run
from controlplane.moments import epoch_ms, moment
from controlplane.snapshots.models import Checkpoint

BARS = 300
FAILED = 100
"""The newest of them: a job that fails all the time needs no more marks to show it."""


@dataclass(frozen=True, slots=True)
class CheckpointBar:
    """One checkpoint, or the longest of a few that ran one after the other."""

    run: int
    checkpoint: int
    """The last of them."""
    status: str
    trigger_ms: int
    dur_ms: int | None
    failure: str = ""
    of: int = 1


def checkpoint_bars(job: Job, start_ms: float, stop_ms: float) -> tuple[CheckpointBar, ...]:
    """What the live runs of a job completed or failed to in that time, oldest first."""
    found = Checkpoint.objects.filter(
        run__job=job,
        run__purpose=Run.Purpose.LIVE,
        trigger_at__gte=moment(start_ms),
        trigger_at__lt=moment(stop_ms),
    )
    bars = [*_completed(found), *_failed(found)]
    return tuple(sorted(bars, key=lambda bar: (bar.trigger_ms, bar.checkpoint)))


def _completed(found: QuerySet[Checkpoint]) -> list[CheckpointBar]:
    done = found.filter(status=Checkpoint.Status.COMPLETED).order_by()
    each = max(1, -(-done.count() // BARS))
    grouped = done.annotate(part=F("engine_checkpoint_id") / each).values("run", "part")
    rows = grouped.annotate(
        last=Max("engine_checkpoint_id"),
        at=Min("trigger_at"),
        longest=Max("duration_ms"),
        of=Count("pk"),
    )
    return [
        CheckpointBar(
            row["run"], row["last"], "completed", epoch_ms(row["at"]), row["longest"], of=row["of"]
        )
        for row in rows
    ]


def _failed(found: QuerySet[Checkpoint]) -> list[CheckpointBar]:
    lost = found.filter(status=Checkpoint.Status.FAILED).order_by("-trigger_at")[:FAILED]
    return [
        CheckpointBar(
            one.run_id,
            one.engine_checkpoint_id,
            "failed",
            epoch_ms(one.trigger_at),
            one.duration_ms,
            one.failure,
        )
        for one in lost
    ]
