"""The database's side of the collector: which runs to look at, and what a look changes.

Guarantee  every write is idempotent: checkpoints by run and number, states by compare-and-set; so a
           collector that is killed at any moment goes on where it was.
Needs    one thread: all functions run in the one that the ORM uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from redis import RedisError

from controlplane.backends.models import Cluster
from controlplane.backends.registry import FAKE
from controlplane.backends.sightings import EngineSighting, JobSighting
from controlplane.collector import checkpoint_notes, figures
from controlplane.collector.ailing import FailureStreak
from controlplane.collector.checkpoint_notes import CheckpointNotes, Told
from controlplane.jobs import failures, lifecycle
from controlplane.jobs.failures import FailureNotes
from controlplane.jobs.models import NO_RUN, TERMINAL, Job, Run, RunFailure, RunState
from controlplane.live import topics
from controlplane.live.latest import latest_store
from controlplane.live.topics import Family, Payload, Topic
from controlplane.moments import epoch_ms
from controlplane.snapshots.models import Checkpoint

SEEN_EVERY = timedelta(seconds=5)
"""How often a run in which nothing changes is noted as seen."""

CHECKPOINTS_KEPT = 5_000
"""Rows of automatic checkpoints kept per run, about 80 minutes at one a second."""

STREAK = 50
"""Failures in which the beginning of a streak is looked for."""


def clusters() -> list[Cluster]:
    """Every engine to watch."""
    return list(Cluster.present.exclude(url__startswith=FAKE))


def active_runs(cluster: Cluster) -> list[Run]:
    """Runs on that engine which have not ended."""
    runs = Run.objects.filter(cluster=cluster).exclude(state__in=TERMINAL)
    return list(runs.select_related("job", "replay"))


def resting_jobs() -> dict[int, str]:
    """Jobs without an active live run, and the state to show; every job that exists is a key of
    this or has an active run.
    """
    states: dict[int, str] = dict.fromkeys(Job.objects.values_list("pk", flat=True), NO_RUN)
    newest = Run.objects.filter(purpose=Run.Purpose.LIVE).order_by("started_at", "pk")
    for job_id, state in newest.values_list("job_id", "state"):
        states[job_id] = state
    return {job_id: state for job_id, state in states.items() if state in _AT_REST}


def job_ids() -> set[int]:
    """Every job."""
    return set(Job.objects.values_list("pk", flat=True))


def note_cluster(
    cluster: Cluster, sighting: EngineSighting | None, capabilities: Mapping[str, Any] | None
) -> None:
    """Whether the engine answered, and what it is."""
    now = timezone.now()
    status = Cluster.Status.OK if sighting else Cluster.Status.AWAY
    changed: dict[str, Any] = {}
    if sighting and (cluster.last_seen is None or now - cluster.last_seen >= SEEN_EVERY):
        changed["last_seen"] = now
    if cluster.status != status:
        changed["status"] = status
    if sighting and cluster.version != sighting.version:
        changed["version"] = sighting.version[:64]
    if capabilities is not None and dict(cluster.capabilities) != dict(capabilities):
        changed["capabilities"] = dict(capabilities)
    if changed:
        Cluster.objects.filter(pk=cluster.pk).update(**changed)
        for name, value in changed.items():
            setattr(cluster, name, value)


def prune(run: Run) -> None:
    """Drop the oldest automatic checkpoints and failures beyond what is kept."""
    rows = Checkpoint.objects.filter(run=run, kind=Checkpoint.Kind.CHECKPOINT)
    numbers = rows.order_by("-engine_checkpoint_id").values_list("engine_checkpoint_id", flat=True)
    oldest_kept = numbers[CHECKPOINTS_KEPT - 1 : CHECKPOINTS_KEPT].first()
    if oldest_kept is not None:
        rows.filter(engine_checkpoint_id__lt=oldest_kept).delete()
    failures.prune(run)


def earlier_failures(run: Run) -> FailureStreak:
    """The last failures of the job, also those of runs before this one."""
    streak = FailureStreak()
    if run.purpose == Run.Purpose.LIVE:
        of_job = RunFailure.objects.filter(run__job=run.job_id, run__purpose=Run.Purpose.LIVE)
        newest = of_job.order_by("-at").values_list("at", "sentence")[:STREAK]
        for at, sentence in reversed(newest):
            streak.add(epoch_ms(at), sentence)
    return streak


@dataclass(slots=True)
class RunMirror:
    """One run: what is known of it already, so that only news are written."""

    run: Run
    _checkpoints: CheckpointNotes = field(default_factory=CheckpointNotes)
    _failure_notes: FailureNotes = field(default_factory=FailureNotes)
    _told: set[str] | None = None
    """Ids of the events in the log; None until Redis could be asked."""

    def checkpoints(self, seen: JobSighting) -> tuple[list[Checkpoint], Told]:
        """Rows to write, and the events that they make."""
        news = self._checkpoints.news(self.run, seen.checkpoints)
        rows = [checkpoint_notes.row(self.run, one) for one in news]
        # Those of a replay are not on its job's pages.
        live = self.run.purpose == Run.Purpose.LIVE
        return rows, checkpoint_notes.told(self.run, news) if live else []

    def failures(self, seen: JobSighting) -> Told:
        """Write failures that are new; the events that they, and failed checkpoints, make."""
        self._failure_notes.take_in(self.run, seen.failures, seen.restored)
        known = self._known_events()
        if self.run.purpose != Run.Purpose.LIVE or known is None:
            return []
        # What the log has not: also what a collector wrote, and then was killed before it told.
        news = [event for event in self._events(seen) if event["id"] not in known]
        known |= {event["id"] for event in news}
        return [(topics.events(self.run.job_id), event) for event in news]

    def _events(self, seen: JobSighting) -> Iterator[Payload]:
        for checkpoint in reversed(seen.checkpoints):
            if checkpoint.status == Checkpoint.Status.FAILED:
                yield figures.failed_checkpoint(self.run, checkpoint)
        for index, failure in reversed(list(enumerate(seen.failures))):
            final = index == 0 and seen.state == RunState.FAILED
            yield figures.failure_event(self.run, failure, final=final)

    def observe(self, seen: JobSighting, now: datetime) -> bool:
        """Write what is new of the run itself; False when it only was seen again."""
        run = self.run
        failure = seen.failures[0].sentence if seen.failures else ""
        attempt = seen.restarts if seen.restarts is not None else run.attempt
        # `plan` is compared as it is kept: what the engine gives now replaces any other form.
        same = (run.state, run.attempt, run.plan) == (seen.state, attempt, seen.plan)
        if same and (not failure or failure == run.failure):
            return False
        lifecycle.observe(
            run,
            RunState(seen.state),
            now,
            attempt=attempt,
            failure=failure,
            plan=seen.plan if seen.plan.get("nodes") else None,
        )
        return True

    def _known_events(self) -> set[str] | None:
        """What an earlier collector told."""
        if self._told is None:
            with suppress(RedisError, OSError):
                topic = Topic(topics.events(self.run.job_id), Family.JOB_EVENTS, "")
                self._told = {event["id"] for event in latest_store().get(topic).value["events"]}
        return self._told


def apply(mirrors: Iterable[RunMirror], sighting: EngineSighting) -> Told:
    """Write what a look at an engine brought, in one transaction."""
    told: Told = []
    rows: list[Checkpoint] = []
    again: list[Run] = []
    now = timezone.now()
    with transaction.atomic():
        for mirror in mirrors:
            run = mirror.run
            seen = sighting.jobs.get(run.engine_job_id)
            if seen is not None:
                of_run, news = mirror.checkpoints(seen)
                rows += of_run
                told += [*news, *mirror.failures(seen)]
                if not mirror.observe(seen, now):
                    again.append(run)
            elif run.engine_job_id not in sighting.states:
                lifecycle.lose(run, now, _LOST)
        checkpoint_notes.write(rows)
        _seen_again(again, now)
    return told


def _seen_again(runs: Iterable[Run], now: datetime) -> None:
    """Note runs in which nothing changed, now and then: a write per second would be waste."""
    stale = [run for run in runs if run.last_seen is None or now - run.last_seen >= SEEN_EVERY]
    if stale:
        alive = Run.objects.filter(pk__in=[run.pk for run in stale])
        alive.exclude(state__in=TERMINAL).update(last_seen=now)


_AT_REST = {*TERMINAL, NO_RUN}
_LOST = "the engine answers and does not know this run: start the job again from its last savepoint"
