"""People, clusters and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ninja import Field, Schema

from controlplane.audit.models import AuditEntry
from controlplane.audit.redact import redacted_text
from controlplane.backends.models import Cluster


class Me(Schema):
    """Who asks, and what they may do."""

    user: str
    platform_admin: bool
    teams: dict[str, str] = Field(description="team to role; with a token, no more than its scope")
    token: str | None = Field(description="name of the token; none for a session")


class ClusterOut(Schema):
    """One engine, as the collector saw it last."""

    name: str
    kind: str
    url: str
    version: str
    status: str
    capabilities: dict[str, Any]
    last_seen: datetime | None

    @staticmethod
    def resolve_url(cluster: Cluster) -> str:
        """Without a password."""
        return redacted_text(cluster.url)


class ClusterIn(Schema):
    """An engine to be registered."""

    name: str = Field(max_length=64)
    url: str = Field(max_length=300)
    token: str = Field("", description="what it asks for, if it does")


class ClusterChange(Schema):
    """What to change; what is left out stays."""

    url: str = Field("", max_length=300)
    token: str = ""
    forget_token: bool = False


class WorkerOut(Schema):
    """One process, which runs one slice of one job."""

    job: str = Field(description="its name; a sentence where you may not know it")
    purpose: str
    slice: int
    pid: int | None
    memory_bytes: int | None
    cpu_percent: float | None = Field(description="of one core")


class TaskManagerOut(Schema):
    """A task manager."""

    id: str
    slots: int
    used: int
    pid: int | None
    cpu_cores: int
    memory_bytes: int | None
    free_memory: int | None
    heartbeat_ms: int | None
    workers: Sequence[WorkerOut]


class ReportingOut(Schema):
    """How the metrics of an engine get to the series store."""

    dropped: int
    waiting: int
    silent_ms: float


class ClusterUse(Schema):
    """What runs on a cluster now."""

    name: str
    engine: str
    away: str = Field(description="why it does not answer")
    jobs: int
    slots: int
    slots_used: int
    manages: bool = Field(description="whether task managers can be started and stopped")
    task_managers: Sequence[TaskManagerOut]
    reporting: ReportingOut | None


class JumpOut(Schema):
    """A place that fits a search."""

    name: str
    note: str
    url: str = Field(description="of its page")


class VariableOut(Schema):
    """A variable of the environment; its value is told nowhere."""

    name: str
    meaning: str
    is_set: bool


class PartOut(Schema):
    """Something that the platform runs on."""

    name: str
    version: str


class PlatformOut(Schema):
    """What is configured, and what it runs on."""

    variables: Sequence[VariableOut]
    parts: Sequence[PartOut]


class TaskManager(Schema):
    """A task manager of an engine of ours."""

    id: str


class AuditOut(Schema):
    """One entry of the audit log."""

    id: int
    at: datetime
    actor: str | None = Field(description="nobody: the platform itself")
    action: str
    target: str
    job: str | None
    team: str | None
    reason: str
    before: dict[str, Any]
    after: dict[str, Any]
    request_id: str

    @staticmethod
    def resolve_actor(entry: AuditEntry) -> str | None:
        """Their name."""
        return entry.actor.get_username() if entry.actor else None

    @staticmethod
    def resolve_job(entry: AuditEntry) -> str | None:
        """Its name."""
        return entry.job.name if entry.job else None

    @staticmethod
    def resolve_team(entry: AuditEntry) -> str | None:
        """Its name."""
        return entry.team.name if entry.team else None
