"""Operations: what takes long, and how far it is."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from ninja import Field, Schema

from controlplane.audit.redact import redacted
from controlplane.operations.models import Operation


class OperationOut(Schema):
    """One long action."""

    id: UUID
    kind: str
    job: str
    state: str = Field(description="pending, running, succeeded, failed or cancelled")
    step: str
    text: str = Field(description="what it does just now, or what came out")
    error: str
    actor: str | None = Field(description="who asked; nobody when the platform did")
    params: dict[str, Any]
    run: int | None
    savepoint: int | None = Field(description="the one that it took, if it takes one")
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    cancel_asked_at: datetime | None

    @staticmethod
    def resolve_job(operation: Operation) -> str:
        """Its name."""
        return operation.job.name

    @staticmethod
    def resolve_actor(operation: Operation) -> str | None:
        """Their name."""
        return operation.actor.get_username() if operation.actor else None

    @staticmethod
    def resolve_params(operation: Operation) -> dict[str, Any]:
        """Without secrets."""
        params: dict[str, Any] = redacted(operation.params)
        return params

    @staticmethod
    def resolve_run(operation: Operation) -> int | None:
        """Its id."""
        return operation.run_id

    @staticmethod
    def resolve_savepoint(operation: Operation) -> int | None:
        """Its id."""
        found = operation.result.get("savepoint")
        return found if isinstance(found, int) else None


class EventOut(Schema):
    """One thing that happened in an operation."""

    at: datetime
    step: str
    text: str


class OperationDetail(OperationOut):
    """One long action, with what happened so far."""

    events: list[EventOut]

    @staticmethod
    def resolve_events(operation: Operation) -> list[Any]:
        """Oldest first."""
        return list(operation.events.all())
