"""What people may change about the sources of a running job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceLimit:
    """How fast one source operator may read, over all its subtasks."""

    uid: str
    name: str
    vertex_id: str
    rows_per_second: float | None
    """None: no limit; 0: it is paused."""
    times_real_time: float | None = None
    """How fast event time may pass; None: no limit."""
