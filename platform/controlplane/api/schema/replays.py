"""Replays."""

from __future__ import annotations

from datetime import datetime

from ninja import Field, Schema

from controlplane.api.schema.operations import OperationOut
from controlplane.replay.models import Replay


class ReplayOut(Schema):
    """A version run from a savepoint beside the live job."""

    id: int
    name: str
    job: str
    status: str
    savepoint: int
    version: int
    run: int | None
    parallelism: int
    event_time_start: datetime | None
    event_time_now: datetime | None
    live_event_time: datetime | None
    speed: float | None = Field(description="event seconds per second")
    eta_low: datetime | None
    eta_high: datetime | None
    note: str
    failure: str
    caught_up_at: datetime | None
    created_at: datetime
    ended_at: datetime | None

    @staticmethod
    def resolve_job(replay: Replay) -> str:
        """Its name."""
        return replay.job.name

    @staticmethod
    def resolve_savepoint(replay: Replay) -> int:
        """Its id."""
        return replay.savepoint_id

    @staticmethod
    def resolve_version(replay: Replay) -> int:
        """Its number."""
        return replay.version.number

    @staticmethod
    def resolve_run(replay: Replay) -> int | None:
        """Its id."""
        return replay.run_id


class ReplayIn(Schema):
    """A replay to be started."""

    savepoint: int = Field(ge=1, description="id")
    version: int = Field(ge=1, description="number")
    parallelism: int = Field(1, ge=1, le=128)


class ReplayStarted(Schema):
    """A new replay, and the operation that starts it."""

    replay: ReplayOut
    operation: OperationOut
