"""Clusters as the page shows them, asked of each engine just now.

Cost     two requests per cluster, given up after two seconds.
Missing  an engine that does not answer is shown as away; nothing is made up for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.backends.models import Cluster
from controlplane.backends.registry import FAKE
from controlplane.backends.tokens import token_for
from engine.rest.answers.cluster import TaskManager
from engine.rest.client import ClientError, EngineClient

QUICK_S = 2.0


@dataclass(frozen=True, slots=True)
class TaskManagerRow:
    """One task manager."""

    id: str
    slots: int
    used: int
    pid: int | None
    workers: tuple[int, ...]
    free_memory: int | None
    heartbeat_ms: int | None

    @property
    def cells(self) -> tuple[bool, ...]:
        """One per slot: whether it is in use."""
        return tuple(place < self.used for place in range(self.slots))


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One engine."""

    name: str
    kind: str
    url: str
    version: str
    task_managers: tuple[TaskManagerRow, ...] = ()
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


def clusters() -> tuple[ClusterView, ...]:
    """Every cluster with its task managers."""
    return tuple(_view(cluster) for cluster in Cluster.objects.all())


def _view(cluster: Cluster) -> ClusterView:
    known = ClusterView(cluster.name, cluster.get_kind_display(), cluster.url, cluster.version)
    if cluster.url.startswith(FAKE):
        return known
    try:
        with EngineClient(cluster.url, token_for(cluster.url), QUICK_S) as engine:
            found = engine.task_managers()
    except ClientError as error:
        return ClusterView(known.name, known.kind, known.url, known.version, away=str(error))
    rows = tuple(_row(one) for one in sorted(found, key=lambda one: one.id))
    return ClusterView(known.name, known.kind, known.url, known.version, rows)


def _row(found: TaskManager) -> TaskManagerRow:
    return TaskManagerRow(
        id=found.id,
        slots=found.slots,
        used=found.slots - found.free_slots,
        pid=found.pid,
        workers=tuple(found.worker_pids),
        free_memory=found.free_memory if found.free_memory >= 0 else None,
        heartbeat_ms=found.last_heartbeat_ms if found.last_heartbeat_ms > 0 else None,
    )
