"""People, clusters and the audit log."""

from __future__ import annotations

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
