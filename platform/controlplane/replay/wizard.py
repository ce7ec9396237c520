"""A replay that is being planned: what was chosen so far, and what each choice means.

    start ─▶ code ─▶ sinks ─▶ restore ─▶ review ─▶ start_replay

Nothing is stored before it starts: the choices travel in the address.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from controlplane.access.errors import Refused, invalid
from controlplane.backends.contract import RestoreRow
from controlplane.jobs.models import Job, JobVersion
from controlplane.moments import epoch_ms
from controlplane.replay.actions import AS_EVER, check_until
from controlplane.replay.catching_up import back_text, rule_text
from controlplane.replay.limits import Limit
from controlplane.replay.models import Replay
from controlplane.replay.positions import Positions
from controlplane.replay.preflight import preflight
from controlplane.replay.tuning import Tuning, tuning_of
from controlplane.snapshots.catalogue import CatalogueRow
from controlplane.snapshots.models import Savepoint

STEPS = ("start", "code", "sinks", "restore", "review")
ORDER = ("incompatible", "missing_input", "dropped", "migrates", "new", "restored")
"""Problems first."""
CONSENTS = {"dropped": "drop", "missing_input": "accept"}
"""What can be agreed to, and how the address says that it was."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a new replay would be."""

    savepoint: Savepoint
    version: JobVersion
    parallelism: int
    limit: Limit
    until: datetime | None
    """Event time at which it ends."""
    discards: bool
    drop: tuple[str, ...]
    """State that may be left behind: uid, or uid/state."""
    accept: tuple[str, ...] = ()
    """Sources that may go on without input which is not there any more, by uid."""
    positions: Positions = field(default_factory=dict)
    """Where sources begin instead of at the savepoint, by uid."""
    tuning: Tuning = AS_EVER
    """When it has caught up, and how long it can be rolled back."""

    def check(self) -> None:
        """Refuse an end that lies before the beginning."""
        check_until(self.savepoint, self.until)

    @property
    def beginnings(self) -> list[tuple[str, int, str]]:
        """Every source with the number of its splits and where it begins; empty: the savepoint."""
        known = self.savepoint.source_positions
        return [(uid, len(known[uid]), self.positions.get(uid, "")) for uid in sorted(known)]

    @property
    def caught_up(self) -> str:
        """When it has caught up, in words."""
        return rule_text(self.tuning)

    @property
    def back(self) -> str:
        """How long it can be rolled back, in words."""
        return back_text(self.tuning)

    @property
    def command(self) -> str:
        """The same as a command."""
        job = self.savepoint.job.name
        words = ["headwater replay start", job, str(self.savepoint.pk), str(self.version.number)]
        words += ["-p", str(self.parallelism)]
        if text := str(self.limit):
            words += ["--limit", text]
        if self.until is not None:
            words += ["--until", f"{self.until:%Y-%m-%dT%H:%M:%SZ}"]
        words += ["--dry-run"] if self.discards else []
        words += _terms(self.tuning)
        words += [f"--begin {shlex.quote(f'{uid}={at}')}" for uid, at in self.positions.items()]
        words += [f"--drop {key}" for key in self.drop]
        return " ".join([*words, *(f"--accept-missing-input {uid}" for uid in self.accept)])

    def again_ms(self, live_ms: int | None) -> int | None:
        """Event time from the savepoint to where the live job is."""
        start = epoch_ms(self.savepoint.event_time)
        return None if start is None or live_ms is None else max(0, live_ms - start)


def plan_of(replay: Replay) -> Plan:
    """A plan like that of a replay, without what was agreed to: a new one asks anew."""
    return Plan(
        savepoint=replay.savepoint,
        version=replay.version,
        parallelism=replay.parallelism,
        limit=replay.limit,
        until=replay.until,
        discards=replay.discards,
        drop=(),
        positions=replay.positions,
        tuning=tuning_of(replay),
    )


def _terms(tuning: Tuning) -> list[str]:
    """What is set otherwise than it is by itself, as options of the command."""
    asked = (
        ("--within", tuning.level_within_s, AS_EVER.level_within_s),
        ("--for", tuning.level_for_s, AS_EVER.level_for_s),
        ("--back-days", tuning.back_days, AS_EVER.back_days),
    )
    return [f"{name} {value:.15g}" for name, value, usual in asked if value not in {usual, None}]


