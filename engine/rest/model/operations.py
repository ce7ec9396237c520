"""Long operations by trigger id, and what is known about snapshots and progress."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.compatibility import RestoreReport
from engine.checkpoint.restoring.inputs import Inputs
from engine.elements import Micros
from engine.graph.plan import Plan


@dataclass(frozen=True, slots=True)
class TriggerStatus:
    """Where an asynchronous operation stands.

    Done and `failure` None means success: then a savepoint or stop has its `location`, a manual
    checkpoint its `checkpoint_id`, a disposal neither.
    """

    done: bool
    location: str | None = None
    checkpoint_id: int | None = None
    failure: str | None = None
    """One sentence."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """What would happen if a program started from a snapshot."""

    plan: Plan
    manifest: Manifest
    report: RestoreReport
    inputs: Inputs = field(default_factory=dict)
    """What the program's sources say of the input that it would go on with."""


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """How far one source operator is; None is unknown."""

    uid: str
    name: str
    vertex_id: str
    watermark: Micros | None
    """The smallest over its subtasks that are not idle or finished."""
    newest: Micros | None = None
    """The largest event time it has read."""
    pending_rows: int | None = None
    """Rows that it could read at once: 0 means it has caught up."""
    idle: bool = False
    finished: bool = False


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a job is in event time."""

    at_ms: int
    """When the newest report in it was made."""
    position: Micros | None
    """The smallest watermark over its sources: everything before is done."""
    sources: tuple[SourceProgress, ...]
