"""Clusters as the page shows them, asked of each engine just now.

Cost     two requests per cluster, each given up after two seconds, and two queries in all.
Missing  an engine that does not answer is shown as away; nothing is made up for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Count

from controlplane.access.lookup import visible_jobs
from controlplane.backends.models import Cluster
from controlplane.backends.registry import FAKE
from controlplane.backends.tokens import address_of
from controlplane.jobs.models import Run
from engine.rest.answers.cluster import TaskManager, WorkerUse
from engine.rest.client import ClientError, EngineClient

QUICK_S = 2.0
OTHERS = "a job of another team"
REPORTER = ("reporterPointsDropped", "reporterPointsWaiting", "reporterSilentTime")


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One process of a task manager, which runs one slice of one job."""

    job: str
    """Its name; a sentence where this person may not know it."""
    is_visible: bool
    purpose: str
    slice: int
    """Which part of the job: subtask `slice` of each of its vertices."""
    pid: int | None
    memory_bytes: int | None
    cpu_percent: float | None
    """Of one core."""


@dataclass(frozen=True, slots=True)
class TaskManagerRow:
    """One task manager."""

    id: str
    slots: int
    used: int
    pid: int | None
    cpu_cores: int
    memory_bytes: int | None
    free_memory: int | None
    heartbeat_ms: int | None
    workers: tuple[WorkerRow, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """What runs in each slot; empty: nothing. A Flink cluster says only how many are used."""
        names = [worker.job for worker in self.workers]
        names += ["in use"] * (self.used - len(names))
        return tuple((names + [""] * self.slots)[: self.slots])


@dataclass(frozen=True, slots=True)
class Reporting:
    """How the metrics of an engine get to the series store: what its reporter tells of itself."""

    dropped: int
    """Points that are lost, since its job manager began."""
    waiting: int
    silent_ms: float
    """For how long no point was taken; 0 while they are."""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One engine."""

    name: str
    kind: str
    url: str
    version: str
    features: tuple[str, ...]
    has_token: bool
    last_seen: datetime | None
    jobs: int
    task_managers: tuple[TaskManagerRow, ...] = ()
    reporting: Reporting | None = None
    """None where it has no reporter, as a Flink cluster."""
    away: str = ""
    """Why it does not answer."""

    @property
    def engine(self) -> str:
        """Which engine, with its version."""
        return f"{self.kind} {self.version.removeprefix('headwater-')}".strip()

    @property
    def slots(self) -> int:
        """Slots of all task managers."""
        return sum(row.slots for row in self.task_managers)

    @property
    def slots_used(self) -> int:
        """How many of them run something."""
        return sum(row.used for row in self.task_managers)

    @property
    def manages(self) -> bool:
        """Whether task managers can be started and stopped through it."""
        return "local-task-managers" in self.features and not self.away

    @property
    def memory_free(self) -> int | None:
        """Free memory of the machine, as its task managers see it."""
        known = [row.free_memory for row in self.task_managers if row.free_memory is not None]
        return min(known) if known else None


Names = Mapping[str, tuple[str, str]]
"""The engine's job id to the job's name and the run's purpose."""


def clusters(user: User) -> tuple[ClusterView, ...]:
    """Every cluster with its task managers, and what this person may know of their jobs."""
    counted = Cluster.present.annotate(job_count=Count("jobs"))
    asked = [(cluster, _ask(cluster)) for cluster in counted]
    names = _names(user, (one for _, found in asked for one in found.task_managers))
    return tuple(_view(cluster, found, names) for cluster, found in asked)


def cluster_view(user: User, cluster: Cluster) -> ClusterView:
    """One of them."""
    found = _ask(cluster)
    counted = Cluster.objects.annotate(job_count=Count("jobs")).get(pk=cluster.pk)
    return _view(counted, found, _names(user, found.task_managers))


@dataclass(frozen=True, slots=True)
class _Answer:
    task_managers: tuple[TaskManager, ...] = ()
    reporting: Reporting | None = None
    away: str = ""


def _ask(cluster: Cluster) -> _Answer:
    if cluster.url.startswith(FAKE):
        return _Answer()
    address = address_of(cluster)
    try:
        with EngineClient(address.url, address.token, QUICK_S) as engine:
            found = sorted(engine.task_managers(), key=lambda one: one.id)
            return _Answer(tuple(found), _reporting(engine.job_manager_metrics(REPORTER)))
    except ClientError as error:
        return _Answer(away=str(error))


def _reporting(told: Mapping[str, str]) -> Reporting | None:
    if not set(REPORTER) <= set(told):
        return None
    dropped, waiting, silent_ms = (float(told[name]) for name in REPORTER)
    return Reporting(int(dropped), int(waiting), silent_ms)


def _names(user: User, found: Iterable[TaskManager]) -> Names:
    ids = {worker.job_id for manager in found for worker in manager.workers}
    runs = Run.objects.filter(engine_job_id__in=ids, job__in=visible_jobs(user))
    return {
        engine_id: (name, purpose)
        for engine_id, name, purpose in runs.values_list("engine_job_id", "job__name", "purpose")
    }


def _view(cluster: Cluster, found: _Answer, names: Names) -> ClusterView:
    return ClusterView(
        name=cluster.name,
        kind=cluster.get_kind_display(),
        url=cluster.url,
        version=cluster.version,
        features=tuple(cluster.capabilities.get("features", ())),
        has_token=bool(address_of(cluster).token),
        last_seen=cluster.last_seen,
        jobs=cluster.__dict__["job_count"],
        task_managers=tuple(_row(one, names) for one in found.task_managers),
        reporting=found.reporting,
        away=found.away,
    )


def _row(found: TaskManager, names: Names) -> TaskManagerRow:
    return TaskManagerRow(
        id=found.id,
        slots=found.slots,
        used=found.slots - found.free_slots,
        pid=found.pid,
        cpu_cores=found.cpu_cores,
        memory_bytes=_known(found.physical_memory),
        free_memory=_known(found.free_memory),
        heartbeat_ms=found.last_heartbeat_ms if found.last_heartbeat_ms > 0 else None,
        workers=tuple(_worker(one, names) for one in found.workers),
    )


def _worker(found: WorkerUse, names: Names) -> WorkerRow:
    name, purpose = names.get(found.job_id, (OTHERS, ""))
    return WorkerRow(
        job=name,
        is_visible=found.job_id in names,
        purpose=purpose,
        slice=found.slot,
        pid=found.pid,
        memory_bytes=found.memory_bytes,
        cpu_percent=None if found.cpu_load is None else round(100 * found.cpu_load),
    )


def _known(size: int) -> int | None:
    """-1 is unknown."""
    return size if size >= 0 else None
