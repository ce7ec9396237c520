"""Our additions to Flink's interface as JSON: progress, savepoints, preflights.

Units    event times are int64 microseconds UTC, as everywhere in the engine; null is unknown.
"""

from __future__ import annotations

from engine.checkpoint.format.entries import time_json
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.compatibility import RestoreRow
from engine.elements import Micros
from engine.rest.model.operations import JobProgress, Preflight, SourceProgress
from engine.rest.model.snapshots import InspectionStatus
from engine.rest.render.failures import COMPLETED, IN_PROGRESS, throwable
from engine.rest.render.plan import engine_plan


def progress(known: JobProgress) -> dict[str, object]:
    """How far a job is in event time."""
    pending = [source.pending_rows for source in known.sources]
    counted = [rows for rows in pending if rows is not None]
    return {
        "at_ms": known.at_ms,
        "event_time_us": _time(known.position),
        "pending_rows": sum(counted) if counted and len(counted) == len(pending) else None,
        "sources": [_source(source) for source in known.sources],
    }


def savepoint(path: str, manifest: Manifest) -> dict[str, object]:
    """What a snapshot holds."""
    return {"path": path, "size_bytes": manifest.size_bytes, "manifest": manifest.to_json()}


def preflight(path: str, checked: Preflight) -> dict[str, object]:
    """What a start from a snapshot would restore."""
    return {
        "ok": not checked.report.refused,
        "rows": [_row(row) for row in checked.report.rows],
        "warnings": list(checked.report.warnings),
        "inputs": [
            {"uid": uid, "gone": one.sentences, "unknown": one.unknown}
            for uid, one in checked.inputs.items()
        ],
        "savepoint": savepoint(path, checked.manifest),
        "plan": engine_plan(checked.plan),
    }


def inspection(status: InspectionStatus) -> dict[str, object]:
    """The answer to a poll of a verification or a comparison: as that of a savepoint."""
    body: dict[str, object] = {"progress": {"done": status.done, "total": status.total}}
    if not status.finished:
        return {"status": IN_PROGRESS, "operation": None, **body}
    if status.failure is not None:
        body["operation"] = {"failure-cause": throwable(status.failure)}
    else:
        body["operation"] = dict(status.result or {})
    return {"status": COMPLETED, **body}


def _row(row: RestoreRow) -> dict[str, object]:
    return {
        "uid": row.uid,
        "name": row.name,
        "state": row.state,
        "outcome": row.outcome,
        "reason": row.reason,
        "sentence": row.sentence,
        "stored": row.stored,
        "wanted": row.wanted,
        "rows": row.rows,
        "size_bytes": row.size_bytes,
        "allowed": row.allowed,
    }


def _source(source: SourceProgress) -> dict[str, object]:
    return {
        "uid": source.uid,
        "name": source.name,
        "vertex": source.vertex_id,
        "watermark_us": _time(source.watermark),
        "newest_us": _time(source.newest),
        "pending_rows": source.pending_rows,
        "idle": source.idle,
        "finished": source.finished,
    }


def _time(time: Micros | None) -> int | None:
    return None if time is None else time_json(time)
