"""Answers about the engine, its task managers, its metrics and its programs."""

from __future__ import annotations

from typing import NotRequired, TypedDict

Overview = TypedDict(
    "Overview",
    {
        "taskmanagers": int,
        "slots-total": int,
        "slots-available": int,
        "jobs-running": int,
        "jobs-finished": int,
        "jobs-cancelled": int,
        "jobs-failed": int,
        "flink-version": str,
        "flink-commit": str,
    },
)

Offers = TypedDict(
    "Offers", {"web-submit": bool, "web-cancel": bool, "web-rescale": bool, "web-history": bool}
)

Config = TypedDict(
    "Config",
    {
        "refresh-interval": int,
        "timezone-name": str,
        "timezone-offset": int,
        "flink-version": str,
        "flink-revision": str,
        "features": Offers,
    },
)


class Metric(TypedDict):
    """A metric; without a value where only names were asked for."""

    id: str
    value: NotRequired[str]


class AggregatedMetric(TypedDict):
    """A metric over several sources; without figures where only names were asked for."""

    id: str
    min: NotRequired[float]
    max: NotRequired[float]
    avg: NotRequired[float]
    sum: NotRequired[float]
    skew: NotRequired[float]


class Resource(TypedDict):
    """What a slot or a task manager has."""

    cpuCores: float
    taskHeapMemory: int
    taskOffHeapMemory: int
    managedMemory: int
    networkMemory: int
    extendedResources: dict[str, object]


class Hardware(TypedDict):
    """The machine of a task manager."""

    cpuCores: int
    physicalMemory: int
    freeMemory: int
    managedMemory: int


class MemoryConfiguration(TypedDict):
    """Flink's division of memory."""

    frameworkHeap: int
    taskHeap: int
    frameworkOffHeap: int
    taskOffHeap: int
    networkMemory: int
    managedMemory: int
    jvmMetaspace: int
    jvmOverhead: int
    totalFlinkMemory: int
    totalProcessMemory: int


class Worker(TypedDict):
    """A worker process."""

    job: str
    slot: int
    pid: int | None
    metrics: dict[str, object]


class ProcessDetails(TypedDict):
    """Our addition: the processes behind a task manager."""

    pid: int | None
    metrics: dict[str, object]
    workers: list[Worker]


class TaskManager(TypedDict):
    """A task manager."""

    id: str
    path: str
    dataPort: int
    jmxPort: int
    timeSinceLastHeartbeat: int
    slotsNumber: int
    freeSlots: int
    assignedTasks: int
    totalResource: Resource
    freeResource: Resource
    hardware: Hardware
    memoryConfiguration: MemoryConfiguration
    headwater: NotRequired[ProcessDetails]


class TaskManagers(TypedDict):
    """All task managers."""

    taskmanagers: list[TaskManager]


class AllocatedSlot(TypedDict):
    """A slot in use."""

    jobId: str
    resource: Resource
    assignedTasks: int


class TaskManagerDetails(TaskManager):
    """A task manager with its slots; the metrics are those of a JVM, as in Flink."""

    allocatedSlots: list[AllocatedSlot]
    metrics: dict[str, object]


class Entry(TypedDict):
    """Where a program begins."""

    name: str
    description: str | None


class UploadedProgram(TypedDict):
    """An uploaded program."""

    id: str
    name: str
    uploaded: int
    entry: list[Entry]


class Programs(TypedDict):
    """All uploaded programs."""

    address: str
    files: list[UploadedProgram]


class Uploaded(TypedDict):
    """The last segment of `filename` is the program's id."""

    filename: str
    status: str
