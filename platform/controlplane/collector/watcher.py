"""Watching one engine: a look every second, from which the database, the pages and the series live.

    1  which runs are active                            database
    2  look at the engine and at those runs             network, concurrently
    3  states, checkpoints and failures are mirrored    database, one transaction
    4  figures of live runs are published               Redis
    5  samples of replays are recorded                  database
    6  points are written                               series store

Errors   an engine that is away is shown as away, and its figures as unknown. A database or Redis
         that is away for a moment costs that look, not the process.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
from asgiref.sync import sync_to_async
from django.db import DatabaseError
from django.utils import timezone

from controlplane.backends.errors import EngineAway
from controlplane.backends.models import Cluster
from controlplane.backends.sightings import EngineSighting, JobSighting
from controlplane.backends.tokens import address_of
from controlplane.backends.watch import EngineWatch
from controlplane.collector import figures, mirror
from controlplane.collector.ailing import Ailing
from controlplane.collector.board import Board
from controlplane.collector.checkpoint_notes import Told
from controlplane.collector.diagnosis import HeldBack
from controlplane.collector.mirror import RunMirror
from controlplane.collector.speed import SpeedMeter
from controlplane.jobs.models import Run
from controlplane.live import topics
from controlplane.live.publish import apublish_all
from controlplane.live.topics import Payload
from controlplane.metrics.keeping import Keeping
from controlplane.metrics.store import ENGINE
from controlplane.moments import epoch_ms, now_ms
from controlplane.replay import sampling
from controlplane.replay.models import Replay
from controlplane.replay.stalls import Seen, seen_of

log = logging.getLogger(__name__)

PRUNE_EVERY_LOOKS = 600
CAPABILITIES_EVERY_LOOKS = 30
OVERLAP_MS = 10_000
"""Looks overlap by so much: an end is noted a little later than the time that it has."""
SAMPLED = (Replay.Status.STARTING, Replay.Status.REPLAYING, Replay.Status.CAUGHT_UP)


@dataclass(slots=True)
class Watched:
    """What is kept of a run from look to look."""

    mirror: RunMirror
    job_name: str
    replay: Replay | None
    meter: SpeedMeter = field(default_factory=SpeedMeter)
    held: HeldBack = field(default_factory=HeldBack)
    ailing: Ailing = field(default_factory=Ailing)
    goal_ms: int | None = None
    """How far the watermark may be behind; None when nobody has said."""


class Watcher:
    """One engine."""

    def __init__(
        self, cluster: Cluster, board: Board, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.cluster = cluster
        self._board = board
        address = address_of(cluster)
        self._engine = EngineWatch(address.url, transport, token=address.token)
        self._series = Keeping()
        self._watched: dict[int, Watched] = {}
        self._capabilities: dict[str, Any] | None = None
        self._since_ms = 0
        """End of the newest checkpoint that was written: what ended long before is known."""
        self._looks = 0

    async def close(self) -> None:
        """Close the connections."""
        await self._engine.close()

    async def look(self) -> None:
        """Look once."""
        try:
            runs = await _db(mirror.active_runs, self.cluster)
            for watched in self._follow(runs):
                streak = await _db(mirror.earlier_failures, watched.mirror.run)
                watched.ailing = Ailing(streak)
            sighting = await self._sighting(runs)
            await _db(mirror.note_cluster, self.cluster, sighting, self._capabilities)
            if sighting is None:
                await self._show_away(runs)
            else:
                await self._take_in(runs, sighting)
        except DatabaseError as error:
            # What was rolled back must be compared with the database again.
            self._watched.clear()
            self._since_ms = 0
            log.warning("%s: this look is lost: %s", self.cluster.name, error)
        self._looks += 1

    async def _sighting(self, runs: list[Run]) -> EngineSighting | None:
        try:
            ids = [run.engine_job_id for run in runs]
            sighting = await self._engine.look(ids, max(0, self._since_ms - OVERLAP_MS))
            if self._capabilities is None or self._looks % CAPABILITIES_EVERY_LOOKS == 0:
                self._capabilities = dict(await self._engine.capabilities())
        except EngineAway as away:
            if self.cluster.status != Cluster.Status.AWAY:
                log.warning("%s is away: %s", self.cluster.name, away.message)
            return None
        return sighting

    def _follow(self, runs: list[Run]) -> list[Watched]:
        """Keep what is known of the active runs; forget the others; return those that are new."""
        known = self._watched
        self._watched = {}
        fresh = []
        for run in runs:
            # Read here, while they are loaded: a run that is refreshed forgets what it refers to.
            name, replay = run.job.name, getattr(run, "replay", None)
            watched = known.get(run.pk)
            if watched is None:  # of a run that is new here all is wanted
                watched, self._since_ms = Watched(RunMirror(run), name, replay), 0
                fresh.append(watched)
            watched.mirror.run, watched.replay = run, replay
            watched.goal_ms = 1_000 * int(run.job.settings.get("delay_objective_s") or 0) or None
            self._watched[run.pk] = watched
        return fresh

    async def _take_in(self, runs: list[Run], sighting: EngineSighting) -> None:
        wall_ms = now_ms()
        mirrors = [watched.mirror for watched in self._watched.values()]
        told = await _db(mirror.apply, mirrors, sighting)
        self._since_ms = max(self._since_ms, sighting.newest_end_ms)
        seen = {run.pk: sighting.jobs.get(run.engine_job_id) for run in runs}
        speeds = {
            run.pk: self._watched[run.pk].meter.speed(wall_ms, one.event_ms)
            for run in runs
            if (one := seen[run.pk]) is not None
        }
        self._board.engine(self.cluster.pk, sighting, wall_ms)
        rows: Payload = {}
        news: Told = []
        for run in runs:
            if run.purpose == Run.Purpose.LIVE and (one := seen[run.pk]) is not None:
                self._board.position(run.job_id, one.event_ms if _flows(one) else None)
                watched = self._watched[run.pk]
                held = watched.held.tell(one)
                why = str(held["text"]) if held else ""
                ailing = watched.ailing.tell(one, wall_ms, watched.goal_ms, why)
                rows[str(run.job_id)] = row = figures.fleet_row(
                    watched.job_name, one, speeds[run.pk], watched.goal_ms, ailing
                )
                self._board.row(run.job_id, row)
                record = figures.job_record(run, one, speeds[run.pk], watched.goal_ms, held, ailing)
                news.append((topics.job(run.job_id), record))
                vertices = self._board.vertices(run.job_id, one)
                news.append((topics.operators(run.job_id), vertices))
        fleet = rows | {"sum": self._board.sum()}
        await apublish_all([(topics.FLEET, fleet), *news, *told])
        await self._sample_replays(runs, seen)
        await self._keep_series(runs, seen, speeds, wall_ms)

    async def _show_away(self, runs: list[Run]) -> None:
        """Figures are unknown now; states are what they were."""
        self._board.engine(self.cluster.pk, None, now_ms())
        row, record = figures.unseen()
        record["note"] = row["why"] = record["why"] = (
            f"the engine {self.cluster.name} does not answer"
        )
        seen = self.cluster.last_seen
        row["why_ms"] = record["why_ms"] = epoch_ms(seen) if seen else None
        jobs = [run.job_id for run in runs if run.purpose == Run.Purpose.LIVE]
        for job_id in jobs:
            self._board.row(job_id, row)
            self._board.position(job_id, None)
        for replay in (watched.replay for watched in self._watched.values()):
            if replay is not None and replay.status in SAMPLED:
                away = Seen(away=record["note"])
                await _db(sampling.record_standstill, replay, timezone.now(), away)
        fleet = {str(job_id): row for job_id in jobs} | {"sum": self._board.sum()}
        await apublish_all(
            [(topics.FLEET, fleet), *((topics.job(job_id), record) for job_id in jobs)]
        )

    async def _sample_replays(self, runs: list[Run], seen: dict[int, JobSighting | None]) -> None:
        for run in runs:
            one, watched = seen[run.pk], self._watched[run.pk]
            replay = watched.replay
            if one is None or replay is None or replay.status not in SAMPLED:
                continue
            held = watched.held.tell(one)
            found = seen_of(one, str(held["text"]) if held else "")
            if _flows(one):
                await _db(
                    sampling.record_sample,
                    replay,
                    timezone.now(),
                    _moment(one.event_ms),
                    _moment(self._board.live_position(run.job_id)),
                    found,
                )
            elif not run.is_terminal:
                await _db(sampling.record_standstill, replay, timezone.now(), found)

    async def _keep_series(
        self,
        runs: list[Run],
        seen: dict[int, JobSighting | None],
        speeds: dict[int, float | None],
        wall_ms: int,
    ) -> None:
        points = [
            point
            for run in runs
            if (one := seen[run.pk]) is not None
            for point in figures.points(
                {"job": self._watched[run.pk].job_name, "run": str(run.pk), "purpose": run.purpose},
                one,
                speeds[run.pk],
                wall_ms,
            )
        ]
        await sync_to_async(self._series.keep, thread_sensitive=False)(ENGINE, points)
        if self._looks % PRUNE_EVERY_LOOKS == PRUNE_EVERY_LOOKS - 1:
            for run in runs:
                await _db(mirror.prune, run)


async def _db(function: Any, *args: Any) -> Any:
    """Run it in the one thread that the ORM uses."""
    return await sync_to_async(function, thread_sensitive=True)(*args)


def _flows(seen: JobSighting) -> bool:
    return seen.state == figures.RUNNING


def _moment(epoch_ms: float | None) -> datetime | None:
    """A date; None for what lies outside the calendar."""
    try:
        return None if epoch_ms is None else datetime.fromtimestamp(epoch_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
