"""Jobs, their versions and runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from ninja import Field, Schema

from controlplane.jobs.models import JobVersion, Run
from controlplane.snapshots.recovery_point import RecoveryPoint


class RunOut(Schema):
    """One start of one version on one cluster."""

    id: int
    job: str
    version: int
    cluster: str
    engine_job_id: str
    purpose: str
    state: str
    state_since: datetime
    parallelism: int
    restored_from: int | None = Field(description="savepoint of the catalogue")
    restored_path: str
    attempt: int = Field(description="the engine's restarts so far")
    started_at: datetime
    ended_at: datetime | None
    last_seen: datetime | None
    failure: str

    @staticmethod
    def resolve_job(run: Run) -> str:
        """Its name."""
        return run.job.name

    @staticmethod
    def resolve_version(run: Run) -> int:
        """Its number."""
        return run.version.number

    @staticmethod
    def resolve_cluster(run: Run) -> str:
        """Its name."""
        return run.cluster.name

    @staticmethod
    def resolve_restored_from(run: Run) -> int | None:
        """Its id."""
        return run.restored_from_id


class JobOut(Schema):
    """A job with its newest live run."""

    name: str
    team: str
    cluster: str
    role: str = Field(description="yours, in the job's team")
    desired_state: str
    state: str = Field(description="Flink's job state of the run; STOPPED without one")
    settings: dict[str, Any] = Field(description="values under names of secrets are struck out")
    created_at: datetime
    run: RunOut | None


class JobDetail(JobOut):
    """A job, and what the collector saw of it last."""

    figures: dict[str, Any] = Field(description="latest figures; empty when nothing is known")


class SettingsIn(Schema):
    """Settings to change; what is left out stays, null leaves the choice to the job file."""

    parallelism: int | None = None
    arguments: list[str] | None = None
    control_port: int | None = None
    checkpoint_interval_ms: int | None = None
    checkpoint_timeout_ms: int | None = None
    checkpoint_min_pause_ms: int | None = None
    incremental: bool | None = None
    state_backend: str | None = None
    restart_strategy: str | None = None
    restart_attempts: int | None = None
    restart_delay_ms: int | None = None
    require_state: bool | None = None
    tags: list[str] | None = None
    delay_objective_s: int | None = None
    recovery_point_objective_s: int | None = None


class Reason(Schema):
    """Why."""

    reason: str = Field("", max_length=500, description="for the audit log")


class Agreed(Reason):
    """What may be lost."""

    accept_missing_input: list[str] = Field(
        [], description="uids of sources that may go on without input that is gone"
    )


class StartIn(Agreed):
    """What to start."""

    version: int | None = Field(None, ge=1, description="number; none: the newest")
    savepoint: int | None = Field(None, ge=1, description="id; none: an empty state")
    drop: list[str] = Field([], description="state that may be left behind: uid or uid/state")


class UpgradeIn(Agreed):
    """What to put in the place of what runs."""

    version: int = Field(ge=1, description="number")
    savepoint: int | None = Field(None, ge=1, description="id; none: where the job is now")
    mode: str = Field("savepoint", description="savepoint, last_state or stateless")
    drop: list[str] = Field([], description="state that may be left behind: uid or uid/state")
    consent: bool = Field(default=False, description="leave all state behind, when stateless")


class RollbackIn(Agreed):
    """How to go back to the last version that was healthy."""

    mode: str = Field("", description="as for an upgrade; none: what the job's state allows")


class RescaleIn(Reason):
    """How parallel to run on."""

    parallelism: int = Field(ge=1, le=128)


class StopIn(Reason):
    """How to stop."""

    drain: bool = Field(default=False, description="fire every open window first")


class MoveIn(Reason):
    """Where to start from now on."""

    cluster: str = Field(max_length=64)


class TeamIn(Reason):
    """Whose it is from now on."""

    team: str = Field(max_length=64)


class UpkeepIn(Reason):
    """Whether the job is started again when its run ends."""

    wish: Literal["pause", "resume", "give_up"]


class LineIn(Schema):
    """A line for the control stream."""

    line: str = Field(max_length=1_000)


class Heard(Schema):
    """Who heard it."""

    listeners: int


class VersionOut(Schema):
    """One uploaded artifact."""

    number: int
    filename: str
    sha256: str = Field(alias="checksum")
    size_bytes: int
    note: str
    created_at: datetime
    created_by: str | None

    @staticmethod
    def resolve_created_by(version: JobVersion) -> str | None:
        """Their name."""
        return version.created_by.get_username() if version.created_by else None


class LineOut(Schema):
    """One line of a difference, with its number in either file."""

    kind: str = Field(description="same, added, removed, or gap: lines in between are the same")
    old: int | None
    new: int | None
    text: str


class SettingDeltaOut(Schema):
    """A setting with which two versions ran differently."""

    title: str
    old: str
    new: str


class VersionDiffOut(Schema):
    """What differs between two versions."""

    lines: Sequence[LineOut]
    note: str = Field(description="what is not shown, and why")
    settings: Sequence[SettingDeltaOut]
    settings_note: str


class SettingOut(Schema):
    """One setting of a job."""

    name: str
    title: str
    value: str
    source: str = Field(description="this job, job file or default")
    running: str = Field(description="what the present run has; empty: none, or no matter of it")
    waits: bool = Field(description="whether the next start changes it")


class UpkeepOut(Schema):
    """How the platform keeps a job running."""

    paused: bool
    paused_reason: str
    tries: int = Field(description="starts in a row after which it was not healthy")
    not_before: datetime | None = Field(description="when it may be started again")
    decision: str
    decided_at: datetime | None


class ConfigurationOut(Schema):
    """A job's settings with their source, and what keeps it running."""

    settings: Sequence[SettingOut]
    upkeep: UpkeepOut | None
    rollback_to: int | None = Field(description="the last version that was healthy")


class RecoveryOut(Schema):
    """What a job would lose if it started again now."""

    state: str = Field(description="met, missed, none, resting or no_objective")
    at: datetime | None = Field(description="when the newest restorable state was saved")
    source: str = Field(description="checkpoint or savepoint")
    objective_ms: float | None
    age_ms: float | None

    @staticmethod
    def resolve_age_ms(found: RecoveryPoint) -> float | None:
        """Since then."""
        return None if found.age is None else found.age.total_seconds() * 1_000
