"""What a run has left to go on from, found with the help of its engine.

1. The newest checkpoint: the engine's, or the one that the collector saw last, or a newer one
   beside it that nobody has seen.
2. When that cannot be read: a savepoint of the run that was taken after it.
3. When it never completed one: its newest savepoint, or what it was itself started from.

Errors   EngineAway when nobody answers: then nothing is known.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from controlplane.backends.contract import EngineBackend
from controlplane.backends.errors import EngineRefused, UnknownJob
from controlplane.jobs.models import Run
from controlplane.jobs.upkeep import Found
from controlplane.snapshots.models import Checkpoint, Savepoint
from controlplane.snapshots.queries import last_checkpoint

MOST_UNSEEN = 1_000
"""Checkpoints that may have completed while the collector was away; far more than are kept."""


def restorable(run: Run, engine: EngineBackend) -> Found:
    """What the run's job can go on from. Raises EngineAway."""
    seen = last_checkpoint(run)
    path = _newest_path(run, seen, engine)
    if not path:
        return _without_checkpoint(run, engine)
    found = _read(engine, Found(path, name=_name(path, seen)))
    if not found.unreadable:
        return found
    later = _savepoint(run, engine, seen.trigger_at if seen else None)
    return later or found


def _newest_path(run: Run, seen: Checkpoint | None, engine: EngineBackend) -> str:
    try:
        if told := engine.newest_snapshot(run.engine_job_id):
            return told
    except UnknownJob:
        pass
    return _newest_beside(seen.external_path, engine) if seen else ""


def _newest_beside(path: str, engine: EngineBackend) -> str:
    """The checkpoint at `path`, or one with a higher number next to it that can be read."""
    folder, _, number = path.rstrip("/").rpartition("-")
    if not number.isdecimal():
        return path
    newest = path
    for later in range(int(number) + 1, int(number) + MOST_UNSEEN):
        if not _is_seen(engine, f"{folder}-{later}"):
            break
        newest = f"{folder}-{later}"
    return newest


def _is_seen(engine: EngineBackend, path: str) -> bool:
    """Whether the engine has read it; a Flink cluster reads none, and denies none."""
    try:
        return engine.savepoint(path).checkpoint_id is not None
    except EngineRefused:
        return False


def _without_checkpoint(run: Run, engine: EngineBackend) -> Found:
    if saved := _savepoint(run, engine, None):
        return saved
    if not run.restored_path:
        return Found()
    name = f"snapshot {run.restored_path}"
    if run.restored_from:
        name = _savepoint_name(run.restored_from)
    return _read(engine, Found(run.restored_path, run.restored_from_id, name))


def _savepoint(run: Run, engine: EngineBackend, after: datetime | None) -> Found | None:
    done = run.savepoints.filter(status=Savepoint.Status.COMPLETED).order_by("-completed_at")
    if after is not None:
        done = done.filter(completed_at__gte=after)
    for savepoint in done[:5]:
        named = Found(savepoint.location, savepoint.pk, _savepoint_name(savepoint))
        if not (found := _read(engine, named)).unreadable:
            return found
    return None


def _read(engine: EngineBackend, found: Found) -> Found:
    try:
        engine.savepoint(found.path)
    except EngineRefused as refused:
        return replace(found, unreadable=refused.message)
    return found


def _name(path: str, seen: Checkpoint | None) -> str:
    if seen and seen.external_path == path:
        return f"checkpoint {seen.engine_checkpoint_id} of {seen.trigger_at:%d %b %H:%M:%S} UTC"
    return f"checkpoint {path.rstrip('/').rpartition('-')[2]}"


def _savepoint_name(savepoint: Savepoint) -> str:
    taken = savepoint.completed_at or savepoint.created_at
    return f"savepoint {savepoint.pk} of {taken:%d %b %H:%M} UTC"
