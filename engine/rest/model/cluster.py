"""The cluster, as the service knows it: task managers, artifacts, totals.

Units    sizes are bytes, times epoch ms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.rest.model.jobs import MetricValue


@dataclass(frozen=True, slots=True)
class Slot:
    """A slot in use: one worker process of one job."""

    job_id: str
    tasks: int
    """Subtasks that run in it."""
    pid: int | None = None
    index: int = 0
    """Which slot of the job: subtask `index` of every vertex runs in it."""
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    """Status.Process.CPU.Load and Status.Process.Memory.Resident of the worker."""


@dataclass(frozen=True, slots=True)
class TaskManagerInfo:
    """One registered task manager."""

    id: str
    """`<host>:<port or name>-<6 hex>`; no slash."""
    address: str
    """For people: e.g. the path of its socket."""
    slots: int
    allocated: tuple[Slot, ...]
    last_heartbeat_ms: int
    cpu_cores: int
    physical_memory: int
    free_memory: int
    pid: int | None = None
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    """E.g. Status.Process.CPU.Load (0..1), Status.Process.Memory.Resident of it and its workers."""

    @property
    def free_slots(self) -> int:
        """Slots that no job holds."""
        return self.slots - len(self.allocated)


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The whole engine."""

    version: str
    commit: str
    """Short, or "unknown"."""
    task_managers: tuple[TaskManagerInfo, ...]
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    """Of the job manager itself; counts of slots and jobs are added by `render/`."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """An uploaded job file."""

    id: str
    """`<uuid or hash>_<file name>`; one path segment."""
    filename: str
    uploaded_ms: int
    size_bytes: int
