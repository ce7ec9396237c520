"""The only functions that change how a savepoint stands.

    creating ─▶ completed ⇄ marked ─▶ deleting ─▶ deleted
             ↘ failed         ↖──────────┘
                  completed | marked ─▶ detached          its files stay, only the row ends

Guarantee   Each is one compare-and-set. Only a completed one can be started from, so nothing comes
            to depend on one that is marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from controlplane.jobs.models import Job, Run
from controlplane.live import topics
from controlplane.live.publish import publish_on_commit
from controlplane.moments import epoch_ms, moment
from controlplane.snapshots.models import Savepoint

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from controlplane.backends.contract import SavepointSummary, SourceInput

Status = Savepoint.Status


def begin(run: Run, origin: Savepoint.Origin, label: str, actor: User | None) -> Savepoint:
    """A savepoint of `run` that is about to be taken."""
    return Savepoint.objects.create(
        job=run.job, run=run, version=run.version, origin=origin, label=label, created_by=actor
    )


def take_in(
    job: Job, summary: SavepointSummary, label: str, actor: User | None, now: datetime
) -> Savepoint:
    """A savepoint from elsewhere, complete and verified."""
    savepoint = Savepoint.objects.create(
        job=job,
        origin=Savepoint.Origin.IMPORTED,
        label=label,
        status=Status.COMPLETED,
        created_by=actor,
        verdict=Savepoint.Verdict.WHOLE,
        verified_at=now,
        **_manifest(summary, now),
    )
    _tell(savepoint, now, "save", "Savepoint imported")
    return savepoint


def complete(savepoint: Savepoint, summary: SavepointSummary, now: datetime) -> None:
    """It is complete: keep what its manifest says."""
    if _move(savepoint, (Status.CREATING,), Status.COMPLETED, **_manifest(summary, now)):
        _tell(savepoint, now, "save", "Savepoint")


def fail(savepoint: Savepoint, sentence: str, now: datetime) -> None:
    """It will not come."""
    if _move(savepoint, (Status.CREATING,), Status.FAILED, failure=sentence, completed_at=now):
        _tell(savepoint, now, "crit", "Savepoint failed")


def mark(savepoint: Savepoint, reason: str, delete_at: datetime, actor: User | None) -> bool:
    """It is to be deleted at that time, unless somebody objects; nobody: a rule says so."""
    return _move(
        savepoint,
        (Status.COMPLETED,),
        Status.MARKED,
        delete_at=delete_at,
        delete_reason=reason[:300],
        marked_by=actor,
        delete_tries=0,
        delete_failure="",
    )


def unmark(savepoint: Savepoint) -> bool:
    """It stays after all."""
    return _move(
        savepoint,
        (Status.MARKED,),
        Status.COMPLETED,
        delete_at=None,
        delete_reason="",
        marked_by=None,
    )


def delete(savepoint: Savepoint) -> bool:
    """An operation is about to delete its files."""
    return _move(savepoint, (Status.MARKED,), Status.DELETING)


def deleted(savepoint: Savepoint, now: datetime) -> None:
    """Its files are gone."""
    if _move(savepoint, (Status.DELETING,), Status.DELETED, ended_at=now, delete_failure=""):
        _tell(savepoint, now, "idle", "Savepoint deleted")


def delete_failed(savepoint: Savepoint, sentence: str, again_at: datetime) -> None:
    """Its files are still there: it is tried again later."""
    tries = savepoint.delete_tries + 1
    _move(
        savepoint,
        (Status.DELETING,),
        Status.MARKED,
        delete_at=again_at,
        delete_tries=tries,
        delete_failure=sentence,
    )


def detach(savepoint: Savepoint, now: datetime) -> bool:
    """It leaves the catalogue; its files stay where they are."""
    return _move(savepoint, (Status.COMPLETED, Status.MARKED), Status.DETACHED, ended_at=now)


def verified(
    savepoint: Savepoint, verdict: Savepoint.Verdict, problems: Sequence[str], now: datetime
) -> None:
    """Somebody has read all of it."""
    values = {"verdict": verdict, "problems": list(problems), "verified_at": now}
    Savepoint.objects.filter(pk=savepoint.pk).update(**values)
    savepoint.refresh_from_db()
    if verdict != Savepoint.Verdict.WHOLE:
        _tell(savepoint, now, "crit", f"Savepoint {savepoint.get_verdict_display().lower()}")


def input_seen(
    savepoint: Savepoint, sources: Sequence[SourceInput], why_not: str, now: datetime
) -> None:
    """Its sources were asked for the input that a restore needs; or could not, for a reason."""
    found = {"at": now.isoformat(), "why_not": why_not, "sources": [asdict(one) for one in sources]}
    Savepoint.objects.filter(pk=savepoint.pk).update(inputs=found)


def seen(savepoint: Savepoint, missing_since: datetime | None) -> None:
    """Its files are there (None), or are known to be gone since that time."""
    Savepoint.objects.filter(pk=savepoint.pk).update(missing_since=missing_since)


def _manifest(summary: SavepointSummary, now: datetime) -> dict[str, Any]:
    created_ms = summary.created_ms
    return {
        "location": summary.location,
        "checkpoint_id": summary.checkpoint_id,
        "event_time": summary.event_time,
        "size_bytes": summary.size_bytes,
        "source_positions": dict(summary.source_positions),
        "contents": dict(summary.contents),
        "completed_at": now,
        "taken_at": now if created_ms is None else moment(created_ms),
    }


def _move(savepoint: Savepoint, old: Sequence[Status], new: Status, **values: Any) -> bool:
    rows = Savepoint.objects.filter(pk=savepoint.pk, status__in=old)
    moved = rows.update(status=new, **values)
    savepoint.refresh_from_db()
    return bool(moved)


def labelled(savepoint: Savepoint) -> str:
    """Its label, marked as somebody's words; empty without one."""
    return f"labelled “{savepoint.label}”" if savepoint.label else ""


def _tell(savepoint: Savepoint, now: datetime, tone: str, title: str) -> None:
    text = savepoint.failure or "; ".join(savepoint.problems) or labelled(savepoint)
    publish_on_commit(
        topics.events(savepoint.job_id),
        {
            "id": f"savepoint-{savepoint.pk}-{savepoint.status}-{savepoint.verdict}",
            "at_ms": epoch_ms(now),
            "lane": "sav",
            "kind": "diamond",
            "tone": tone,
            "title": title,
            "text": text,
            "run": savepoint.run_id,
        },
    )
