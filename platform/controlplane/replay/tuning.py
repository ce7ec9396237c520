"""The terms of a replay, set at its start or later: when it has caught up, how long it can go back.

    level_within_s   event seconds behind the live job; None: as its pace says    0 … 366 days
    level_for_s      wall seconds for which it has to be level                    0 … 1 day
    back_days        days after its promotion in which it can be rolled back      0 … 366

Errors   Refused: 400 with the field and one sentence.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

from django.contrib.auth.models import User
from django.db import transaction

from controlplane.access.errors import conflict, invalid
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.replay import lifecycle
from controlplane.replay.models import BACK_DAYS, LEVEL_FOR_S, Replay

YEAR_DAYS, DAY_S = 366.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Tuning:
    """Checked values."""

    level_within_s: float | None = None
    level_for_s: float = LEVEL_FOR_S
    back_days: float = BACK_DAYS

    def __post_init__(self) -> None:
        """Refuse what cannot be meant. Raises Refused."""
        within = self.level_within_s
        if within is not None:
            _check("level_within_s", "seconds behind the live job", within, YEAR_DAYS * DAY_S)
        _check("level_for_s", "seconds of being level", self.level_for_s, DAY_S)
        _check("back_days", "days to roll back in", self.back_days, YEAR_DAYS)


def tuning_of(replay: Replay) -> Tuning:
    """Its present values."""
    return Tuning(replay.level_within_s, replay.level_for_s, replay.back_days)


@transaction.atomic
def tune_replay(replay: Replay, actor: User, tuning: Tuning) -> None:
    """Change them. Operator."""
    require(actor, replay.job, Role.OPERATOR)
    fresh = Replay.objects.select_for_update().select_related("job__team").get(pk=replay.pk)
    if fresh.is_terminal and fresh.status != Replay.Status.PROMOTED:
        msg = f"{fresh} has ended: it is {fresh.get_status_display().lower()}"
        raise conflict(msg)
    before, after = asdict(tuning_of(fresh)), asdict(tuning)
    if before == after:
        return
    for name, value in after.items():
        setattr(fresh, name, value)
    fresh.save(update_fields=list(after))
    record(actor, "replay.tune", str(fresh), job=fresh.job, before=before, after=after)
    lifecycle.tell(fresh)


def _check(field: str, name: str, value: float, most: float) -> None:
    if not math.isfinite(value) or not 0 <= value <= most:
        msg = f"{name} must be from 0 to {most:,.0f}: got {value:g}"
        raise invalid(msg, field)
