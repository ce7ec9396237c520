"""The failures of a job as its page shows them: causes, how often, where, and what followed.

    RunFailure ─▶ FailureHistory ─▶ Cause, one per fingerprint ─▶ Occurrence, the newest of it

Units    points in time are epoch ms, lengths of time ms.
Cost     four queries, however many failures there are; of a cause the newest trace is read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db.models import Count, Max, Min, Q, QuerySet

from controlplane.jobs.models import Job, RunFailure
from controlplane.jobs.traces import Stretch, folded
from controlplane.metrics.contract import HOUR_MS
from controlplane.moments import epoch_ms, moment, now_ms

SPANS: dict[str, int | None] = {
    "1h": HOUR_MS,
    "24h": 24 * HOUR_MS,
    "7d": 7 * 24 * HOUR_MS,
    "30d": 30 * 24 * HOUR_MS,
    "all": None,
}
CAUSES = 50
"""More causes than anybody reads; a word in the filter finds the others."""
READ = 2_000
"""Newest failures that are counted by time and listed."""
LISTED, LISTED_ALONE = 8, 200
"""Occurrences below a cause; below one that is shown alone."""
BARS = 48
EXPORTED = 10_000
_ATTEMPT = re.compile(r" - execution #\d+$")

DOMAINS = {
    "user": "in the job's own code",
    "external": "outside of the job",
    "internal": "in the engine",
}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One failure."""

    row: RunFailure

    @property
    def at_ms(self) -> int:
        """When."""
        return epoch_ms(self.row.at)

    @property
    def took_ms(self) -> int | None:
        """From the failure until state was restored."""
        if self.row.restarted_at is None:
            return None
        return epoch_ms(self.row.restarted_at) - self.at_ms

    @property
    def replay(self) -> str:
        """Name of the replay that failed; empty for the job itself."""
        replay = getattr(self.row.run, "replay", None)
        return replay.name if replay else ""


@dataclass(frozen=True, slots=True)
class Cause:
    """Failures that differ in values only."""

    fingerprint: str
    count: int
    first_ms: int
    last_ms: int
    newest: Occurrence
    """The latest, with its trace and its echoes."""
    listed: tuple[Occurrence, ...]
    bars: tuple[int, ...]
    """How many in each part of the time shown."""
    tasks: tuple[str, ...]
    task_managers: tuple[str, ...]

    @property
    def domain(self) -> str:
        """Whose fault it is, in words."""
        return DOMAINS.get(self.newest.row.domain, "")

    @property
    def trace(self) -> tuple[Stretch, ...]:
        """The newest traceback, folded; a line that only says the sentence again is none."""
        trace = self.newest.row.trace.strip()
        return folded(trace) if "\n" in trace else ()

    @property
    def unlisted(self) -> int:
        """How many more there are."""
        return self.count - len(self.listed)


@dataclass(frozen=True, slots=True)
class FailureHistory:
    """All of it."""

    span: str
    words: str
    from_ms: int
    to_ms: int
    total: int
    causes: tuple[Cause, ...]
    more_causes: int
    kept: int
    """Failures of this job that are kept at all, whatever the filter."""
    restart_ms: tuple[int, ...]
    """How long known restarts took, shortest first."""

    @property
    def last(self) -> Cause | None:
        """The cause of the latest failure."""
        return self.causes[0] if self.causes else None

    @property
    def typical_restart_ms(self) -> float | None:
        """Half of the restarts were faster."""
        return median(self.restart_ms) if self.restart_ms else None

    @property
    def longest_restart_ms(self) -> int | None:
        """The slowest one."""
        return self.restart_ms[-1] if self.restart_ms else None


