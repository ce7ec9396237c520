"""The catalogue of savepoints as pages show it: each with its uses and what becomes of it.

Cost     a fixed number of queries, however many savepoints and jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from controlplane.jobs.models import Job
from controlplane.moments import epoch_ms
from controlplane.snapshots.inputs import KnownInput, known_input
from controlplane.snapshots.keeping import DECIDABLE, candidates, decidable, rules_of
from controlplane.snapshots.models import (
    ENDED,
    Savepoint,
    SavepointPolicy,
    StorageScan,
    StrayFolder,
)
from controlplane.snapshots.retention import Rules, Verdict, decide
from controlplane.snapshots.usable import why_unusable
from controlplane.snapshots.uses import Use, Uses, uses_of

SHOWN = 200
WIDE = ("contents", "source_positions")
"""Columns that a list does not show."""


@dataclass(frozen=True, slots=True)
class CatalogueRow:
    """One savepoint."""

    savepoint: Savepoint
    uses: tuple[Use, ...]
    verdict: Verdict | None
    """What retention says; None of what it is not about."""

    @property
    def number(self) -> int:
        """How people call it."""
        return self.savepoint.pk

    @property
    def usable(self) -> bool:
        """Whether a job can be started from it."""
        return not why_unusable(self.savepoint)

    @property
    def event_ms(self) -> int | None:
        """Its event-time position."""
        return epoch_ms(self.savepoint.event_time)

    @property
    def taken_at(self) -> datetime:
        """When its state was saved; of one on its way, when it was asked for."""
        return self.savepoint.taken_at or self.savepoint.created_at

    @property
    def parent(self) -> int | None:
        """The savepoint that its run had started from."""
        run = self.savepoint.run
        return run.restored_from_id if run else None

    @property
    def marked(self) -> bool:
        """Whether it is about to be deleted, and can still be kept."""
        return self.savepoint.status == Savepoint.Status.MARKED

    @property
    def decidable(self) -> bool:
        """Whether people can still do something with it."""
        return self.savepoint.status in DECIDABLE

    @property
    def kept_because(self) -> str:
        """Why nobody may delete it; empty when somebody may."""
        if self.verdict is None or not self.verdict.keep or self.verdict.by_rule:
            return ""
        return self.verdict.reason

    @property
    def input(self) -> KnownInput:
        """Whether the input that it needs is there."""
        return known_input(self.savepoint.inputs)

    @property
    def health(self) -> str:
        """What is known of its files: whole, damaged, unreadable, missing or unverified."""
        if self.savepoint.missing_since:
            return "missing"
        return self.savepoint.verdict or "unverified"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person looks for in the catalogue."""

    words: str = ""
    origin: str = ""
    health: str = ""

    def admits(self, row: CatalogueRow) -> bool:
        """Whether a row is looked for."""
        one = row.savepoint
        text = f"{one.pk} {one.label} {one.job.name} {one.location}".lower()
        return (
            all(word in text for word in self.words.lower().split())
            and self.origin in {"", one.origin}
            and self.health in {"", row.health}
        )


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """What rules would do with one savepoint."""

    savepoint: Savepoint
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Preview:
    """What rules do with each savepoint, newest first."""

    rows: tuple[PreviewRow, ...]

    @property
    def kept(self) -> int:
        """How many stay."""
        return sum(row.verdict.keep for row in self.rows)

    @property
    def doomed(self) -> int:
        """How many would be deleted."""
        return len(self.rows) - self.kept

    @property
    def freed_bytes(self) -> int:
        """What that would free."""
        return sum(row.savepoint.size_bytes or 0 for row in self.rows if not row.verdict.keep)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Savepoints of some jobs, newest first."""

    rows: tuple[CatalogueRow, ...]
    total: int
    """How many there are, before any filter."""
    hidden: int
    """How many the filter, or the limit, leaves out."""
    marked_bytes: int
    """What marked ones will free."""
    preview: Preview
    """What the rules in force do with all of them."""


def catalogue(
    jobs: Sequence[Job],
    now: datetime,
    wanted: Wanted = Wanted(),
) -> Catalogue:
    """The catalogue of these jobs."""
    rows = _rows(jobs, now)
    shown = tuple(row for row in rows if wanted.admits(row))[:SHOWN]
    marked = sum(row.savepoint.size_bytes or 0 for row in rows if row.marked)
    decided = tuple(PreviewRow(row.savepoint, row.verdict) for row in rows if row.verdict)
    return Catalogue(shown, len(rows), len(rows) - len(shown), marked, Preview(decided))


def rows_of(jobs: Sequence[Job], now: datetime, wanted: Wanted) -> list[CatalogueRow]:
    """All rows that are looked for, newest first."""
    return [row for row in _rows(jobs, now) if wanted.admits(row)]


def one_of(savepoint: Savepoint, now: datetime) -> tuple[CatalogueRow, list[CatalogueRow]]:
    """One savepoint as the catalogue has it, and the others of its job that can be looked into."""
    rows = _rows([savepoint.job], now)
    mine = next((row for row in rows if row.number == savepoint.pk), None)
    row = replace(mine, savepoint=savepoint) if mine else CatalogueRow(savepoint, (), None)
    return row, [one for one in rows if one.decidable and one.number != savepoint.pk]


def _rows(jobs: Sequence[Job], now: datetime) -> list[CatalogueRow]:
    kept = (
        Savepoint.objects.filter(job__in=jobs)
        .exclude(status__in=ENDED)
        .select_related("job", "version", "created_by", "run")
        .defer(*WIDE, "run__plan")
        .order_by("-created_at", "-id")
    )
    found, uses = list(kept), uses_of(jobs)
    said = _verdicts(jobs, found, uses, now)
    return [CatalogueRow(one, uses.get(one.pk, ()), said.get(one.pk)) for one in found]


def _verdicts(
    jobs: Sequence[Job], found: Sequence[Savepoint], uses: Uses, now: datetime
) -> Mapping[int, Verdict]:
    policies = {one.job_id: one for one in SavepointPolicy.objects.filter(job__in=jobs)}
    by_job: dict[int, list[Savepoint]] = {}
    for one in found:
        by_job.setdefault(one.job_id, []).append(one)
    return {
        verdict.id: verdict
        for job, mine in by_job.items()
        for verdict in decide(candidates(mine, uses), rules_of(policies.get(job)), now)
    }


def preview(job: Job, rules: Rules, now: datetime) -> Preview:
    """What rules that are not in force would do."""
    rows = {one.pk: one for one in decidable(job)}
    verdicts = decide(candidates(rows.values(), uses_of([job])), rules, now)
    return Preview(tuple(PreviewRow(rows[one.id], one) for one in verdicts))


@dataclass(frozen=True, slots=True)
class Storage:
    """What was found where savepoints are kept."""

    scan: StorageScan | None
    strays: tuple[StrayFolder, ...]
    missing: tuple[Savepoint, ...]


def storage(jobs: Sequence[Job]) -> Storage:
    """Of the jobs' clusters, as far as it is about these jobs."""
    clusters = {job.cluster_id for job in jobs}
    scan = StorageScan.objects.filter(cluster__in=clusters).order_by("at").first()
    strays = StrayFolder.objects.filter(job__in=jobs).select_related("job")
    missing = Savepoint.objects.filter(job__in=jobs, missing_since__isnull=False)
    gone = missing.exclude(status__in=ENDED).select_related("job").defer(*WIDE)
    return Storage(scan, tuple(strays[:SHOWN]), tuple(gone[:SHOWN]))
