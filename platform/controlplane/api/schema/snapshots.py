"""Checkpoints, savepoints and their schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ninja import Field, Schema

from controlplane.snapshots.models import Savepoint, SavepointSchedule


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


class SavepointIn(Schema):
    """A savepoint to be taken."""

    label: str = Field("", max_length=200)


class ImportIn(Schema):
    """A savepoint that lies somewhere."""

    path: str = Field(max_length=500)
    label: str = Field("", max_length=200)


class ScheduleOut(Schema):
    """Savepoints taken regularly."""

    id: int
    job: str
    every_minutes: float | None
    """None when `cron` says when."""
    cron: str
    zone: str
    enabled: bool
    next_run_at: datetime
    last_run_at: datetime | None
    last_result: str
    last_reason: str

    @staticmethod
    def resolve_job(schedule: SavepointSchedule) -> str:
        """Its name."""
        return schedule.job.name

    @staticmethod
    def resolve_last_result(schedule: SavepointSchedule) -> str:
        """What its operation says, once that has ended."""
        return str(schedule.result)

    @staticmethod
    def resolve_last_reason(schedule: SavepointSchedule) -> str:
        """Why it was skipped or failed."""
        return schedule.reason


class ScheduleIn(Schema):
    """A new schedule."""

    every_minutes: float


class ScheduleChange(Schema):
    """Let it rest, or go on."""

    enabled: bool
