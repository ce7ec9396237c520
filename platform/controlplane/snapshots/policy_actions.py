"""What people decide about which savepoints of a job are kept.

Errors   Refused, with the field and one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from django.contrib.auth.models import User
from django.db import transaction

from controlplane.access.errors import invalid
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.jobs.models import Job
from controlplane.snapshots.models import SavepointPolicy
from controlplane.snapshots.retention import Rules
from controlplane.snapshots.timing import zone_of

MOST = 10_000
MOST_HOURS = 24.0 * 366
RULE_WORDS = {
    "keep_last": "Newest",
    "keep_days": "Days",
    "daily": "Daily",
    "weekly": "Weekly",
    "monthly": "Monthly",
}


@dataclass(frozen=True, slots=True)
class PolicyWish:
    """What a person asks for; None is no rule."""

    keep_last: int | None = None
    keep_days: int | None = None
    daily: int | None = None
    weekly: int | None = None
    monthly: int | None = None
    zone: str = "UTC"
    by_hand: bool = False
    grace_hours: float = 24.0
    verify_days: float | None = None
    enabled: bool = True

    def rules(self) -> Rules:
        """The rules in it, for a preview. Raises Refused."""
        check(self)
        return Rules(
            self.keep_last,
            self.keep_days,
            self.daily,
            self.weekly,
            self.monthly,
            zone_of(self.zone),
            self.by_hand,
        )


def check(wish: PolicyWish) -> None:
    """Refuse numbers out of range and unknown zones."""
    for name in RULE_WORDS:
        value = getattr(wish, name)
        if value is not None and not 1 <= value <= MOST:
            msg = f"{name} must be between 1 and {MOST:,}: got {value}; leave it empty for no rule"
            raise invalid(msg, name)
    _check_hours("grace_hours", wish.grace_hours, 0.0, MOST_HOURS)
    if wish.verify_days is not None:
        _check_hours("verify_days", wish.verify_days, 0.01, 366.0)
    try:
        zone_of(wish.zone)
    except ValueError as error:
        raise invalid(str(error), "zone") from error


def rule_fields(policy: SavepointPolicy | None) -> list[tuple[str, str, int | None]]:
    """Each rule with its word and its number, for a form."""
    return [(name, word, getattr(policy, name, None)) for name, word in RULE_WORDS.items()]


def policy_of(job: Job) -> SavepointPolicy | None:
    """What is decided; None: nothing is."""
    return SavepointPolicy.objects.select_related("updated_by").filter(job=job).first()


@transaction.atomic
def set_policy(job: Job, actor: User, wish: PolicyWish) -> SavepointPolicy:
    """Decide which savepoints are kept. Operator."""
    require(actor, job, Role.OPERATOR)
    check(wish)
    values = asdict(wish)
    existing = SavepointPolicy.objects.filter(job=job).first()
    before: Mapping[str, object] = {
        name: getattr(existing, name) for name in values if existing is not None
    }
    policy, _ = SavepointPolicy.objects.update_or_create(
        job=job, defaults=values | {"updated_by": actor}
    )
    record(actor, "savepoint.policy", job.name, job=job, before=before, after=values)
    return policy


def _check_hours(name: str, value: float, low: float, high: float) -> None:
    if not math.isfinite(value) or not low <= value <= high:
        msg = f"{name} must be between {low:g} and {high:,.0f}: got {value:g}"
        raise invalid(msg, name)
