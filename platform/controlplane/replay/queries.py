"""Replays as pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from controlplane.access.lookup import operable_jobs, visible_jobs
from controlplane.jobs.models import Job, JobVersion
from controlplane.live import topics
from controlplane.live.queries import latest
from controlplane.moments import epoch_ms
from controlplane.replay.catching_up import rule_text
from controlplane.replay.compared import Comparison
from controlplane.replay.models import Replay
from controlplane.replay.sampling import percent_of
from controlplane.replay.tuning import tuning_of
from controlplane.snapshots.catalogue import SHOWN, WIDE, CatalogueRow
from controlplane.snapshots.models import Savepoint
from controlplane.snapshots.usable import usable

RESTORED = (
    Replay.Status.REPLAYING,
    Replay.Status.CAUGHT_UP,
    Replay.Status.CUTTING_OVER,
    Replay.Status.PROMOTED,
    Replay.Status.ROLLING_BACK,
    Replay.Status.ROLLED_BACK,
    Replay.Status.FINISHED,
)


@dataclass(frozen=True, slots=True)
class Phase:
    """One step of a replay's way."""

    name: str
    state: str
    """done, now, todo or failed."""
    text: str


@dataclass(frozen=True, slots=True)
class ReplayPage:
    """One replay."""

    replay: Replay
    figures: Mapping[str, Any]
    points: list[Any]
    """Of the chart; `sampling.py` says what is in one."""
    comparison: Comparison

    @property
    def topic(self) -> str:
        """Where its news come from."""
        return topics.replay(self.replay.pk)

    @property
    def status(self) -> str:
        """The database's word, which the socket only repeats."""
        return self.replay.status

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Restore, replay, catch up, review, cut over: which are done and which is under way."""
        replay, failed = self.replay, self.status == Replay.Status.FAILED
        restored = self.status in RESTORED or bool(self.points)
        caught = replay.caught_up_at is not None
        over = caught or self.status == Replay.Status.FINISHED
        ended = self.status == Replay.Status.ABANDONED
        now = "failed" if failed else "done" if ended else "now"
        return (
            Phase("Restore", "done" if restored else now, f"savepoint {replay.savepoint_id}"),
            Phase("Replay", "done" if over else now if restored else "todo", _pace(replay)),
            Phase("Catch up", "done" if caught else "todo", _level(replay)),
            _review(self.comparison, reached=caught),
            _cut_over(replay),
        )


def _level(replay: Replay) -> str:
    """When it counts as caught up, or since when it is level."""
    if replay.until is not None:
        return "never: it ends by itself"
    if replay.caught_up_at is None:
        return rule_text(tuning_of(replay))
    return f"level since {replay.level_since:%d %b %H:%M} UTC" if replay.level_since else "behind"


def _review(comparison: Comparison, *, reached: bool) -> Phase:
    """Which differences are accepted."""
    kinds, waiting = comparison.kinds, comparison.open_differences
    if not comparison.has_begun:
        return Phase("Review", "todo", "nothing compared yet")
    done = f"{kinds - waiting} of {kinds} kinds accepted" if kinds else "no differences"
    state = "todo" if not reached else "now" if waiting else "done"
    return Phase("Review", state, done)


def _pace(replay: Replay) -> str:
    """How fast it reads, and where it ends."""
    if replay.paused:
        return "paused"
    pace = replay.limit.words
    end = "" if replay.until is None else f", up to {replay.until:%d %b %Y %H:%M} UTC"
    return pace + end


def _cut_over(replay: Replay) -> Phase:
    """Whether its version has taken the place of the live one."""
    match replay.status:
        case Replay.Status.CUTTING_OVER:
            at = replay.cut_at
            text = "under way" if at is None else f"at {at:%d %b %Y %H:%M:%S} UTC"
            return Phase("Cut over", "now", text)
        case Replay.Status.PROMOTED:
            return Phase("Cut over", "done", f"version {replay.version.number} is live")
        case Replay.Status.ROLLING_BACK:
            return Phase("Cut over", "now", "rolling back")
        case Replay.Status.ROLLED_BACK:
            return Phase("Cut over", "done", "rolled back")
        case _ if replay.until is not None:
            return Phase("Cut over", "todo", "never: it ends by itself")
        case _ if replay.discards:
            return Phase("Cut over", "todo", "never: a dry run")
        case _:
            return Phase("Cut over", "todo", "when you say so")


def replay_page(replay: Replay, comparison: Comparison) -> ReplayPage:
    """One replay that the user may see."""
    return ReplayPage(replay, _figures(replay), list(replay.history), comparison)


def _figures(replay: Replay) -> dict[str, Any]:
    """What the database knows, and what was told last of one that goes on."""
    live = {} if replay.is_terminal else latest(topics.replay(replay.pk))
    return {**_stored(replay), **live}


def _stored(replay: Replay) -> dict[str, Any]:
    """What the database knows, in the words of the topic."""
    reached, live = epoch_ms(replay.event_time_now), epoch_ms(replay.live_event_time)
    return {
        "status": replay.status,
        "event_ms": reached,
        "live_ms": live,
        "delay_ms": None if reached is None or live is None else max(0, live - reached),
        "speed": replay.speed,
        "pct": percent_of(replay),
        "eta_low_s": _left_s(replay.eta_low),
        "eta_high_s": _left_s(replay.eta_high),
        "text": replay.failure or replay.note or None,
        "stalled": replay.is_stalled,
    }


def _left_s(moment: datetime | None) -> float | None:
    """Seconds until then."""
    return None if moment is None else max(0.0, (moment - timezone.now()).total_seconds())


@dataclass(frozen=True, slots=True)
class ReplayLine:
    """One replay in a list."""

    replay: Replay
    figures: Mapping[str, Any]
    may_operate: bool

    @property
    def topic(self) -> str:
        """Where its news come from."""
        return topics.replay(self.replay.pk)


def replay_lines(user: User, job: Job | None = None, limit: int = 100) -> tuple[ReplayLine, ...]:
    """The newest replays of a job, or of every job that the user may see."""
    found = Replay.objects.filter(job__in=[job.pk] if job else visible_jobs(user))
    rows = found.select_related("job", "version", "savepoint", "created_by").order_by("-number")
    mine = operable_jobs(user)
    return tuple(ReplayLine(one, _figures(one), one.job_id in mine) for one in rows[:limit])


@dataclass(frozen=True, slots=True)
class ReplayChoices:
    """What a new replay can start from."""

    job: Job
    rows: tuple[CatalogueRow, ...]
    """Usable savepoints, newest first."""
    versions: tuple[JobVersion, ...]
    savepoint: Savepoint | None
    version: JobVersion | None


def replay_choices(job: Job, savepoint_id: int | None, number: int | None) -> ReplayChoices:
    """Usable savepoints and versions, with the ones asked for, or the newest, chosen."""
    found = usable(job.savepoints.all()).defer(*WIDE).select_related("job", "version")
    newest = found.order_by("-created_at", "-id")[:SHOWN]
    rows = tuple(CatalogueRow(one, (), None) for one in newest)
    versions = tuple(job.versions.select_related("created_by").order_by("-number"))
    picked = next((row.savepoint for row in rows if row.number == savepoint_id), None)
    version = next((one for one in versions if one.number == number), None)
    return ReplayChoices(
        job,
        rows,
        versions,
        picked or next((row.savepoint for row in rows), None),
        version or next(iter(versions), None),
    )
