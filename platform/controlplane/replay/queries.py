"""Replays as pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from controlplane.access.lookup import visible_jobs
from controlplane.jobs.models import Job, JobVersion
from controlplane.live import topics
from controlplane.live.queries import latest
from controlplane.moments import epoch_ms
from controlplane.replay.models import Replay
from controlplane.snapshots.models import Savepoint

RESTORED = (Replay.Status.REPLAYING, Replay.Status.CAUGHT_UP, Replay.Status.FINISHED)


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
    """[wall ms, event ms of the replay, event ms of the live job]."""

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
        """Restore, replay, caught up: which are done and which is under way."""
        replay, failed = self.replay, self.status == Replay.Status.FAILED
        restored = self.status in RESTORED or bool(self.points)
        caught = replay.caught_up_at is not None
        ended = self.status == Replay.Status.ABANDONED
        now = "failed" if failed else "done" if ended else "now"
        return (
            Phase("Restore", "done" if restored else now, f"savepoint {replay.savepoint_id}"),
            Phase("Replay", "done" if caught else now if restored else "todo", "at full speed"),
            Phase("Caught up", "done" if caught else "todo", "beside the live job"),
        )


def replay_page(replay: Replay) -> ReplayPage:
    """One replay that the user may see."""
    live = {} if replay.is_terminal else latest(topics.replay(replay.pk))
    return ReplayPage(replay, {**_stored(replay), **live}, list(replay.history))


def _stored(replay: Replay) -> dict[str, Any]:
    """What the database knows, in the words of the topic."""
    return {
        "status": replay.status,
        "event_ms": epoch_ms(replay.event_time_now),
        "live_ms": epoch_ms(replay.live_event_time),
        "speed": replay.speed,
        "text": replay.failure or replay.note or None,
    }


@dataclass(frozen=True, slots=True)
class ReplayLine:
    """One replay in a list."""

    replay: Replay
    figures: Mapping[str, Any]

    @property
    def topic(self) -> str:
        """Where its news come from."""
        return topics.replay(self.replay.pk)


def replay_lines(user: User, job: Job | None = None, limit: int = 100) -> tuple[ReplayLine, ...]:
    """The newest replays of a job, or of every job that the user may see."""
    found = Replay.objects.filter(job__in=[job.pk] if job else visible_jobs(user))
    rows = found.select_related("job", "version", "savepoint", "created_by").order_by("-number")
    return tuple(ReplayLine(one, replay_page(one).figures) for one in rows[:limit])


@dataclass(frozen=True, slots=True)
class ReplayChoices:
    """What a new replay can start from."""

    job: Job
    savepoints: tuple[Savepoint, ...]
    versions: tuple[JobVersion, ...]
    savepoint: Savepoint | None
    version: JobVersion | None
    parallelism: int


def replay_choices(job: Job, savepoint_id: int | None, number: int | None) -> ReplayChoices:
    """Usable savepoints and versions, with the ones asked for, or the newest, chosen."""
    usable = job.savepoints.filter(status=Savepoint.Status.COMPLETED).select_related("version")
    savepoints = tuple(usable.order_by("-created_at", "-id")[:200])
    versions = tuple(job.versions.order_by("-number"))
    picked = next((one for one in savepoints if one.pk == savepoint_id), None)
    version = next((one for one in versions if one.number == number), None)
    return ReplayChoices(
        job,
        savepoints,
        versions,
        picked or next(iter(savepoints), None),
        version or next(iter(versions), None),
        int(job.settings.get("parallelism", 1)),
    )
