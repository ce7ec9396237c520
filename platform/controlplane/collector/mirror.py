"""The database's side of the collector: which runs to look at, and what a look changes.

Guarantee  every write is idempotent: checkpoints by run and number, states by compare-and-set; so a
           collector that is killed at any moment goes on where it was.
Needs    one thread: all functions run in the one that the ORM uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from redis import RedisError

from controlplane.backends.models import Cluster
from controlplane.backends.registry import FAKE
from controlplane.backends.sightings import CheckpointSighting, EngineSighting, JobSighting
from controlplane.collector import figures
from controlplane.jobs import failures, lifecycle
from controlplane.jobs.failures import FailureNotes
from controlplane.jobs.models import NO_RUN, TERMINAL, Job, Run, RunState
from controlplane.live import topics
from controlplane.live.latest import latest_store
from controlplane.live.topics import Family, Payload, Topic
from controlplane.snapshots.models import Checkpoint

SEEN_EVERY = timedelta(seconds=5)
"""How often a run in which nothing changes is noted as seen: a write per second would be waste."""

REMEMBERED = 100
"""Checkpoints of a run whose last known state is kept in memory: more than an engine lists."""

CHECKPOINTS_KEPT = 5_000
"""Rows of automatic checkpoints kept per run, about 80 minutes at one a second."""

Told = list[tuple[str, Payload]]
"""Topic and event."""


def clusters() -> list[Cluster]:
    """Every engine to watch."""
    return list(Cluster.objects.exclude(url__startswith=FAKE))


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


@dataclass(slots=True)
class RunMirror:
    """One run: what is known of it already, so that only news are written."""

    run: Run
    _statuses: dict[int, str] = field(default_factory=dict)
    _told: set[str] | None = None
    """Ids of the events in the log; None until Redis could be asked."""
    _loaded: bool = False
    _failure_notes: FailureNotes = field(default_factory=FailureNotes)

    def apply(self, seen: JobSighting) -> Told:
        """Write what is new; return the events that it makes."""
        self._load()
        told = [*self._checkpoints(seen.checkpoints), *self._failures(seen)]
        self._failure_notes.take_in(self.run, seen.failures, seen.restored)
        self._observe(seen)
        return told

    def lose(self, sentence: str) -> bool:
        """The engine does not know the run."""
        return lifecycle.lose(self.run, timezone.now(), sentence)

    def _load(self) -> None:
        """What an earlier collector wrote and told."""
        if not self._loaded:
            rows = Checkpoint.objects.filter(run=self.run).order_by("-engine_checkpoint_id")
            self._statuses = dict(rows.values_list("engine_checkpoint_id", "status")[:REMEMBERED])
            self._loaded = True
        if self._told is None:
            with suppress(RedisError, OSError):
                topic = Topic(topics.events(self.run.job_id), Family.JOB_EVENTS, "")
                self._told = {event["id"] for event in latest_store().get(topic).value["events"]}

    def _observe(self, seen: JobSighting) -> None:
        now, run = timezone.now(), self.run
        failure = seen.failures[0].sentence if seen.failures else ""
        attempt = seen.restarts if seen.restarts is not None else run.attempt
        fresh = run.last_seen is not None and now - run.last_seen < SEEN_EVERY
        # `plan` is compared as it is kept: what the engine gives now replaces any other form.
        same = (run.state, run.attempt, run.plan) == (seen.state, attempt, seen.plan)
        if fresh and same and (not failure or failure == run.failure):
            return
        lifecycle.observe(
            run,
            RunState(seen.state),
            now,
            attempt=attempt,
            failure=failure,
            plan=seen.plan if seen.plan.get("nodes") else None,
        )

    def _failures(self, seen: JobSighting) -> Told:
        told: Told = []
        if self.run.purpose != Run.Purpose.LIVE or self._told is None:
            return told
        for index, failure in reversed(list(enumerate(seen.failures))):
            final = index == 0 and seen.state == RunState.FAILED
            event = figures.failure_event(self.run, failure, final=final)
            if event["id"] not in self._told:
                self._told.add(event["id"])
                told.append((topics.events(self.run.job_id), event))
        return told

    def _checkpoints(self, seen: Sequence[CheckpointSighting]) -> Told:
        news = [one for one in reversed(seen) if self._statuses.get(one.id) != one.status]
        if not news:
            return []
        Checkpoint.objects.bulk_create(
            [_row(self.run, one) for one in news],
            update_conflicts=True,
            unique_fields=["run", "engine_checkpoint_id"],
            update_fields=_MUTABLE,
        )
        self._statuses |= {one.id: one.status for one in news}
        for old in sorted(self._statuses)[:-REMEMBERED]:
            del self._statuses[old]
        if self.run.purpose != Run.Purpose.LIVE:
            return []
        job_id = self.run.job_id
        told = [
            (topics.checkpoints(job_id), figures.checkpoint_event(self.run, one)) for one in news
        ]
        failed = [one for one in news if one.status == Checkpoint.Status.FAILED]
        return told + [
            (topics.events(job_id), figures.failed_checkpoint(self.run, one)) for one in failed
        ]


def apply(mirrors: Iterable[RunMirror], sighting: EngineSighting) -> Told:
    """Write what a look at an engine brought, in one transaction."""
    told: Told = []
    with transaction.atomic():
        for mirror in mirrors:
            seen = sighting.jobs.get(mirror.run.engine_job_id)
            if seen is not None:
                told += mirror.apply(seen)
            elif mirror.run.engine_job_id not in sighting.states:
                mirror.lose(_LOST)
    return told


_MUTABLE = ["status", "duration_ms", "size_bytes", "external_path", "failure", "detail"]
_AT_REST = {*TERMINAL, NO_RUN}
_LOST = "the engine answers and does not know this run: start the job again from its last savepoint"


def _row(run: Run, seen: CheckpointSighting) -> Checkpoint:
    kind = Checkpoint.Kind.SAVEPOINT if seen.is_savepoint else Checkpoint.Kind.CHECKPOINT
    return Checkpoint(
        run=run,
        engine_checkpoint_id=seen.id,
        kind=kind,
        status=seen.status,
        trigger_at=datetime.fromtimestamp(seen.triggered_ms / 1000, UTC),
        duration_ms=seen.duration_ms,
        size_bytes=seen.size_bytes,
        external_path=seen.path[:500],
        failure=seen.failure,
        detail=dict(seen.detail),
    )
