"""What people do to an operation that goes on: cancel it.

Errors   Refused: 403 the role, 409 when it has ended or cannot be taken back any more.
"""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from controlplane.access.errors import Refused
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.operations import lifecycle
from controlplane.operations.kinds import kind_of
from controlplane.operations.models import Operation
from controlplane.operations.start import start_operation
from controlplane.operations.tasks import send_on_commit


@transaction.atomic
def cancel_operation(
    operation: Operation, actor: User, reason: str = "", now: datetime | None = None
) -> Operation:
    """End an operation without its result; its worker takes back what it began. Operator.

    Asked for again while that goes on, it is the same wish.
    """
    require(actor, operation.job, Role.OPERATOR)
    locked = Operation.objects.select_for_update().select_related("job").get(pk=operation.pk)
    _check(locked)
    why = f": {reason.strip()}" if reason.strip() else ""
    if lifecycle.ask_to_cancel(locked, f"cancelled by {actor}{why}", now or timezone.now()):
        target = f"{locked.kind} of {locked.job.name}"
        record(actor, "operation.cancel", target, job=locked.job, reason=reason)
        send_on_commit(locked.pk)
        if later := kind_of(locked.kind).discarded_by:
            start_operation(later, locked.job, actor, {"of": str(locked.pk)}, reason=reason)
    return locked


def why_not(operation: Operation) -> str:
    """Why it cannot be cancelled now, in one sentence; empty when it can."""
    name = operation.kind.replace("_", " ")
    if operation.is_finished:
        return f"the {name} of {operation.job.name} has ended ({operation.state})"
    kind = kind_of(operation.kind)
    if kind.is_recovering(operation):
        return f"the {name} of {operation.job.name} is being taken back: {operation.text}"
    if not kind.may_cancel(operation):
        return (
            f"the {name} of {operation.job.name} cannot be cancelled any more: the engine was "
            f"asked and cannot take it back ({operation.text}); wait for it to end"
        )
    return ""


def _check(operation: Operation) -> None:
    if operation.cancel_asked_at and not operation.is_finished:
        return
    if sentence := why_not(operation):
        raise Refused(409, "not_cancellable", sentence)