def failure_history(job: Job, span: str, words: str, cause: str = "") -> FailureHistory:
    """Why a job failed in the last `span`, of what contains `words`; or one cause alone."""
    to_ms = now_ms()
    rows = _matching(job, span, words, to_ms)
    if cause:
        rows = rows.filter(fingerprint=cause)
    counted = _counted(rows)
    shown = counted[:CAUSES]
    listed = list(
        rows.select_related("run__version", "run__replay").defer("trace", "echoes")[:READ]
    )
    from_ms = _from_ms(span, to_ms, [epoch_ms(one["first"]) for one in counted])
    times = sorted(took for row in listed if (took := Occurrence(row).took_ms) is not None)
    return FailureHistory(
        span=span,
        words=words,
        from_ms=from_ms,
        to_ms=to_ms,
        total=sum(one["count"] for one in counted),
        causes=tuple(_causes(shown, listed, (from_ms, to_ms), LISTED_ALONE if cause else LISTED)),
        more_causes=len(counted) - len(shown),
        kept=RunFailure.objects.filter(run__job=job).count(),
        restart_ms=tuple(times),
    )


def failures(job: Job, span: str, words: str, cause: str = "") -> QuerySet[RunFailure]:
    """The same failures one by one, newest first, with traces."""
    rows = _matching(job, span, words, now_ms()).select_related("run__version", "run__replay")
    return rows.filter(fingerprint=cause) if cause else rows


def failures_for_export(job: Job, span: str, words: str) -> Iterator[RunFailure]:
    """As many of them as a file holds."""
    yield from failures(job, span, words)[:EXPORTED].iterator(500)


def _matching(job: Job, span: str, words: str, to_ms: int) -> QuerySet[RunFailure]:
    rows = RunFailure.objects.filter(run__job=job).order_by("-at", "-id")
    length = SPANS[span]
    if length is not None:
        rows = rows.filter(at__gte=moment(to_ms - length))
    for word in words.split():
        places = ("name", "sentence", "task", "operator", "task_manager")
        found = Q()
        for place in places:
            found |= Q(**{f"{place}__icontains": word})
        rows = rows.filter(found)
    return rows


def _counted(rows: QuerySet[RunFailure]) -> list[dict[str, Any]]:
    grouped = rows.order_by().values("fingerprint")
    found = grouped.annotate(
        count=Count("id"), first=Min("at"), last=Max("at"), newest=Max("id")
    ).order_by("-last", "fingerprint")
    return [dict(one) for one in found]


def _from_ms(span: str, to_ms: int, firsts: Sequence[int]) -> int:
    length = SPANS[span]
    return to_ms - length if length is not None else min(firsts, default=to_ms - HOUR_MS)


def _causes(
    counted: Sequence[dict[str, Any]],
    listed: Sequence[RunFailure],
    stretch: tuple[int, int],
    at_most: int,
) -> Iterator[Cause]:
    by_cause: defaultdict[str, list[RunFailure]] = defaultdict(list)
    for row in listed:
        by_cause[row.fingerprint].append(row)
    wanted = [
        rows[0].pk if (rows := by_cause[one["fingerprint"]]) else one["newest"] for one in counted
    ]
    whole = RunFailure.objects.select_related("run__version", "run__replay").in_bulk(wanted)
    for one, pk in zip(counted, wanted, strict=True):
        rows = by_cause[one["fingerprint"]]
        yield Cause(
            fingerprint=one["fingerprint"],
            count=one["count"],
            first_ms=epoch_ms(one["first"]),
            last_ms=epoch_ms(one["last"]),
            newest=Occurrence(whole[pk]),
            listed=tuple(map(Occurrence, rows[:at_most])),
            bars=_bars(rows, stretch),
            tasks=tuple(sorted({_ATTEMPT.sub("", row.task) for row in rows if row.task})),
            task_managers=tuple(sorted({row.task_manager for row in rows if row.task_manager})),
        )


def _bars(rows: Sequence[RunFailure], stretch: tuple[int, int]) -> tuple[int, ...]:
    from_ms, to_ms = stretch
    width = max(1, to_ms - from_ms)
    counts = [0] * BARS
    for row in rows:
        counts[min(BARS - 1, max(0, (epoch_ms(row.at) - from_ms) * BARS // width))] += 1
    return tuple(counts)
