"""Operations as pages list them."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import QuerySet

from controlplane.jobs.models import Job
from controlplane.moments import epoch_ms
from controlplane.operations.kinds import kind_of
from controlplane.operations.models import UNFINISHED, Operation

TITLES = {
    "deploy": "Start {job}",
    "stop": "Stop {job} with a savepoint",
    "drain": "Drain and stop {job}",
    "cancel": "Cancel {job}",
    "savepoint": "Savepoint of {job}",
    "upgrade": "Upgrade {job}",
    "rollback": "Roll {job} back",
    "rescale": "Rescale {job}",
    "move": "Move {job} to another cluster",
    "discard": "Clear a cancelled savepoint of {job} away",
    "start_replay": "Replay of {job}",
    "abandon_replay": "Abandon replay of {job}",
    "promote_replay": "Promote replay of {job}",
    "cut_over": "Cut over replay of {job}",
    "rollback_replay": "Undo the promotion of {job}",
    "verify": "Verify a savepoint of {job}",
    "dispose": "Delete a savepoint of {job}",
    "import": "Import a savepoint into {job}",
}


@dataclass(frozen=True, slots=True)
class OperationLine:
    """One operation, as a line and as the toast that follows it."""

    id: str
    title: str
    state: str
    text: str
    error: str
    actor: str
    created_ms: int
    may_cancel: bool
    """Whether it can end now without its result."""


def title_of(operation: Operation) -> str:
    """What it does, in a few words."""
    pattern = TITLES.get(operation.kind, operation.kind.replace("_", " ").capitalize() + " {job}")
    return pattern.format(job=operation.job.name)


def is_cancellable(operation: Operation) -> bool:
    """Whether it can end now without its result, and nobody has asked for that yet."""
    asked = operation.is_finished or operation.cancel_asked_at is not None
    return not asked and kind_of(operation.kind).may_cancel(operation)


def unfinished(job: Job) -> tuple[OperationLine, ...]:
    """What is under way on a job, newest first."""
    return _lines(job.operations.filter(state__in=UNFINISHED))


def unfinished_by(user: User) -> tuple[OperationLine, ...]:
    """What this person has under way, anywhere."""
    return _lines(Operation.objects.filter(actor=user, state__in=UNFINISHED))


def recent(job: Job, limit: int = 8) -> tuple[OperationLine, ...]:
    """The newest operations of a job, finished or not."""
    return _lines(job.operations.all(), limit)


def _lines(found: QuerySet[Operation], limit: int = 20) -> tuple[OperationLine, ...]:
    return tuple(
        OperationLine(
            id=str(one.pk),
            title=title_of(one),
            state=one.state,
            text=one.text,
            error=one.error,
            actor=one.actor.get_username() if one.actor else "the platform",
            created_ms=epoch_ms(one.created_at),
            may_cancel=is_cancellable(one),
        )
        for one in found.select_related("job", "actor").order_by("-created_at")[:limit]
    )
