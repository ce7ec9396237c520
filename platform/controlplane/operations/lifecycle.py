"""The only functions that change how an operation stands.

    pending ─take─▶ running ─go_on─▶ running ─▶ … ─succeed─▶ succeeded
                       ├─ recover ─▶ running ─▶ … ─fail────▶ failed
                       └─ cancel ──────────────────────────▶ cancelled

Guarantee   Each is one compare-and-set: a worker whose lease has passed to another, or whose
            operation was cancelled meanwhile, changes nothing and is told so (LeaseLost).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from controlplane.live import topics
from controlplane.live.publish import publish_on_commit
from controlplane.operations.contract import Kind, Step, Wait
from controlplane.operations.models import UNFINISHED, Operation, OperationEvent


class LeaseLost(Exception):
    """Another worker has the operation now, or it has ended."""


def take(operation_id: uuid.UUID, now: datetime, lease_s: float) -> Operation | None:
    """Take the operation for `lease_s`; None when it has ended or another worker has it."""
    token = uuid.uuid4().hex
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    taken = Operation.objects.filter(free, pk=operation_id, state__in=UNFINISHED).update(
        state=Operation.State.RUNNING,
        lease_token=token,
        lease_until=now + timedelta(seconds=lease_s),
    )
    return _fresh(operation_id) if taken else None


def renew(operation: Operation, now: datetime, lease_s: float) -> None:
    """Keep the lease for `lease_s` from now, and see whether somebody cancelled it meanwhile.

    Raises LeaseLost.
    """
    _set(operation, lease_until=now + timedelta(seconds=lease_s))
    operation.refresh_from_db(fields=["cancel_asked_at", "cancel_sentence"])


def release(operation: Operation) -> None:
    """Let others take it; also when it has ended."""
    held = Operation.objects.filter(pk=operation.pk, lease_token=operation.lease_token)
    held.update(lease_until=None, lease_token="")


def break_lease(operation_id: uuid.UUID) -> None:
    """Free an operation whose worker, in this very process, came to a fault."""
    Operation.objects.filter(pk=operation_id, state__in=UNFINISHED).update(lease_until=None)


def enter(operation: Operation, step: Step, now: datetime) -> None:
    """Begin a step: its time runs from now. Raises LeaseLost."""
    _set(
        operation,
        step=step.name,
        text=step.text,
        attempt=0,
        deadline=now + timedelta(seconds=step.timeout_s),
    )
    note(operation, now, step.text)
    tell(operation)


def keep(operation: Operation, found: Mapping[str, Any]) -> None:
    """Keep what a step found. Raises LeaseLost."""
    _set(operation, result=operation.result | dict(found))


def postpone(operation: Operation, wait: Wait, until: datetime, now: datetime) -> None:
    """Look again at `until`, and keep what was found meanwhile. Raises LeaseLost."""
    changed = wait.text != operation.text
    _set(
        operation,
        text=wait.text[:500],
        attempt=operation.attempt + 1,
        not_before=until,
        result=operation.result | dict(wait.found),
    )
    if wait.retry:
        note(operation, now, f"try {operation.attempt}: {wait.text}")
    if changed:
        tell(operation)


def ask_to_cancel(operation: Operation, sentence: str, now: datetime) -> bool:
    """Note that somebody wishes it to end without its result; whether this is the first time."""
    asked = Operation.objects.filter(
        pk=operation.pk, state__in=UNFINISHED, cancel_asked_at=None
    ).update(cancel_asked_at=now, cancel_sentence=sentence[:500], not_before=now)
    if asked:
        operation.refresh_from_db()
        note(operation, now, f"to be {sentence}")
        tell(operation)
    return bool(asked)


def recover(operation: Operation, kind: Kind, sentence: str, now: datetime) -> None:
    """It failed, but something is to be put right first. Raises LeaseLost."""
    _set(operation, error=sentence)
    note(operation, now, sentence)
    enter(operation, next(step for step in kind.recovery if step.when(operation)), now)


def succeed(operation: Operation, text: str, now: datetime) -> None:
    """All steps are done. Raises LeaseLost."""
    _end(operation, Operation.State.SUCCEEDED, text, now)


def fail(operation: Operation, sentence: str, now: datetime, *, cancelled: bool = False) -> None:
    """It cannot be done, or was cancelled and is undone. Raises LeaseLost."""
    state = Operation.State.CANCELLED if cancelled else Operation.State.FAILED
    _set(operation, error=sentence)
    _end(operation, state, sentence, now)


def cancel(operation: Operation, sentence: str, now: datetime) -> bool:
    """End it from outside; whether it was unfinished. Its worker notices at its next change."""
    ended = Operation.objects.filter(pk=operation.pk, state__in=UNFINISHED).update(
        state=Operation.State.CANCELLED, text=sentence[:500], error=sentence, ended_at=now
    )
    if ended:
        operation.refresh_from_db()
        note(operation, now, sentence)
        tell(operation)
    return bool(ended)


def note(operation: Operation, now: datetime, text: str) -> None:
    """Add to the operation's history."""
    OperationEvent.objects.create(operation=operation, at=now, step=operation.step, text=text[:500])


def tell(operation: Operation) -> None:
    """Send how it stands to the pages that follow it, when the transaction commits."""
    publish_on_commit(
        topics.operation(operation.pk),
        {
            "id": str(operation.pk),
            "kind": operation.kind,
            "job": operation.job_id,
            "state": operation.state,
            "step": operation.step,
            "text": operation.text,
            "done": None,
            "total": None,
            "error": operation.error or None,
            "url": operation.result.get("url"),
        },
    )


def _end(operation: Operation, state: Operation.State, text: str, now: datetime) -> None:
    _set(operation, state=state, text=text[:500], ended_at=now)
    note(operation, now, text)
    tell(operation)


def _set(operation: Operation, **values: Any) -> None:
    """Change the row while the lease holds, and the object with it."""
    held = Operation.objects.filter(
        pk=operation.pk, lease_token=operation.lease_token, state=Operation.State.RUNNING
    )
    if not held.update(**values):
        msg = f"operation {operation.pk} has ended or belongs to another worker"
        raise LeaseLost(msg)
    for name, value in values.items():
        setattr(operation, name, value)


def _fresh(operation_id: uuid.UUID) -> Operation:
    return Operation.objects.select_related("job__cluster", "job__team", "run", "actor").get(
        pk=operation_id
    )
