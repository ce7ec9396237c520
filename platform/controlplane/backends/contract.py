"""What the control plane asks of an engine, whichever it is.

    EngineBackend    Headwater's own engine and Apache Flink (`rest.py`), one in memory (`fake.py`)

Times    aware datetimes; a watermark in Flink's convention is converted by the adapter.
Errors   every method raises `backends.errors` and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from controlplane.backends.snapshot_contract import SnapshotKeeper

SETTING_NAME = "pipeline.name"
SETTING_CHECKPOINT_INTERVAL = "execution.checkpointing.interval"
SETTING_RETENTION = "execution.checkpointing.externalized-checkpoint-retention"
RETAIN = "RETAIN_ON_CANCELLATION"
"""Checkpoints outlive a cancelled job, so that it can be started from them."""
SETTING_DISCARD = "headwater.sinks.discard"
SETTING_FROM = "headwater.event-time.from"
SETTING_UNTIL = "headwater.event-time.until"
SETTING_POSITIONS = "headwater.restore.positions"
"""Where sources begin instead of at the savepoint."""
SETTING_SHADOW = "headwater.sinks.shadow"
"""Every sink writes beside its target, under this name, instead of to it."""


@dataclass(frozen=True, slots=True)
class Start:
    """A request to start an artifact."""

    artifact_id: str
    engine_job_id: str
    """32 hex digits of our choice: asked twice, the engine starts one job."""
    parallelism: int
    arguments: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    savepoint_path: str = ""
    allow_non_restored: frozenset[str] = frozenset()
    """State that may be lost: of operators (by uid) or single states (uid/state)."""
    accept_missing_input: frozenset[str] = frozenset()
    """Sources (by uid) that may go on without input which is not there any more."""


@dataclass(frozen=True, slots=True)
class EngineJob:
    """A job as the engine reports it."""

    engine_job_id: str
    name: str
    state: str
    """One of Flink's job states."""
    tasks_running: int
    tasks_total: int
    failure: str = ""
    """Why it failed, or why it restarts, in one sentence."""
    waiting_for: str = ""
    """Why it does not run yet, in one sentence."""
    plan: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_up(self) -> bool:
        """Running with every task: an engine may say RUNNING while tasks still wait for slots."""
        return self.state == "RUNNING" and self.tasks_running == self.tasks_total > 0

    @property
    def has_ended(self) -> bool:
        """Whether it has ended for good."""
        return self.state in {"FINISHED", "FAILED", "CANCELED"}


@dataclass(frozen=True, slots=True)
class TriggerStatus:
    """Where a savepoint stands: not done, done with a location, or done with a failure."""

    done: bool
    location: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class SavepointSummary:
    """What a savepoint's manifest says of it; None is unknown."""

    location: str
    job_name: str
    checkpoint_id: int | None
    size_bytes: int | None
    event_time: datetime | None
    """Event-time position: the lowest watermark in it."""
    source_positions: Mapping[str, Any]
    """Source uid → split id → {"position", "watermark", …}."""
    created_ms: int | None = None
    """When it was taken."""
    contents: Mapping[str, Any] = field(default_factory=dict)
    """Of whom and what, see `contents_of` in `manifests.py`; empty is unknown."""


@dataclass(frozen=True, slots=True)
class RestoreRow:
    """What becomes of one operator, or of one of its states."""

    uid: str
    name: str
    state: str | None
    """None is the operator itself: its splits or its staged output."""
    outcome: str
    """restored, migrates, new, dropped, incompatible or missing_input."""
    sentence: str
    """What, why, and what to do."""
    rows: int
    """Rows of state in the savepoint."""
    allowed: bool
    """Whether the start may go on in spite of this row."""


@dataclass(frozen=True, slots=True)
class SourceInput:
    """What one source has of the input that it would go on with."""

    uid: str
    gone: Sequence[str]
    """What is not there any more, split by split; of many the first ones."""
    unknown: int
    """Splits of which it cannot tell."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a start from a savepoint would restore."""

    ok: bool
    rows: Sequence[RestoreRow]
    refusals: Sequence[str]
    """Why it would not start, one sentence each; empty when it would."""
    inputs: Sequence[SourceInput] = ()
    """Of every source that would go on from the savepoint."""


class EngineBackend(SnapshotKeeper, Protocol):
    """One engine."""

    def upload(self, filename: str, content: Path) -> str:
        """Give the engine an artifact and return its id there. EngineRefused: it cannot be read."""

    def check(self, artifact_id: str, arguments: Sequence[str], parallelism: int) -> None:
        """Build the artifact's graph and start nothing. EngineRefused says what is wrong."""

    def start(self, request: Start) -> None:
        """Start a job. EngineRefused: the id is taken, or it cannot start; nothing has started."""

    def job(self, engine_job_id: str) -> EngineJob:
        """How a job is. Raises UnknownJob."""

    def engine_plan(self, engine_job_id: str) -> Mapping[str, Any]:
        """Operators with what they say of themselves; empty from an engine that has no such."""

    def limit_reading(
        self,
        engine_job_id: str,
        rows_per_second: float | None,
        times_real_time: float | None = None,
    ) -> None:
        """Let every source read at most so fast, in one of two ways.

        0 rows: nothing, None: as fast as it can. `times_real_time` holds back event time; sources
        that have none are left alone, unless none has: EngineRefused.
        """

    def cancel(self, engine_job_id: str) -> None:
        """Begin to cancel; again on a cancelled job is fine. Raises UnknownJob."""

    def trigger_savepoint(self, engine_job_id: str, folder: str, trigger_id: str) -> None:
        """Begin a savepoint into a new folder below `folder`; the same id again is the same one."""

    def stop(self, engine_job_id: str, folder: str, trigger_id: str, *, drain: bool) -> None:
        """Begin to stop with a savepoint; polled as a savepoint."""

    def savepoint_status(self, engine_job_id: str, trigger_id: str) -> TriggerStatus:
        """Where a savepoint or stop stands. Raises UnknownTrigger."""

    def savepoint_locations(self, engine_job_id: str) -> Sequence[str]:
        """Folders of the completed savepoints that the job's statistics still list."""

    def newest_snapshot(self, engine_job_id: str) -> str:
        """Folder of the newest completed checkpoint of a job, ended ones too; empty: none yet.

        Raises UnknownJob.
        """

    def rescale(self, engine_job_id: str, parallelism: int, trigger_id: str) -> None:
        """Begin to change a running job's parallelism; the same id again is the same one.

        Raises Unsupported where an engine can only start it again.
        """

    def rescale_status(self, engine_job_id: str, trigger_id: str) -> TriggerStatus:
        """Where a rescale stands. Raises UnknownTrigger."""

    def savepoint(self, location: str) -> SavepointSummary:
        """Read a savepoint's manifest. EngineRefused when it is torn; NoSnapshot: there is none."""

    def preflight(self, request: Start) -> Preflight:
        """What `start` would restore; starts nothing. Raises Unsupported."""
