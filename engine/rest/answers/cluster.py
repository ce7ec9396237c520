"""Answers about the engine: totals, task managers, artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Overview:
    """Totals of an engine."""

    version: str
    """Flink's number, or `headwater-<version>`."""
    task_managers: int
    slots_total: int
    slots_available: int
    jobs_running: int
    jobs_finished: int
    jobs_cancelled: int
    jobs_failed: int

    @classmethod
    def of(cls, body: JsonObject) -> Overview:
        """Read `/overview`."""
        return cls(
            version=body["flink-version"],
            task_managers=body["taskmanagers"],
            slots_total=body["slots-total"],
            slots_available=body["slots-available"],
            jobs_running=body["jobs-running"],
            jobs_finished=body["jobs-finished"],
            jobs_cancelled=body["jobs-cancelled"],
            jobs_failed=body["jobs-failed"],
        )


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do beyond Flink's routes."""

    engine: str
    """ "headwater" or "flink"."""
    version: str
    features: frozenset[str]

    @classmethod
    def of(cls, body: JsonObject) -> Capabilities:
        """Read `/headwater/capabilities`."""
        return cls(body["engine"], body["version"], frozenset(body["features"]))


@dataclass(frozen=True, slots=True)
class WorkerUse:
    """What one worker process uses; None before its first heartbeat."""

    job_id: str
    slot: int
    pid: int | None
    memory_bytes: int | None
    cpu_load: float | None
    """Processor time per time: 1 is a whole core."""

    @classmethod
    def of(cls, body: JsonObject) -> WorkerUse:
        """Read an entry of `headwater.workers`."""
        metrics = body.get("metrics", {})
        return cls(
            job_id=body["job"],
            slot=body.get("slot", 0),
            pid=body["pid"],
            memory_bytes=metrics.get("Status.Process.Memory.Resident"),
            cpu_load=metrics.get("Status.Process.CPU.Load"),
        )


@dataclass(frozen=True, slots=True)
class TaskManager:
    """One task manager. Sizes are bytes; -1 is unknown."""

    id: str
    address: str
    slots: int
    free_slots: int
    last_heartbeat_ms: int
    cpu_cores: int
    physical_memory: int
    free_memory: int
    pid: int | None = None
    worker_pids: tuple[int, ...] = ()
    workers: tuple[WorkerUse, ...] = ()
    """Only from our engine."""
    metrics: Mapping[str, object] = field(default_factory=dict)
    """Only from our engine; ask a Flink cluster for `task_manager_metrics`."""

    @classmethod
    def of(cls, body: JsonObject) -> TaskManager:
        """Read an entry of `/taskmanagers`."""
        extra = body.get("headwater", {})
        workers = extra.get("workers", ())
        pids = (worker["pid"] for worker in workers)
        return cls(
            id=body["id"],
            address=body["path"],
            slots=body["slotsNumber"],
            free_slots=body["freeSlots"],
            last_heartbeat_ms=body["timeSinceLastHeartbeat"],
            cpu_cores=body["hardware"]["cpuCores"],
            physical_memory=body["hardware"]["physicalMemory"],
            free_memory=body["hardware"]["freeMemory"],
            pid=extra.get("pid"),
            worker_pids=tuple(pid for pid in pids if pid is not None),
            workers=tuple(map(WorkerUse.of, workers)),
            metrics=extra.get("metrics", {}),
        )


@dataclass(frozen=True, slots=True)
class LocalTaskManagers:
    """Those that a job manager starts itself: the process of each, None while it is lost."""

    respawn: bool
    pids: Mapping[str, int | None]

    @classmethod
    def of(cls, body: JsonObject) -> LocalTaskManagers:
        """Read `/headwater/taskmanagers`."""
        return cls(body["respawn"], {one["name"]: one["pid"] for one in body["taskmanagers"]})


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """One uploaded job file."""

    id: str
    name: str
    uploaded_ms: int

    @classmethod
    def of(cls, body: JsonObject) -> UploadedFile:
        """Read an entry of `/jars`."""
        return cls(body["id"], body["name"], body["uploaded"])
