"""Checkpoints, mirrored: what is written already, so that only news are, and what they tell.

Guarantee  idempotent: a checkpoint is its run and number, so what is seen again changes nothing.
Cost       all news of a look are one statement, however many runs have some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controlplane.backends.sightings import CheckpointSighting
from controlplane.collector import figures
from controlplane.jobs.models import Run
from controlplane.live import topics
from controlplane.live.topics import Payload
from controlplane.moments import moment
from controlplane.snapshots.models import Checkpoint

REMEMBERED = 100
"""Checkpoints of a run whose last known state is kept in memory: more than an engine lists."""

BATCH = 500
_MUTABLE = ["status", "duration_ms", "size_bytes", "external_path", "failure", "detail"]

Told = list[tuple[str, Payload]]
"""Topic and event."""


@dataclass(slots=True)
class CheckpointNotes:
    """The checkpoints of one run."""

    _statuses: dict[int, str] | None = None
    """Number to status; None until an earlier collector's were read."""

    def news(self, run: Run, seen: Sequence[CheckpointSighting]) -> list[CheckpointSighting]:
        """Those of `seen`, which is newest first, that are not written so; oldest first."""
        known = self._statuses
        if known is None:
            rows = Checkpoint.objects.filter(run=run).order_by("-engine_checkpoint_id")
            known = dict(rows.values_list("engine_checkpoint_id", "status")[:REMEMBERED])
        news = [one for one in reversed(seen) if known.get(one.id) != one.status]
        known |= {one.id: one.status for one in news}
        for old in sorted(known)[:-REMEMBERED]:
            del known[old]
        self._statuses = known
        return news


def write(rows: Sequence[Checkpoint]) -> None:
    """Write news of any number of runs."""
    if rows:
        Checkpoint.objects.bulk_create(
            rows,
            batch_size=BATCH,
            update_conflicts=True,
            unique_fields=["run", "engine_checkpoint_id"],
            update_fields=_MUTABLE,
        )


def row(run: Run, seen: CheckpointSighting) -> Checkpoint:
    """What is written of one."""
    kind = Checkpoint.Kind.SAVEPOINT if seen.is_savepoint else Checkpoint.Kind.CHECKPOINT
    return Checkpoint(
        run=run,
        engine_checkpoint_id=seen.id,
        kind=kind,
        status=seen.status,
        trigger_at=moment(seen.triggered_ms),
        duration_ms=seen.duration_ms,
        size_bytes=seen.size_bytes,
        external_path=seen.path[:500],
        failure=seen.failure.replace("\0", "\N{REPLACEMENT CHARACTER}"),  # Postgres keeps none
        detail=dict(seen.detail),
    )


def told(run: Run, news: Sequence[CheckpointSighting]) -> Told:
    """What the page of checkpoints hears of them."""
    topic = topics.checkpoints(run.job_id)
    return [(topic, figures.checkpoint_event(run, one)) for one in news]
