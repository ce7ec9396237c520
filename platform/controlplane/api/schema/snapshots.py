"""Checkpoints, savepoints and their schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from ninja import Field, Schema
from pydantic import AwareDatetime

from controlplane.snapshots.inputs import known_input
from controlplane.snapshots.models import Savepoint, SavepointSchedule
from controlplane.snapshots.schedule_lines import next_runs
from controlplane.snapshots.schedule_options import window_words


class CheckpointOut(Schema):
    """One checkpoint, as the engine told of it."""

    run: int = Field(alias="run_id")
    checkpoint: int = Field(alias="engine_checkpoint_id")
    kind: str
    status: str
    trigger_at: datetime
    duration_ms: int | None
    size_bytes: int | None
    path: str = Field(alias="external_path")
    failure: str


class CheckpointSubtask(Schema):
    """One subtask that has acknowledged."""

    index: int
    duration_ms: int
    start_delay_ms: int
    alignment_ms: int
    sync_ms: int
    async_ms: int


class CheckpointOperator(Schema):
    """The part of one operator in a checkpoint."""

    vertex: str
    subtasks: int
    acknowledged: int
    duration_ms: int | None
    written_bytes: int
    state_bytes: int
    parts: Sequence[CheckpointSubtask] = Field(description="of the slowest operators")
    missing: Sequence[int] = Field(description="indexes of those that have not acknowledged")


class CheckpointDetail(CheckpointOut):
    """One checkpoint, operator by operator."""

    reason: str = Field(description="typed, in a word or two, when it failed")
    failed_in_a_row: int
    operators: Sequence[CheckpointOperator]
    why_not: str = Field(description="why there are no operators to tell of")


class SavepointOut(Schema):
    """One savepoint of the catalogue."""

    id: int
    job: str
    status: str
    origin: str
    label: str
    location: str
    failure: str
    event_time: datetime | None = Field(description="the lowest watermark in it")
    size_bytes: int | None
    checkpoint_id: int | None
    version: int | None
    run: int | None
    created_at: datetime
    completed_at: datetime | None
    created_by: str | None
    pinned: bool
    expires_at: datetime | None = Field(description="kept until then and not longer")
    delete_at: datetime | None = Field(description="when a marked one is deleted")
    delete_reason: str
    verdict: str = Field(description="whole, damaged, unreadable; empty: not verified")
    verified_at: datetime | None
    input: str = Field(description="that a restore needs: there, gone or unknown")
    input_seen_at: datetime | None = Field(description="when its sources were asked")

    @staticmethod
    def resolve_input(savepoint: Savepoint) -> str:
        """As far as anybody has looked."""
        return known_input(savepoint.inputs).state

    @staticmethod
    def resolve_input_seen_at(savepoint: Savepoint) -> datetime | None:
        """When somebody has."""
        return known_input(savepoint.inputs).at

    @staticmethod
    def resolve_job(savepoint: Savepoint) -> str:
        """Its name."""
        return savepoint.job.name

    @staticmethod
    def resolve_version(savepoint: Savepoint) -> int | None:
        """Its number."""
        return savepoint.version.number if savepoint.version else None

    @staticmethod
    def resolve_run(savepoint: Savepoint) -> int | None:
        """Its id."""
        return savepoint.run_id

    @staticmethod
    def resolve_created_by(savepoint: Savepoint) -> str | None:
        """Their name."""
        return savepoint.created_by.get_username() if savepoint.created_by else None


class SavepointDetail(SavepointOut):
    """One savepoint, with where its sources stood."""

    source_positions: dict[str, Any]
    contents: dict[str, Any] = Field(description="operators and states in it; empty: not known")
    missing_since: datetime | None = Field(description="since when its files are gone")
    problems: list[str] = Field(description="a sentence per file that was found damaged")


class SavepointIn(Schema):
    """A savepoint to be taken."""

    label: str = Field("", max_length=200)


class ImportIn(Schema):
    """A savepoint that lies somewhere."""

    path: str = Field(max_length=500)
    label: str = Field("", max_length=200)


class SavepointChange(Schema):
    """What to change; what is left out stays."""

    label: str | None = Field(None, max_length=200)
    pinned: bool | None = Field(None, description="true takes a mark for deletion away")
    expires_at: AwareDatetime | None = Field(None, description="null: the rules decide")


class DeleteIn(Schema):
    """Why to delete, and when."""

    reason: str = Field("", max_length=300)
    at_once: bool = Field(default=False, description="without the job's time of grace")


class ScheduleIn(Schema):
    """A new schedule: an interval or a cron line."""

    every_minutes: float | None = None
    cron: str = Field("", max_length=100, description="five fields, read in the time zone")
    zone: str = Field("UTC", max_length=64, description="name of a time zone")
    jitter_s: int = Field(0, description="a run may be so much later")
    blackouts: str = Field("", max_length=2_000, description="a window a line: mon-fri 8:00-10:00")
    late: Literal["once", "skip"] = Field("once", description="a run that the platform missed")
    skip_unhealthy: bool = False
    skip_unchanged: bool = False


class ScheduleOut(ScheduleIn):
    """Savepoints taken regularly."""

    id: int
    job: str
    blackouts: list[str] = Field(description="windows in which nothing is taken")  # type: ignore[assignment]
    enabled: bool
    next_run_at: datetime
    last_run_at: datetime | None
    last_result: str
    last_reason: str
    next_runs: list[datetime] = Field(description="the next five; none while it rests")

    @staticmethod
    def resolve_next_runs(schedule: SavepointSchedule) -> list[datetime]:
        """Jitter included."""
        return next_runs(schedule)

    @staticmethod
    def resolve_job(schedule: SavepointSchedule) -> str:
        """Its name."""
        return schedule.job.name

    @staticmethod
    def resolve_blackouts(schedule: SavepointSchedule) -> list[str]:
        """As people write them."""
        return [window_words(window) for window in schedule.blackouts]

    @staticmethod
    def resolve_last_result(schedule: SavepointSchedule) -> str:
        """What its operation says, once that has ended."""
        return str(schedule.result)

    @staticmethod
    def resolve_last_reason(schedule: SavepointSchedule) -> str:
        """Why it was skipped or failed."""
        return schedule.reason


class ScheduleChange(Schema):
    """Let it rest, or go on."""

    enabled: bool


class Policy(Schema):
    """Which savepoints of a job are kept; a rule that is null is none."""

    enabled: bool = True
    keep_last: int | None = None
    keep_days: int | None = None
    daily: int | None = Field(None, description="the newest of each day, for so many days")
    weekly: int | None = None
    monthly: int | None = None
    zone: str = Field("UTC", max_length=64)
    by_hand: bool = Field(default=False, description="also those that people took")
    grace_hours: float = Field(24.0, description="between the mark and the deletion")
    verify_days: float | None = Field(None, description="verify each again after so many")