@dataclass(frozen=True, slots=True)
class RestoreLine:
    """What becomes of one operator, or of one of its states."""

    row: RestoreRow
    agreed: bool
    """Whether a person has said that it may be left behind."""

    @property
    def key(self) -> str:
        """How that is said: uid, or uid/state."""
        return f"{self.row.uid}/{self.row.state}" if self.row.state else self.row.uid

    @property
    def consent(self) -> str:
        """The name of the choice that agrees to it: drop or accept; empty when none is needed."""
        return CONSENTS.get(self.row.outcome, "")


@dataclass(frozen=True, slots=True)
class Restore:
    """What a plan would restore."""

    lines: tuple[RestoreLine, ...]
    refusals: tuple[str, ...]
    """Why it cannot start, whatever is agreed to."""

    @property
    def waiting(self) -> list[RestoreLine]:
        """What somebody has to agree to first."""
        return [line for line in self.lines if line.consent and not line.row.allowed]

    @property
    def lost(self) -> list[RestoreLine]:
        """State that somebody has to agree to leave behind."""
        return [line for line in self.waiting if line.consent == "drop"]

    @property
    def gone(self) -> list[RestoreLine]:
        """Sources that somebody has to agree to go on without input."""
        return [line for line in self.waiting if line.consent == "accept"]

    @property
    def asks(self) -> list[RestoreLine]:
        """What is lost, with or without consent."""
        return [line for line in self.lines if line.consent]

    @property
    def ok(self) -> bool:
        """Whether it can start."""
        return not self.refusals and not self.waiting

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many of each outcome, problems first."""
        found = [line.row.outcome for line in self.lines]
        return [(name, found.count(name)) for name in ORDER if name in found]


def restore_at_start(job: Job, version: JobVersion, savepoint: Savepoint | None) -> Restore | None:
    """What a start of the job itself would restore; None when there is nothing to compare with."""
    if savepoint is None:
        return None
    subtasks = int(job.settings.get("parallelism", 1))
    return restore_of(Plan(savepoint, version, subtasks, Limit(), None, discards=False, drop=()))


def restore_of(plan: Plan) -> Restore:
    """Ask the engine, which builds the graph for it; nothing is started."""
    try:
        found = preflight(
            plan.savepoint,
            plan.version,
            plan.parallelism,
            plan.drop,
            plan.accept,
            plan.positions,
        )
    except Refused as refused:
        return Restore((), (refused.message,))
    rows = sorted(found.rows, key=lambda row: ORDER.index(row.outcome))
    lines = tuple(RestoreLine(row, _agreed(row, plan)) for row in rows)
    wrong = [row.sentence for row in rows if not row.allowed and row.outcome not in CONSENTS]
    if not found.ok and all(row.allowed for row in rows):
        wrong = list(found.refusals)
    return Restore(lines, tuple(wrong))


def _agreed(row: RestoreRow, plan: Plan) -> bool:
    if row.outcome == "missing_input":
        return row.uid in plan.accept
    return row.uid in plan.drop or f"{row.uid}/{row.state}" in plan.drop


def savepoint_before(
    job: Job, rows: Collection[CatalogueRow], at: datetime, *, by_event_time: bool
) -> Savepoint:
    """The last usable savepoint at or before a time. Raises Refused when there is none."""
    known = [(_when(row, by_event_time=by_event_time), row) for row in rows]
    times = [(when, row.number, row) for when, row in known if when is not None]
    before = [one for one in times if one[0] <= at]
    if before:
        return max(before)[2].savepoint
    first = min(times, default=None)
    if first is None:
        msg = f"no savepoint of {job.name} knows its event time: choose one by when it was taken"
        raise invalid(msg, "at")
    msg = (
        f"no savepoint of {job.name} is from before {at:%Y-%m-%d %H:%M:%S} UTC: the first is of "
        f"{first[0]:%Y-%m-%d %H:%M:%S}; choose a later time, or start from it"
    )
    raise invalid(msg, "at")


def _when(row: CatalogueRow, *, by_event_time: bool) -> datetime | None:
    return row.savepoint.event_time if by_event_time else row.taken_at
