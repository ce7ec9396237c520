"""Looks at the outputs of a replay while it runs: each compares what was closed since the last one.

    look 1   both sides have reached  a
    look 2   compares up to a         both have reached  b
    look 3   compares a to b          …

1. List the files; of those that are new or changed, read the time column, and note their spans.
2. Hours that were compared and whose files have changed since are to be compared again.
3. Compare those, and then what is newly closed, a day of event time after the other, until the turn
   is over; each is kept at once, in the place of what was kept of its hours.

Order      a window counts as complete when both sides had shown rows of it, or of a later one, one
           look ago: files of one checkpoint come into view within moments, looks are seconds apart.
           What comes later all the same changes a file, and its hours are compared again.
Guarantee  every row counts once, also when two workers look at the same time or are killed. Points
           of the series store that change in an hour that was compared are not noticed.
Cost       a look without news lists the folders and reads no file; memory is that of `compare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic

import polars as pl
from django.db import transaction

from controlplane.moments import epoch_us, moment_us
from controlplane.replay.comparison.compare import HOUR_US, compare, numbers
from controlplane.replay.comparison.found import Found, total
from controlplane.replay.comparison.keeping import keep
from controlplane.replay.comparison.sides import Files, Points, side_of
from controlplane.replay.comparison.stretches import Stretch, pieces, whole_hours
from controlplane.replay.models import Replay, ReplayOutput, SeenFile
from controlplane.replay.outputs.handing import terms_of
from controlplane.replay.outputs.tables import OutputUnreadable
from controlplane.replay.outputs.targets import POINTS

COMPARED = (Replay.Status.REPLAYING, Replay.Status.CAUGHT_UP)
AT_LEAST = timedelta(seconds=4)
"""Between two looks at one output: in less, files of a checkpoint may not all be in view."""
TURN_S = 10.0
"""After so long no further day is begun: tasks are to be short."""
HOURS_AT_A_TIME = 24


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look has read."""

    files: int = 0
    """Whose time column was read, because they were new or changed."""
    stretches: tuple[Stretch, ...] = ()
    """That were compared."""
    rows: int = 0


@dataclass(frozen=True, slots=True)
class _Sides:
    old: Files | Points
    new: Files | Points

    @property
    def both(self) -> tuple[Files | Points, Files | Points]:
        return self.old, self.new

    @property
    def reached(self) -> int | None:
        """How far both are; None while one has nothing."""
        times = [side.newest for side in self.both]
        known = [time for time in times if time is not None]
        return min(known) if len(known) == len(times) else None


def look_at_all(now: datetime) -> None:
    """Look at the outputs of every replay that goes on."""
    going_on = ReplayOutput.objects.filter(replay__status__in=COMPARED, why_not="")
    for output in going_on.select_related("replay"):
        look_at(output, now)


def look_at(output: ReplayOutput, now: datetime) -> Looked | None:
    """Compare what is to be compared; None when somebody else looks, or it was just now."""
    if output.compared_at is not None and now - output.compared_at < AT_LEAST:
        return None
    same = ReplayOutput.objects.filter(pk=output.pk, compared_at=output.compared_at)
    if not same.update(compared_at=now):
        return None
    try:
        return _look(output, now)
    except (OutputUnreadable, OSError, pl.exceptions.PolarsError) as error:
        line = str(error).strip().splitlines()[0]
        told = f"{output.place} and {output.beside} cannot be read: {line}"
        ReplayOutput.objects.filter(pk=output.pk).update(trouble=told[:500])
        return None


def _look(output: ReplayOutput, now: datetime) -> Looked:
    sides = _Sides(side_of(output, is_old=True), side_of(output, is_old=False))
    closed = epoch_us(output.closed_to)
    _note(output, sides)
    files = sum(len(side.news) for side in sides.both if isinstance(side, Files))
    first = _first(output, sides.new)
    if sides.reached is None or first is None:
        return Looked(files)
    done: list[Stretch] = []
    rows, over = 0, monotonic() + TURN_S
    for stretch, forward in _due(output, first, closed):
        found = _compared(output, sides, stretch)
        keep(output, stretch, found, now, forward=forward)
        done.append(stretch)
        rows += found.compared
        if monotonic() > over:
            break
    return Looked(files, tuple(done), rows)


def _first(output: ReplayOutput, new: Files | Points) -> int | None:
    """The event time of the savepoint; of points, which time they have is the author's choice, so
    the first of the replay.
    """
    return new.first if output.kind == POINTS else epoch_us(output.replay.event_time_start)


@transaction.atomic
def _note(output: ReplayOutput, sides: _Sides) -> None:
    """Keep what was listed, how far both are, and what is to be compared again."""
    fresh = ReplayOutput.objects.select_for_update().get(pk=output.pk)
    compared = epoch_us(fresh.compared_to)
    for side in sides.both:
        if not isinstance(side, Files):
            continue
        SeenFile.objects.filter(pk__in=[one.pk for one in side.gone]).delete()
        SeenFile.objects.bulk_create(side.news, batch_size=500)
        if compared is not None:
            fresh.dirty = whole_hours([*_stretches(fresh.dirty), *side.changed], 0, compared)
    if sides.reached is not None:
        fresh.closed_to = moment_us(sides.reached)
    fresh.trouble = ""
    fresh.save(update_fields=["dirty", "closed_to", "trouble"])
    output.dirty, output.compared_to = fresh.dirty, fresh.compared_to


def _due(output: ReplayOutput, first: int, closed: int | None) -> Iterator[tuple[Stretch, bool]]:
    """What is to be compared, and whether that was not compared before."""
    compared = epoch_us(output.compared_to)
    for stretch in whole_hours(_stretches(output.dirty), first, compared or first):
        for piece in pieces(stretch, HOURS_AT_A_TIME):
            yield piece, False
    begin = first if compared is None else max(first, compared // HOUR_US * HOUR_US)
    if closed is not None and closed + 1 > (compared or first):
        for piece in pieces((begin, closed + 1), HOURS_AT_A_TIME):
            yield piece, True


def _compared(output: ReplayOutput, sides: _Sides, stretch: Stretch) -> Found:
    terms = terms_of(output)
    old, new = (side.table(*stretch) for side in sides.both)
    output.columns = numbers(old, new, terms)
    return total(compare(old, new, terms, *stretch))


def _stretches(kept: Iterable[Iterable[int]]) -> list[Stretch]:
    """As they were before they were JSON."""
    return [(begin, end) for begin, end in kept]
