"""Savepoints, checkpoints and deploys on one axis, of wall-clock time or of event time.

A mark has its place in percent of the axis, so that a page can draw it in any width. On event time
only what knows its position is drawn: savepoints, and runs that started from one.

A band is a stretch of it: up to where a look found that input is gone, and, when one savepoint is
chosen, what is read again from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from controlplane.jobs.models import Job, Run
from controlplane.snapshots.catalogue import CatalogueRow
from controlplane.snapshots.models import Checkpoint

STEPS_S = (60, 300, 900, 3_600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600)
LONG_STEPS_S = (2_629_800, 7_889_400, 31_557_600)
TICKS = 9
"""At most; a narrow page still has room for these."""
CHECKPOINTS = 300


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing on the axis."""

    place: float
    """0 to 100."""
    lane: str
    tone: str
    title: str
    href: str = ""
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of the axis."""

    place: float
    width: float
    """Both in percent of the axis."""
    kind: str
    """gone or again."""
    words: str


@dataclass(frozen=True, slots=True)
class Axis:
    """Marks in lanes, and where the ticks are."""

    by_event_time: bool
    marks: tuple[Mark, ...]
    ticks: tuple[tuple[float, str], ...]
    unplaced: int
    """Savepoints that know no event time."""
    bands: tuple[Band, ...] = ()

    def lane(self, name: str) -> list[Mark]:
        """The marks of one lane."""
        return [mark for mark in self.marks if mark.lane == name]

    @property
    def lanes(self) -> list[tuple[str, int, list[Mark]]]:
        """Each with its name and the height that it is drawn at, from the top."""
        names = ["Savepoints", *([] if self.by_event_time else ["Checkpoints"]), "Deploys"]
        return [(name, 14 + 22 * place, self.lane(name)) for place, name in enumerate(names)]


def axis(
    job: Job,
    rows: Sequence[CatalogueRow],
    now: datetime,
    *,
    by_event_time: bool,
    to: Callable[[int], str] = "#sp-{}".format,
    reach: datetime | None = None,
    chosen: int | None = None,
) -> Axis:
    """The axis of one job; from the first mark to the last, or to now. A savepoint leads `to`.

    `reach`: event time of the live job, up to which an axis of event time goes then; `chosen`:
    the savepoint from which on input is read again.
    """
    found = [*_savepoints(rows, by_event_time, to), *_deploys(job, by_event_time)]
    if not by_event_time:
        found += _checkpoints(job)
    end = reach if by_event_time else now
    times = [at for at, _ in found] + ([] if end is None else [end])
    if not found:
        return Axis(by_event_time, (), (), len(rows))
    first, last = min(times), max(times)
    span = max(last - first, timedelta(seconds=1))
    marks = tuple(replace(mark, place=_share(at, first, span)) for at, mark in found)
    unplaced = sum(row.event_ms is None for row in rows) if by_event_time else 0
    known = [(row, at) for row in rows if (at := _at(row, by_event_time)) is not None]
    bands = tuple(_band(*one, first, span) for one in _stretches(known, chosen, end))
    return Axis(by_event_time, marks, tuple(_ticks(first, span)), unplaced, bands)


def _stretches(
    known: Sequence[tuple[CatalogueRow, datetime]], chosen: int | None, end: datetime | None
) -> Iterator[tuple[datetime | None, datetime, str, str]]:
    """Each with its beginning (None: that of the axis) and its end."""
    gone = [at for row, at in known if row.input.state == "gone"]
    if gone:
        words = f"up to {max(gone):%Y-%m-%d %H:%M} UTC input was gone when somebody looked"
        yield None, max(gone), "gone", words
    for row, at in known:
        if row.number == chosen and end is not None and at < end:
            yield at, end, "again", f"read again from savepoint {chosen} on"


def _band(
    since: datetime | None,
    until: datetime,
    kind: str,
    words: str,
    first: datetime,
    span: timedelta,
) -> Band:
    low = 0.0 if since is None else _share(since, first, span)
    return Band(low, round(_share(until, first, span) - low, 2), kind, words)


def _share(at: datetime, first: datetime, span: timedelta) -> float:
    # Marks at the very ends would be cut off.
    return round(1 + 98 * ((at - first) / span), 2)


def _at(row: CatalogueRow, by_event: bool) -> datetime | None:
    return row.savepoint.event_time if by_event else row.taken_at


def _savepoints(
    rows: Iterable[CatalogueRow], by_event: bool, to: Callable[[int], str]
) -> Iterator[tuple[datetime, Mark]]:
    for row in rows:
        one = row.savepoint
        if (at := _at(row, by_event)) is None:
            continue
        bad = one.status == "failed" or row.health in {"damaged", "missing"}
        tone = "crit" if bad else "idle" if row.marked else "save"
        label = f", {one.label}" if one.label else ""
        words = f"Savepoint {one.pk}{label}, {at:%Y-%m-%d %H:%M:%S} UTC, {row.health}"
        yield at, Mark(0, "Savepoints", tone, words, to(one.pk), row.health == "unverified")


def _checkpoints(job: Job) -> Iterator[tuple[datetime, Mark]]:
    rows = Checkpoint.objects.filter(run__job=job, run__purpose="live", kind="checkpoint")
    columns = "trigger_at", "status", "engine_checkpoint_id"
    newest = rows.order_by("-trigger_at").values_list(*columns)
    for at, status, number in newest[:CHECKPOINTS]:
        tone = "crit" if status == "failed" else "idle"
        yield at, Mark(0, "Checkpoints", tone, f"Checkpoint {number}, {status.replace('_', ' ')}")


def _deploys(job: Job, by_event: bool) -> Iterator[tuple[datetime, Mark]]:
    runs = Run.objects.filter(job=job, purpose=Run.Purpose.LIVE).defer("plan")
    for run in runs.select_related("version", "restored_from").order_by("-pk")[:100]:
        start = run.restored_from
        at = (start.event_time if start else None) if by_event else run.started_at
        if at is not None:
            words = f"Run {run.pk}, version {run.version.number}, {at:%Y-%m-%d %H:%M:%S} UTC"
            yield at, Mark(0, "Deploys", "ink", words)


def _ticks(first: datetime, span: timedelta) -> Iterator[tuple[float, str]]:
    seconds = span.total_seconds()
    steps = (*STEPS_S, *LONG_STEPS_S)
    step = next((one for one in steps if seconds / one <= TICKS), steps[-1])
    moment = (first.timestamp() // step + 1) * step
    while moment <= first.timestamp() + seconds:
        at = datetime.fromtimestamp(moment, UTC)
        words = f"{at:%H:%M}" if step < 86_400 and at.hour + at.minute else f"{at.day} {at:%b}"
        if seconds > 300 * 86_400:
            words = f"{at:%b %Y}"
        yield round(1 + 98 * (moment - first.timestamp()) / seconds, 2), words
        moment += step
