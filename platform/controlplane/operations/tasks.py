"""Celery's side of operations: nudges, each safe to lose and safe to repeat.

The row in the database is the truth. `advance` brings one operation on and sends itself again when
it wants to look later; `sweep` finds operations that nobody is bringing on (a worker died, the
broker was away) and sends them again.
"""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from kombu.exceptions import OperationalError

from controlplane.celery import app
from controlplane.operations import runner
from controlplane.operations.models import UNFINISHED, Operation

log = logging.getLogger(__name__)

OVERDUE = timedelta(seconds=3)
"""How late a nudge may be before the sweep takes it for lost."""


@app.task(name="controlplane.operations.tasks.advance")
def advance(operation_id: str) -> None:
    """Bring one operation on."""
    key = uuid.UUID(operation_id)
    try:
        again_s = runner.advance(key, timezone.now)
    except Exception as fault:
        runner.stumble(key, fault, timezone.now())
        raise
    if again_s is not None:
        send(key, again_s)


@app.task(name="controlplane.operations.tasks.sweep")
def sweep() -> None:
    """Send every operation again that nobody is bringing on."""
    for operation_id in forgotten(timezone.now()):
        send(operation_id)


def forgotten(now: datetime) -> list[uuid.UUID]:
    """Operations that should have gone on by now, and that no worker has."""
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    late = Operation.objects.filter(free, state__in=UNFINISHED, not_before__lte=now - OVERDUE)
    return list(late.values_list("pk", flat=True))


def send_on_commit(operation_id: uuid.UUID) -> None:
    """Send the operation to a worker once it is in the database."""
    transaction.on_commit(lambda: send(operation_id))


def send(operation_id: uuid.UUID, delay_s: float = 0.0) -> None:
    """Send the operation to a worker; a broker that is away leaves it to the sweep."""
    try:
        advance.apply_async((str(operation_id),), countdown=delay_s)
    except OperationalError as error:
        log.warning("operation %s waits for the sweep: %s", operation_id, error)
