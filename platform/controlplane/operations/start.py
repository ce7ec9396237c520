"""Starts an operation: checked, written down with its audit entry, and sent on commit.

Guarantee   The same idempotency key of the same person is the same operation, however often it is
            sent; nobody meets an operation of somebody else by it. Of one scope at most one
            operation is unfinished.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from controlplane.access.errors import Refused, conflict
from controlplane.audit.record import record
from controlplane.backends.registry import client_for
from controlplane.jobs.models import Job
from controlplane.operations import lifecycle
from controlplane.operations.contract import Context, Kind, Superseded
from controlplane.operations.kinds import kind_of
from controlplane.operations.models import UNFINISHED, Operation
from controlplane.operations.tasks import send_on_commit

KEY_CHARACTERS = 100
"""Of `Operation.idempotency_key`."""


def start_operation(
    kind_name: str,
    job: Job,
    actor: User | None,
    params: Mapping[str, Any] | None = None,
    idempotency_key: str = "",
    *,
    reason: str = "",
    now: datetime | None = None,
) -> Operation:
    """Begin an operation of that kind and return its row; Celery brings it on.

    Raises Refused: 409 while another operation has the job (or replay) for itself.
    """
    kind, at, asked = kind_of(kind_name), now or timezone.now(), dict(params or {})
    key = key_of(actor, idempotency_key or uuid.uuid4().hex)
    with transaction.atomic():
        if earlier := Operation.objects.filter(idempotency_key=key).first():
            return _same(earlier, kind, job, idempotency_key)
        # As it is now, not as it was when the page was made.
        job = Job.objects.select_for_update().select_related("team", "cluster").get(pk=job.pk)
        kind.check(job, asked)
        scope = kind.scope(job, asked)
        _make_room(kind, scope, actor, at)
        operation = _create(kind, job, actor, asked, key, scope, reason, at)
        kind.begin(operation, at)
        operation.save()
        lifecycle.tell(operation)
        record(actor, f"{kind.name}.request", job.name, job=job, reason=reason, after=asked)
        send_on_commit(operation.pk)
    return operation


def key_of(actor: User | None, given: str) -> str:
    """The key in the database: of this person alone, and as long as there is room for."""
    key = f"{actor.pk if actor else 'platform'}:{given}"
    return key if len(key) <= KEY_CHARACTERS else hashlib.sha256(key.encode()).hexdigest()


def _same(earlier: Operation, kind: Kind, job: Job, given: str) -> Operation:
    if earlier.kind == kind.name and earlier.job_id == job.pk:
        return earlier
    msg = (
        f"idempotency key {given} was used for another operation: "
        f"{earlier.kind} of {earlier.job.name}; reload the page and try again"
    )
    raise conflict(msg)


def _make_room(kind: Kind, scope: str, actor: User | None, now: datetime) -> None:
    """End or respect the unfinished operation of the same scope."""
    running = (
        Operation.objects.select_related("job__cluster")
        .filter(scope=scope, state__in=UNFINISHED)
        .first()
    )
    if running is None:
        return
    if not kind.supersedes:
        raise _busy(running)
    sentence = f"ended by {kind.name.replace('_', ' ')}, asked for by {actor or 'the platform'}"
    if lifecycle.cancel(running, sentence, now):
        context = Context(running, client_for(running.job.cluster), now)
        kind_of(running.kind).fail(context, Superseded(sentence))


def _busy(running: Operation) -> Refused:
    msg = (
        f"job {running.job.name} is busy: {running.kind.replace('_', ' ')} is under way "
        f"since {running.created_at:%H:%M:%S} UTC; wait for it to end, or cancel it"
    )
    return Refused(409, "busy", msg, {"operation": str(running.pk)})


def _create(
    kind: Kind,
    job: Job,
    actor: User | None,
    params: dict[str, Any],
    key: str,
    scope: str,
    reason: str,
    now: datetime,
) -> Operation:
    first = kind.steps[0]
    try:
        with transaction.atomic():
            return Operation.objects.create(
                kind=kind.name,
                scope=scope,
                job=job,
                actor=actor,
                idempotency_key=key,
                reason=reason[:500],
                params=params,
                give_up_at=now + timedelta(seconds=kind.timeout_s),
                step=first.name,
                text=first.text,
                deadline=now + timedelta(seconds=first.timeout_s),
                not_before=now,
            )
    except IntegrityError:
        msg = f"job {job.name} is busy: another operation began just now; wait for it to end"
        raise conflict(msg) from None
