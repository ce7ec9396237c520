"""How far numbers of an output may be apart and still count as equal, column by column.

    {"mean_delay": {"absolute": 0.5}}     by so much
    {"mean_delay": {"relative": 0.01}}    by so large a part of the old value

What was compared by other terms is compared again, from the beginning, look by look; and what was
accepted of it was accepted by other terms too.

Errors   Refused: 400 with the field and one sentence; 404, 409.
"""

from __future__ import annotations

import math

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from controlplane.access.errors import conflict, invalid, not_found
from controlplane.access.lookup import require
from controlplane.access.models import Role
from controlplane.audit.record import record
from controlplane.replay import lifecycle
from controlplane.replay.models import Replay, ReplayOutput

COMPARED = (Replay.Status.REPLAYING, Replay.Status.CAUGHT_UP)
ABSOLUTE, RELATIVE = "absolute", "relative"
HOW = (ABSOLUTE, RELATIVE)


@transaction.atomic
def set_tolerance(
    replay: Replay, actor: User, output: str, column: str, how: str, value: float | None
) -> None:
    """Set it for a column of an output (uid or name); None: values must be equal. Operator."""
    require(actor, replay.job, Role.OPERATOR)
    found = _output(replay, output)
    _check(replay, found, column, how, value)
    before = dict(found.tolerance)
    after = {name: one for name, one in before.items() if name != column}
    if value:
        after[column] = {how: value}
    if after == before:
        return
    accepted = found.differences.exclude(accepted_at=None).count()
    found.tolerance = after
    _forget(found)
    facts = {"output": found.name, "tolerance": before, "accepted": accepted}
    changed = {"output": found.name, "tolerance": after, "accepted": 0}
    record(actor, "replay.tolerance", str(replay), job=replay.job, before=facts, after=changed)
    lifecycle.tell(replay)


def _output(replay: Replay, name: str) -> ReplayOutput:
    named = Q(uid=name) | Q(name=name)
    found = replay.outputs.select_for_update().filter(named).first()
    if found is None:
        raise not_found(what="output", name=f"{name} of {replay}")
    return found


def _check(
    replay: Replay, output: ReplayOutput, column: str, how: str, value: float | None
) -> None:
    if replay.status not in COMPARED or output.why_not:
        why = output.why_not or f"the replay is {replay.get_status_display().lower()}"
        msg = f"{output.name} is not compared: {why}"
        raise conflict(msg)
    if column not in output.columns:
        known = ", ".join(output.columns) or "none yet: wait until something is compared"
        msg = f"{output.name} has no column of numbers {column}: choose one of {known}"
        raise invalid(msg, "column")
    if how not in HOW:
        msg = f"a tolerance is {' or '.join(HOW)}: got {how}"
        raise invalid(msg, "how")
    if value is not None and not (math.isfinite(value) and value >= 0):
        msg = f"a tolerance must be a number from 0: got {value:g}"
        raise invalid(msg, "value")


def _forget(output: ReplayOutput) -> None:
    """What was compared; the files stay known."""
    output.hours, output.dirty, output.compared_to = [], [], None
    output.save(update_fields=["tolerance", "hours", "dirty", "compared_to"])
    output.differing.all().delete()
    output.differences.all().delete()
