"""Looks at the outputs of a replay while it runs: each compares what was closed since the last one.

    look 1   both sides have reached  a
    look 2   compares up to a         both have reached  b
    look 3   compares a to b          …

Order      a window counts as complete when both sides had shown rows of it, or of a later one, one
           look ago: files of one checkpoint come into view within moments, looks are seconds apart.
Guarantee  every window is compared once, also when two workers look at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
from django.db import transaction

from controlplane.moments import epoch_ms, epoch_us, moment_us
from controlplane.replay import lifecycle
from controlplane.replay.comparison.compare import compare, newest, oldest
from controlplane.replay.comparison.found import Example, Found, Group, Kind, Verdict, total
from controlplane.replay.models import Difference, Replay, ReplayOutput
from controlplane.replay.outputs.handing import target_of, terms_of
from controlplane.replay.outputs.tables import OutputUnreadable, table_of
from controlplane.replay.outputs.targets import POINTS

COMPARED = (Replay.Status.REPLAYING, Replay.Status.CAUGHT_UP)
AT_LEAST = timedelta(seconds=4)
"""Between two looks at one output: in less, files of a checkpoint may not all be in view."""


@dataclass(frozen=True, slots=True)
class _Sides:
    old: pl.LazyFrame
    new: pl.LazyFrame
    reached: int


def look_at_all(now: datetime) -> None:
    """Look at the outputs of every replay that goes on."""
    going_on = ReplayOutput.objects.filter(replay__status__in=COMPARED, why_not="")
    for output in going_on.select_related("replay"):
        look_at(output, now)


def look_at(output: ReplayOutput, now: datetime) -> Found | None:
    """Compare what was closed at the last look; None when there was nothing, or it was just now."""
    if output.compared_at is not None and now - output.compared_at < AT_LEAST:
        return None
    try:
        sides = _sides(output)
        if sides is None:
            return None
        since = epoch_us(output.compared_to) or _first(output, sides.new)
        closed = epoch_us(output.closed_to)
        found = None
        if since is not None and closed is not None and closed >= since:
            parts = compare(sides.old, sides.new, terms_of(output), since, closed + 1)
            found = total(parts)
    except (OutputUnreadable, OSError, pl.exceptions.PolarsError) as error:
        told = f"{output.place} and {output.beside} cannot be read: {_line(error)}"
        ReplayOutput.objects.filter(pk=output.pk).update(trouble=told[:500], compared_at=now)
        return None
    return _keep(output, found, sides.reached, now)


def _sides(output: ReplayOutput) -> _Sides | None:
    """What both have written, and how far both are; None while one has nothing."""
    target, terms = target_of(output), terms_of(output)
    old, new = table_of(target, output.place), table_of(target, output.beside)
    if old is None or new is None:
        return None
    reached = [time for time in (newest(old, terms), newest(new, terms)) if time is not None]
    return _Sides(old, new, min(reached)) if len(reached) == 2 else None


def _first(output: ReplayOutput, new: pl.LazyFrame) -> int | None:
    """The event time of the savepoint; of points, which time they have is the author's choice, so
    the first of the replay.
    """
    if output.kind == POINTS:
        return oldest(new, terms_of(output))
    return epoch_us(output.replay.event_time_start)


@transaction.atomic
def _keep(output: ReplayOutput, found: Found | None, reached: int, now: datetime) -> Found | None:
    """Add what was found, unless somebody else has compared the same meanwhile."""
    fresh = ReplayOutput.objects.select_for_update().get(pk=output.pk)
    if fresh.compared_to != output.compared_to or fresh.closed_to != output.closed_to:
        return None
    if found is not None:
        fresh.hours = _hours(fresh, found)
        fresh.compared_to = moment_us((epoch_us(fresh.closed_to) or 0) + 1)
        for kind, group in found.groups.items():
            _add(fresh, kind, group)
    fresh.closed_to, fresh.compared_at, fresh.trouble = moment_us(reached), now, ""
    fresh.save()
    if found is not None and found.compared:
        lifecycle.tell(output.replay, compared_ms=epoch_ms(now))
    return found


def _hours(output: ReplayOutput, found: Found) -> list[list[int]]:
    before = Found({hour: (a, b, c, d) for hour, a, b, c, d in output.hours})
    news = Found({hour // 1000: counts for hour, counts in found.hours.items()})
    return [[hour, *counts] for hour, counts in sorted(before.plus(news).hours.items())]


def _add(output: ReplayOutput, kind: Kind, group: Group) -> None:
    verdict, fields = kind
    kept = Difference.objects.filter(output=output, verdict=verdict, fields=list(fields)).first()
    examples = tuple(_plain(example) for example in group.examples)
    made = Group(group.rows, group.first_us, examples)
    if kept is None:
        kept = Difference(output=output, verdict=verdict, fields=list(fields))
    else:
        made = Group(kept.rows, epoch_us(kept.first_seen) or 0, tuple(kept.examples)).plus(made)
    kept.rows, kept.first_seen = made.rows, moment_us(made.first_us)
    kept.examples = [*made.examples]
    kept.save()


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


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def count(output: ReplayOutput, verdict: Verdict) -> int:
    """How many rows of an output have that verdict."""
    at = list(Verdict).index(verdict) + 1
    return sum(hour[at] for hour in output.hours)
