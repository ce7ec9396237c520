"""The only functions that change how a savepoint stands.

creating → completed
         ↘ failed
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from controlplane.jobs.models import Run
from controlplane.live import topics
from controlplane.live.publish import publish_on_commit
from controlplane.moments import epoch_ms
from controlplane.snapshots.models import Savepoint

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from controlplane.backends.contract import SavepointSummary


def begin(run: Run, origin: Savepoint.Origin, label: str, actor: User | None) -> Savepoint:
    """A savepoint of `run` that is about to be taken."""
    return Savepoint.objects.create(
        job=run.job, run=run, version=run.version, origin=origin, label=label, created_by=actor
    )


def complete(savepoint: Savepoint, summary: SavepointSummary, now: datetime) -> None:
    """It is complete: keep what its manifest says."""
    creating = Savepoint.objects.filter(pk=savepoint.pk, status=Savepoint.Status.CREATING)
    done = creating.update(
        status=Savepoint.Status.COMPLETED,
        location=summary.location,
        checkpoint_id=summary.checkpoint_id,
        event_time=summary.event_time,
        size_bytes=summary.size_bytes,
        source_positions=dict(summary.source_positions),
        completed_at=now,
    )
    savepoint.refresh_from_db()
    if done:
        _tell(savepoint, now, "ok", "Savepoint")


def fail(savepoint: Savepoint, sentence: str, now: datetime) -> None:
    """It will not come."""
    creating = Savepoint.objects.filter(pk=savepoint.pk, status=Savepoint.Status.CREATING)
    failed = creating.update(status=Savepoint.Status.FAILED, failure=sentence, completed_at=now)
    savepoint.refresh_from_db()
    if failed:
        _tell(savepoint, now, "crit", "Savepoint failed")


def _tell(savepoint: Savepoint, now: datetime, tone: str, title: str) -> None:
    publish_on_commit(
        topics.events(savepoint.job_id),
        {
            "id": f"savepoint-{savepoint.pk}",
            "at_ms": epoch_ms(now),
            "lane": "sav",
            "kind": "diamond",
            "tone": "save" if tone == "ok" else tone,
            "title": title,
            "text": savepoint.failure or savepoint.label,
            "run": savepoint.run_id,
        },
    )
