"""Why savepoints of a job stay: what the database knows, given to the pure decision.

rows, uses ─▶ Candidates ─retention.decide─▶ Verdicts
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime

from controlplane.jobs.models import Job
from controlplane.snapshots.models import Savepoint, SavepointPolicy
from controlplane.snapshots.retention import Candidate, Rules, Verdict, decide, last_good
from controlplane.snapshots.timing import zone_of
from controlplane.snapshots.uses import Uses, needs, uses_of

log = logging.getLogger(__name__)

DECIDABLE = (Savepoint.Status.COMPLETED, Savepoint.Status.MARKED)
"""What retention is about: what is being taken or deleted is in other hands."""


def rules_of(policy: SavepointPolicy | None) -> Rules:
    """The rules of a policy; without one, or while it rests, there are none.

    Nor are there while its time zone is not known (any more): then nobody can say what a day is.
    """
    if policy is None or not policy.enabled:
        return Rules()
    try:
        zone = zone_of(policy.zone)
    except ValueError as error:
        log.warning("the rules of %s rest: %s", policy, error)
        return Rules()
    return Rules(
        keep_last=policy.keep_last,
        keep_days=policy.keep_days,
        daily=policy.daily,
        weekly=policy.weekly,
        monthly=policy.monthly,
        zone=zone,
        by_hand=policy.by_hand,
    )


def decidable(job: Job) -> list[Savepoint]:
    """Its savepoints that retention is about, without what is wide and not asked."""
    rows = job.savepoints.filter(status__in=DECIDABLE)
    return list(rows.defer("contents", "source_positions", "problems", "failure"))


def candidates(savepoints: Iterable[Savepoint], uses: Uses) -> list[Candidate]:
    """What the decision looks at."""
    return [
        Candidate(
            id=one.pk,
            taken_at=one.taken_at or one.completed_at or one.created_at,
            origin=one.origin,
            pinned=one.pinned,
            expires_at=one.expires_at,
            verdict=one.verdict,
            missing=one.missing_since is not None,
            needs=needs(uses, one.pk),
        )
        for one in savepoints
        if one.status in DECIDABLE
    ]


def verdicts(job: Job, rules: Rules, now: datetime) -> dict[int, Verdict]:
    """What would become of each savepoint of the job, by its id."""
    found = candidates(decidable(job), uses_of([job]))
    return {verdict.id: verdict for verdict in decide(found, rules, now)}


def kept_because(savepoint: Savepoint) -> str:
    """Why it must not be deleted, whoever asks, in one sentence; empty when it may be."""
    job = savepoint.job
    found = candidates(decidable(job), uses_of([job], savepoint.pk))
    good = last_good(found)
    mine = next((one for one in found if one.id == savepoint.pk), None)
    if mine is None:
        return ""
    if mine.pinned:
        return "it is pinned; take the pin away first"
    if mine.needs:
        return mine.needs[0]
    return f"it is {good[mine.id]} of {job.name}" if mine.id in good else ""
