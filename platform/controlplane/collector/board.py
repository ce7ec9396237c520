"""What all watchers of one collector know together: the fleet's sum, where live jobs stand.

Missing  an engine that does not answer adds nothing to the sum; with none that answers, what only
         engines know is None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from controlplane.backends.sightings import EngineSighting, JobSighting
from controlplane.collector import figures
from controlplane.live.topics import Payload


@dataclass(slots=True)
class Board:
    """Owned by the event loop."""

    _engines: dict[int, EngineSighting | None] = field(default_factory=dict)
    _rows: dict[int, Payload] = field(default_factory=dict)
    _positions: dict[int, float | None] = field(default_factory=dict)
    _vertices: dict[int, set[str]] = field(default_factory=dict)
    _at_ms: int = 0

    def engine(self, cluster_id: int, sighting: EngineSighting | None, at_ms: int) -> None:
        """The latest look at an engine; None when it did not answer."""
        self._engines[cluster_id] = sighting
        self._at_ms = at_ms

    def row(self, job_id: int, row: Payload) -> None:
        """Columns of a job's row in the fleet."""
        self._rows.setdefault(job_id, {}).update(row)

    def keep(self, job_ids: set[int]) -> set[int]:
        """Forget jobs that exist no more; return them."""
        gone = set(self._rows) - job_ids
        for job_id in gone:
            del self._rows[job_id]
            self._positions.pop(job_id, None)
            self._vertices.pop(job_id, None)
        return gone

    def position(self, job_id: int, event_ms: float | None) -> None:
        """Event-time position of a job's live run."""
        self._positions[job_id] = event_ms

    def live_position(self, job_id: int) -> float | None:
        """The same, for a replay to compare with."""
        return self._positions.get(job_id)

    def vertices(self, job_id: int, seen: JobSighting) -> Payload:
        """Rows of the operators; those of an earlier plan are gone."""
        rows = figures.operator_rows(seen)
        gone = self._vertices.get(job_id, set()) - set(rows)
        self._vertices[job_id] = set(rows)
        return rows | dict.fromkeys(gone)

    def sum(self) -> dict[str, Any]:
        """Row `sum` of the fleet."""
        answering = [one for one in self._engines.values() if one is not None]
        rates = [row["in"] for row in self._rows.values() if row.get("in") is not None]
        slots = sum(one.slots for one in answering)
        free = sum(one.slots_free for one in answering)
        return {
            "jobs": len(self._rows),
            "running": sum(row.get("state") == figures.RUNNING for row in self._rows.values()),
            "in": round(sum(rates), 1) if rates else None,
            "slots": slots if answering else None,
            "slots_used": slots - free if answering else None,
            "task_managers": sum(one.task_managers for one in answering) if answering else None,
            "engine": "ok" if len(answering) == len(self._engines) else "away",
            "at_ms": self._at_ms,
        }
