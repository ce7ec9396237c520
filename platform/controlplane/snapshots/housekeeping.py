"""What the platform does with savepoints by itself: marks, deletes, verifies.

1. Per job, in one transaction with its row locked: decide; mark what no rule keeps, and take marks
   back from what has come to be kept.
2. Start the deletion of what was marked long enough ago; an operation does it.
3. Start the verification of what was not verified for too long, one at a time per cluster.

Guarantee   Run twice, or by two beats at once, it does the same once.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from controlplane.access.errors import Refused
from controlplane.audit.record import record
from controlplane.jobs.models import Job
from controlplane.moments import epoch_ms
from controlplane.operations.models import UNFINISHED, Operation
from controlplane.operations.start import start_operation
from controlplane.snapshots import lifecycle
from controlplane.snapshots.actions import grace_of, verify_savepoint
from controlplane.snapshots.keeping import rules_of, verdicts
from controlplane.snapshots.models import Savepoint, SavepointPolicy
from controlplane.snapshots.retention import Verdict

log = logging.getLogger(__name__)

MOST_DELETIONS = 20
"""Begun in one turn: a first rule on a long history must not fill the queue."""

VERIFY_PAUSE = timedelta(hours=1)
"""Before a savepoint is tried again whose verification could not be done."""

Status = Savepoint.Status


def keep_house(now: datetime) -> None:
    """One turn."""
    for job in _with_decisions():
        decide_about(job, now)
    delete_due(now)
    verify_due(now)


def decide_about(job: Job, now: datetime) -> None:
    """Mark and unmark the savepoints of one job."""
    with transaction.atomic():
        locked = Job.objects.select_for_update().get(pk=job.pk)
        policy = SavepointPolicy.objects.filter(job=locked).first()
        found = verdicts(locked, rules_of(policy), now)
        kept = [key for key, verdict in found.items() if verdict.keep]
        marks = Q(status=Status.COMPLETED, pk__in=found.keys() - kept)
        keeps = Q(status=Status.MARKED, pk__in=kept)
        # Rows are wide, and most of them stay as they are.
        for savepoint in locked.savepoints.filter(marks | keeps).select_related("job"):
            _apply(savepoint, found[savepoint.pk], now)


def _apply(savepoint: Savepoint, verdict: Verdict, now: datetime) -> None:
    job, reason = savepoint.job, verdict.reason
    if savepoint.status == Status.COMPLETED and not verdict.keep:
        if lifecycle.mark(savepoint, reason, now + grace_of(job), None):
            record(None, "savepoint.mark", str(savepoint), job=job, reason=reason)
    elif savepoint.status == Status.MARKED and verdict.keep:
        # What a person marked, no rule takes back; that somebody needs it does.
        by_person = savepoint.marked_by_id is not None and verdict.by_rule
        if not by_person and lifecycle.unmark(savepoint):
            record(None, "savepoint.keep", str(savepoint), job=job, reason=reason)


def delete_due(now: datetime) -> int:
    """Start the deletions whose time has come; how many."""
    due = Savepoint.objects.filter(status=Status.MARKED, delete_at__lte=now)
    begun = 0
    for savepoint in due.select_related("job").order_by("delete_at")[:MOST_DELETIONS]:
        params = {"savepoint": savepoint.pk}
        key = f"dispose-{savepoint.pk}-{epoch_ms(savepoint.delete_at)}-{savepoint.delete_tries}"
        try:
            start_operation("dispose", savepoint.job, savepoint.marked_by, params, key, now=now)
            begun += 1
        except Refused as refused:
            log.info("savepoint %s stays for now: %s", savepoint.pk, refused.message)
    return begun


def verify_due(now: datetime) -> int:
    """Start the next verification that the policies ask for; how many."""
    begun = 0
    asked = Operation.objects.filter(kind="verify")
    clusters = set(asked.filter(state__in=UNFINISHED).values_list("job__cluster", flat=True))
    lately = asked.filter(created_at__gt=now - VERIFY_PAUSE).values_list("params", flat=True)
    tried = [params["savepoint"] for params in lately]
    for policy in SavepointPolicy.objects.filter(verify_days__isnull=False).select_related("job"):
        job, age = policy.job, timedelta(days=policy.verify_days or 0)
        if job.cluster_id in clusters:
            continue
        old = Q(verified_at=None) | Q(verified_at__lte=now - age)
        waiting = job.savepoints.filter(old, status=Status.COMPLETED).exclude(pk__in=tried)
        first = waiting.order_by(F("verified_at").asc(nulls_first=True), "pk")
        for savepoint in first.select_related("job__cluster", "job__team")[:1]:
            verify_savepoint(savepoint, None)
            clusters.add(job.cluster_id)
            begun += 1
    return begun


def _with_decisions() -> list[Job]:
    """Jobs that have rules, an expiry, or a mark that somebody may have come to need."""
    ruled = Q(savepoint_policy__enabled=True)
    dated = Q(savepoints__expires_at__isnull=False, savepoints__status__in=["completed", "marked"])
    marked = Q(savepoints__status=Status.MARKED)
    return list(Job.objects.filter(ruled | dated | marked).distinct())
