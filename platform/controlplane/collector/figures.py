"""What a sighting becomes for the pages and for the series store. Pure.

Missing  a figure that the engine did not give is None, and so is every rate of a job that does not
         run: an old number is not a new one.
"""

from __future__ import annotations

from typing import Any

from controlplane.backends.sightings import CheckpointSighting, FailureSighting, JobSighting
from controlplane.collector.ailing import not_wholly_running
from controlplane.jobs.models import Run
from controlplane.live.topics import Payload
from controlplane.metrics.contract import NANOS_PER_MS
from controlplane.metrics.line_protocol import FieldValue, Point, tags_of

RUNNING = "RUNNING"

_FLOWING = ("in", "out", "delay_ms", "event_ms", "speed", "busy", "bp")


def job_record(
    run: Run,
    seen: JobSighting,
    speed: float | None,
    goal_ms: int | None,
    held: Payload | None,
    ailing: Payload,
) -> Payload:
    """Topic `job.<id>`; `held` says which operator holds it back, `ailing` what is wrong."""
    flow = _flow(seen, speed)
    return {
        "state": seen.state,
        "state_since_ms": seen.since_ms,
        "note": not_wholly_running(seen) or None,
        "held": held if seen.state == RUNNING else None,
        **ailing,
        **{name: flow[name] for name in ("in", "out", "delay_ms", "event_ms", "speed")},
        "goal_ms": goal_ms,
        "pending": seen.pending_rows,
        "ckpt": _last_checkpoint(seen),
        "restarts": seen.restarts or 0,
        "uptime_ms": seen.uptime_ms,
        "run": run.pk,
        "attempt": seen.restarts,
    }


def fleet_row(
    name: str, seen: JobSighting, speed: float | None, goal_ms: int | None, ailing: Payload
) -> Payload:
    """Row of the job in `fleet`; `goal_ms` is how far its watermark may be behind."""
    done = seen.completed
    return {
        "name": name,
        "state": seen.state,
        **ailing,
        "goal_ms": goal_ms,
        **_flow(seen, speed),
        "ckpt_ms": done.end_ms if done else None,
        "ckpt_dur": done.duration_ms if done else None,
        "restarts": seen.restarts or 0,
    }


def operator_rows(seen: JobSighting) -> Payload:
    """Topic `job.<id>.ops`."""
    return {
        vertex.id: {
            "in": _round(vertex.in_rate),
            "out": _round(vertex.out_rate),
            "busy": vertex.busy,
            "bp": vertex.backpressured,
            "idle": vertex.idle,
            "wm_ms": vertex.watermark_ms,
            "skew": vertex.skew,
            "bytes": vertex.state_bytes,
            "par": vertex.parallelism,
            "running": vertex.running,
            "state": vertex.state,
        }
        for vertex in seen.vertices
    }


def at_rest(state: str) -> tuple[Payload, Payload]:
    """Fleet row and record of a job that has no run, or whose engine does not answer."""
    nothing = dict.fromkeys((*_FLOWING, "why", "why_ms"))
    return {"state": state, **nothing}, {
        "state": state,
        "pending": None,
        "held": None,
        "uptime_ms": None,
        **{name: None for name in nothing if name not in ("busy", "bp")},
    }


def unseen() -> tuple[Payload, Payload]:
    """Fleet row and record of a run whose engine does not answer: its state is not known anew."""
    row, record = at_rest("")
    del row["state"], record["state"]
    return row, record


def checkpoint_event(run: Run, seen: CheckpointSighting) -> Payload:
    """Entry of `job.<id>.ckpt`."""
    return {
        "id": f"{run.pk}-{seen.id}-{seen.status}",
        "run": run.pk,
        "checkpoint": seen.id,
        "kind": "savepoint" if seen.is_savepoint else "checkpoint",
        "status": seen.status,
        "trigger_ms": seen.triggered_ms,
        "dur_ms": seen.duration_ms,
        "bytes": seen.size_bytes,
        "failure": seen.failure or None,
    }


def failed_checkpoint(run: Run, seen: CheckpointSighting) -> Payload:
    """Entry of `job.<id>.events` for a checkpoint that failed."""
    what = "Savepoint" if seen.is_savepoint else "Checkpoint"
    return {
        "id": f"checkpoint-{run.pk}-{seen.id}",
        "at_ms": seen.end_ms or seen.triggered_ms,
        "lane": "ck",
        "kind": "x",
        "tone": "crit",
        "title": f"{what} {seen.id} failed",
        "text": seen.failure,
        "run": run.pk,
    }


def failure_event(run: Run, seen: FailureSighting, *, final: bool) -> Payload:
    """Entry of `job.<id>.events` for a failure, after which the engine restarted the job or not."""
    return {
        "id": f"failure-{run.pk}-{seen.at_ms}",
        "at_ms": seen.at_ms,
        "lane": "rs",
        "kind": "ring",
        "tone": "crit",
        "title": "Failed" if final else "Restarted",
        "text": f"{seen.sentence} ({seen.task})" if seen.task else seen.sentence,
        "run": run.pk,
    }


def points(
    tags: dict[str, str], seen: JobSighting, speed: float | None, wall_ms: int
) -> list[Point]:
    """What the series store keeps: measurement `job`, and `operator` per vertex."""
    job = _point("job", tags, _flow(seen, speed) | {"pending": seen.pending_rows}, wall_ms)
    operators = [
        _point("operator", tags | {"vertex": vertex}, _measured(row), wall_ms)
        for vertex, row in operator_rows(seen).items()
    ]
    return [point for point in (job, *operators) if point.fields]


def _flow(seen: JobSighting, speed: float | None) -> dict[str, Any]:
    if seen.state != RUNNING:
        return dict.fromkeys(_FLOWING)
    return {
        "in": _round(seen.in_rate),
        "out": _round(seen.out_rate),
        "delay_ms": seen.delay_ms,
        "event_ms": seen.event_ms,
        "speed": None if speed is None else float(f"{speed:.3g}"),
        "busy": seen.busy,
        "bp": seen.backpressured,
    }


def _last_checkpoint(seen: JobSighting) -> Payload | None:
    done = seen.completed
    if done is None:
        return None
    return {
        "id": done.id,
        "end_ms": done.end_ms,
        "dur_ms": done.duration_ms,
        "bytes": done.size_bytes,
    }


def _measured(row: Payload) -> dict[str, Any]:
    return {name: row[name] for name in ("in", "out", "busy", "bp", "idle")}


def _point(measurement: str, tags: dict[str, str], row: dict[str, Any], wall_ms: int) -> Point:
    fields: list[tuple[str, FieldValue]] = [
        (name, float(value)) for name, value in row.items() if value is not None
    ]
    return Point(measurement, tags_of(tags.items()), tuple(fields), wall_ms * NANOS_PER_MS)


def _round(rate: float | None) -> float | None:
    """A tenth of a row per second is more than anybody sees."""
    return None if rate is None else round(rate, 1)
