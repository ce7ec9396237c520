"""What was found in a stretch of event time, kept in the place of what was kept of its hours.

    hours       counts of every hour                        ReplayOutput.hours
    differing   kinds of differences, with their hour       DifferingHour
    all hours   the same, added up; what people accept      Difference

Units    hours begin at epoch µs; those of `ReplayOutput.hours` at epoch ms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from controlplane.moments import epoch_ms, moment_us
from controlplane.replay import lifecycle
from controlplane.replay.comparison.compare import HOUR_US
from controlplane.replay.comparison.found import (
    Example,
    Found,
    Group,
    Groups,
    Kind,
    Verdict,
    added_up,
)
from controlplane.replay.comparison.stretches import Stretch, without
from controlplane.replay.models import Difference, DifferingHour, ReplayOutput

COUNTED = ("rows", "first_seen", "examples")
"""What comparing writes of a difference that is known."""


@transaction.atomic
def keep(
    output: ReplayOutput, stretch: Stretch, found: Found, now: datetime, *, forward: bool
) -> None:
    """Replace what is kept of the stretch; `forward`: it ends later than what was compared."""
    fresh = ReplayOutput.objects.select_for_update().get(pk=output.pk)
    if fresh.tolerance != output.tolerance:
        return  # changed meanwhile: this was compared by other terms
    begin = stretch[0] // HOUR_US * HOUR_US
    counted = [[hour // 1000, *counts] for hour, counts in found.hours.items()]
    left = [hour for hour in fresh.hours if not begin <= hour[0] * 1000 < stretch[1]]
    fresh.hours = sorted([*left, *counted])
    fresh.columns = output.columns
    if forward:
        fresh.compared_to = moment_us(stretch[1])
    fresh.dirty = without([(a, b) for a, b in fresh.dirty], (begin, stretch[1]))
    fresh.save(update_fields=["hours", "columns", "compared_to", "dirty"])
    gone, _ = fresh.differing.filter(hour_us__gte=begin, hour_us__lt=stretch[1]).delete()
    DifferingHour.objects.bulk_create(
        DifferingHour(output=fresh, hour_us=hour, groups=_as_json(groups))
        for hour, groups in found.differing.items()
    )
    if gone or found.differing:
        _add_up(fresh)
    lifecycle.tell(output.replay, compared_ms=epoch_ms(now))


def _add_up(output: ReplayOutput) -> None:
    """The kinds of all hours; what was accepted stays accepted."""
    hours = output.differing.values_list("groups", flat=True)
    groups = added_up(_from_json(kept) for kept in hours.iterator())
    before = {_kind(one): one for one in output.differences.all()}
    for kind, group in groups.items():
        verdict, fields = kind
        one = before.pop(kind, None)
        one = one or Difference(output=output, verdict=verdict, fields=list(fields))
        one.rows, one.first_seen = group.rows, moment_us(group.first_us)
        one.examples = list(group.examples)
        # Not what people write: somebody may accept it just now.
        one.save(update_fields=COUNTED if one.pk else None)
    output.differences.filter(pk__in=[one.pk for one in before.values()]).delete()


def _kind(one: Difference) -> Kind:
    return Verdict(one.verdict), tuple(one.fields)


def _as_json(groups: Groups) -> list[list[Any]]:
    return [
        [verdict, list(fields), group.rows, group.first_us, [*map(_plain, group.examples)]]
        for (verdict, fields), group in groups.items()
    ]


def _from_json(kept: Iterable[list[Any]]) -> Groups:
    return {
        (Verdict(verdict), tuple(fields)): Group(rows, first_us, tuple(examples))
        for verdict, fields, rows, first_us, examples in kept
    }


def _plain(example: Example) -> Example:
    """An example as JSON has it."""
    return {key: _value(value) for key, value in example.items()}


def _value(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(key): _value(each) for key, each in value.items()}
        case datetime():
            return {"ms": epoch_ms(value if value.tzinfo else value.replace(tzinfo=UTC))}
        case _:
            return str(value)


def count(output: ReplayOutput, verdict: Verdict) -> int:
    """How many rows of an output have that verdict."""
    at = list(Verdict).index(verdict) + 1
    return sum(hour[at] for hour in output.hours)
