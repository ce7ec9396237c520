"""The checkpoint that a person looks at: its operators, its slowest subtasks, and why it failed.

    ?id=7-18320     checkpoint 18320 of run 7, pinned; without it the newest one that has ended

Units    milliseconds from the trigger, on one clock for all rows; bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Count, Q

from controlplane.backends.checkpoint_parts import (
    CheckpointParts,
    OperatorPart,
    SubtaskPart,
    parts_of,
)
from controlplane.jobs.models import Job, Run
from controlplane.jobs.plan_view import plan_view
from controlplane.moments import now_ms
from controlplane.snapshots.models import Checkpoint
from controlplane.snapshots.queries import CheckpointLine, line_of

PHASES = (
    ("start", "Start delay", "start_delay_ms"),
    ("align", "Alignment", "alignment_ms"),
    ("sync", "Sync", "sync_ms"),
    ("async", "Async", "async_ms"),
)
"""Class, heading and field, in the order in which a subtask goes through them."""

SLOWEST = 24
"""Subtasks on the clock: more are no longer compared by eye."""

NAMED = 8
"""Missing subtasks that are named."""

REASONS = {
    "expired": "Expired",
    "declined": "Declined",
    "storage": "Storage failed",
    "subsumed": "Overtaken",
    "not_running": "Not running",
    "task_lost": "Task lost",
    "rescaled": "Rescaled",
    "input_ended": "Input ended",
    "job_stopped": "Job stopped",
    "job_canceled": "Job cancelled",
    "job_failed": "Job failed",
}
"""In words, the closed list of why a checkpoint came to nothing."""


@dataclass(frozen=True, slots=True)
class PhaseBar:
    """One phase of one subtask, in percent of the clock."""

    css: str
    title: str
    x: float
    width: float
    ms: int


@dataclass(frozen=True, slots=True)
class SubtaskBar:
    """One subtask on the clock."""

    operator: str
    index: int
    duration_ms: int
    bars: tuple[PhaseBar, ...]

    @property
    def sentence(self) -> str:
        """Every phase with its duration."""
        return ", ".join(f"{bar.title.lower()} {bar.ms} ms" for bar in self.bars)


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One operator."""

    name: str
    part: OperatorPart

    @property
    def phases(self) -> list[int | None]:
        """The longest of each phase over its subtasks."""
        return [self.part.longest(field) for _, _, field in PHASES]

    @property
    def missing(self) -> str:
        """Which subtasks have not answered, in words."""
        named = ", ".join(map(str, self.part.missing[:NAMED]))
        more = len(self.part.missing) - NAMED
        return f"{named} and {more} more" if more > 0 else named


@dataclass(frozen=True, slots=True)
class Pinned:
    """The checkpoint that is shown."""

    line: CheckpointLine
    reason: str
    """Typed, in a word or two; empty unless it failed for a reason that is known."""
    in_a_row: int
    """How many of the newest ended ones failed so, up to and including this one."""
    kind: str
    parts: CheckpointParts
    rows: tuple[OperatorRow, ...]
    clock: tuple[SubtaskBar, ...]
    subtasks: int
    """All of them, on the clock or not."""

    @property
    def acknowledged(self) -> int:
        """Subtasks that have answered."""
        return sum(row.part.acknowledged for row in self.rows)


@dataclass(frozen=True, slots=True)
class LastDay:
    """What became of the checkpoints of the last 24 hours."""

    completed: int
    failed: int


def last_day(job: Job) -> LastDay:
    """Counts over the job's live runs."""
    since = datetime.fromtimestamp(now_ms() / 1000, UTC) - timedelta(days=1)
    rows = Checkpoint.objects.filter(
        run__job=job, run__purpose=Run.Purpose.LIVE, trigger_at__gte=since
    )
    status = Checkpoint.Status
    counts = rows.aggregate(
        completed=Count("id", filter=Q(status=status.COMPLETED)),
        failed=Count("id", filter=Q(status=status.FAILED)),
    )
    return LastDay(**counts)


def pinned(job: Job, wanted: str, lines: Sequence[CheckpointLine], operator: str) -> Pinned | None:
    """The checkpoint that is asked for, or the newest ended one; None when there is none."""
    rows = Checkpoint.objects.filter(run__job=job, run__purpose=Run.Purpose.LIVE)
    run, _, number = wanted.partition("-")
    if run.isdecimal() and number.isdecimal():
        rows = rows.filter(run=int(run), engine_checkpoint_id=int(number))
    else:
        rows = rows.exclude(status=Checkpoint.Status.IN_PROGRESS)
    found = rows.select_related("run__cluster").first()
    return None if found is None else _pinned(found, lines, operator)


def _pinned(found: Checkpoint, lines: Sequence[CheckpointLine], operator: str) -> Pinned:
    run, ended = found.run, found.status != Checkpoint.Status.IN_PROGRESS
    parts = parts_of(run.cluster, run.engine_job_id, found.engine_checkpoint_id, ended=ended)
    names = {node.id: node.chain[0] for node in plan_view(run.plan).nodes}
    rows = tuple(OperatorRow(names.get(one.vertex, one.vertex), one) for one in parts.operators)
    line, reason = line_of(found), str(found.detail.get("reason") or "")
    return Pinned(
        line=line,
        reason=REASONS.get(reason, reason.replace("_", " ")),
        in_a_row=_in_a_row(line, lines),
        kind=str(found.detail.get("type") or ""),
        parts=parts,
        rows=rows,
        clock=_clock([row for row in rows if operator in ("", row.part.vertex)]),
        subtasks=sum(row.part.subtasks for row in rows),
    )


def _in_a_row(pinned: CheckpointLine, lines: Sequence[CheckpointLine]) -> int:
    """How many failed one after the other, from the pinned one back; 0 when it did not fail."""
    older = [line for line in lines if line.trigger_ms <= pinned.trigger_ms]
    ended = [line.status for line in older if line.status != Checkpoint.Status.IN_PROGRESS]
    statuses = enumerate([*ended, Checkpoint.Status.COMPLETED])
    return next(place for place, status in statuses if status != Checkpoint.Status.FAILED)


def _clock(rows: Sequence[OperatorRow]) -> tuple[SubtaskBar, ...]:
    """The slowest subtasks, all on the clock of the slowest."""
    all_parts = [(row.name, part) for row in rows for part in row.part.parts]
    slowest = sorted(all_parts, key=lambda one: -one[1].duration_ms)[:SLOWEST]
    whole = max((part.duration_ms for _, part in slowest), default=0) or 1
    return tuple(_bar(name, part, whole) for name, part in slowest)


def _bar(operator: str, part: SubtaskPart, whole_ms: int) -> SubtaskBar:
    bars: list[PhaseBar] = []
    began = 0
    for css, title, field in PHASES:
        took = max(0, getattr(part, field))
        share = 100 / whole_ms
        bars.append(PhaseBar(css, title, round(began * share, 2), round(took * share, 2), took))
        began += took
    return SubtaskBar(operator, part.index, part.duration_ms, tuple(bars))
