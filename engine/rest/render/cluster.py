"""The cluster in Flink's form: totals, task managers, artifacts.

A Python process has no heap, managed or direct memory: where Flink's form asks for the sizes of a
JVM we answer -1, its "unknown", and put what we do know under `headwater`. As in Flink, a slot
counts as one core of a task manager's resource, whatever the machine has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from engine.rest.model.cluster import Artifact, ClusterInfo, Slot, TaskManagerInfo
from engine.rest.model.jobs import JobDetails, JobStatus, MetricValue

_UNKNOWN_RESOURCE = {
    "taskHeapMemory": -1,
    "taskOffHeapMemory": -1,
    "managedMemory": -1,
    "networkMemory": -1,
    "extendedResources": {},
}
_MEMORY_POOLS = (
    "frameworkHeap",
    "taskHeap",
    "frameworkOffHeap",
    "taskOffHeap",
    "networkMemory",
    "managedMemory",
    "jvmMetaspace",
    "jvmOverhead",
    "totalFlinkMemory",
    "totalProcessMemory",
)
_JVM_METRICS = (
    "heapUsed",
    "heapCommitted",
    "heapMax",
    "nonHeapUsed",
    "nonHeapCommitted",
    "nonHeapMax",
    "directCount",
    "directUsed",
    "directMax",
    "mappedCount",
    "mappedUsed",
    "mappedMax",
    "nettyShuffleMemorySegmentsAvailable",
    "nettyShuffleMemorySegmentsUsed",
    "nettyShuffleMemorySegmentsTotal",
    "nettyShuffleMemoryAvailable",
    "nettyShuffleMemoryUsed",
    "nettyShuffleMemoryTotal",
)


def overview(cluster: ClusterInfo, jobs: Sequence[JobDetails]) -> dict[str, object]:
    """The body of `/overview`."""
    states = Counter(job.status for job in jobs)
    ended = sum(states[status] for status in JobStatus if status.terminal)
    return {
        "taskmanagers": len(cluster.task_managers),
        "slots-total": sum(manager.slots for manager in cluster.task_managers),
        "slots-available": sum(manager.free_slots for manager in cluster.task_managers),
        "jobs-running": states.total() - ended,
        "jobs-finished": states[JobStatus.FINISHED],
        "jobs-cancelled": states[JobStatus.CANCELED],
        "jobs-failed": states[JobStatus.FAILED],
        "flink-version": f"headwater-{cluster.version}",
        "flink-commit": cluster.commit,
    }


def config(cluster: ClusterInfo) -> dict[str, object]:
    """The body of `/config`: what Flink's own pages ask first."""
    return {
        "refresh-interval": 3000,
        "timezone-name": "Coordinated Universal Time",
        "timezone-offset": 0,
        "flink-version": f"headwater-{cluster.version}",
        "flink-revision": cluster.commit,
        "features": {
            "web-submit": True,
            "web-cancel": True,
            "web-rescale": False,
            "web-history": False,
        },
    }


def job_manager_metrics(cluster: ClusterInfo, jobs: Sequence[JobDetails]) -> dict[str, MetricValue]:
    """The metrics of the job manager, with the counts that it is asked for most."""
    managers = cluster.task_managers
    counts: dict[str, MetricValue] = {
        "numRegisteredTaskManagers": len(managers),
        "numRunningJobs": sum(job.status is JobStatus.RUNNING for job in jobs),
        "taskSlotsTotal": sum(manager.slots for manager in managers),
        "taskSlotsAvailable": sum(manager.free_slots for manager in managers),
    }
    return counts | dict(cluster.metrics)


def task_managers(cluster: ClusterInfo) -> dict[str, object]:
    """The body of `/taskmanagers`."""
    return {"taskmanagers": [_task_manager(manager) for manager in cluster.task_managers]}


def task_manager(manager: TaskManagerInfo) -> dict[str, object]:
    """The body of `/taskmanagers/:id`."""
    jvm: dict[str, object] = dict.fromkeys(_JVM_METRICS, -1)
    slots = [_slot(slot) for slot in manager.allocated]
    metrics = jvm | {"garbageCollectors": []}
    return _task_manager(manager) | {"allocatedSlots": slots, "metrics": metrics}


def artifacts(address: str, files: Sequence[Artifact]) -> dict[str, object]:
    """The body of `/jars`."""
    return {"address": address, "files": [_artifact(file) for file in files]}


def _task_manager(manager: TaskManagerInfo) -> dict[str, object]:
    return {
        "id": manager.id,
        "path": manager.address,
        "dataPort": -1,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": manager.last_heartbeat_ms,
        "slotsNumber": manager.slots,
        "freeSlots": manager.free_slots,
        "assignedTasks": sum(slot.tasks for slot in manager.allocated),
        "totalResource": {"cpuCores": float(manager.slots), **_UNKNOWN_RESOURCE},
        "freeResource": {"cpuCores": float(manager.free_slots), **_UNKNOWN_RESOURCE},
        "hardware": {
            "cpuCores": manager.cpu_cores,
            "physicalMemory": manager.physical_memory,
            "freeMemory": manager.free_memory,
            "managedMemory": -1,
        },
        "memoryConfiguration": dict.fromkeys(_MEMORY_POOLS, -1),
        "headwater": {
            "pid": manager.pid,
            "metrics": dict(manager.metrics),
            "workers": [
                {
                    "job": slot.job_id,
                    "slot": slot.index,
                    "pid": slot.pid,
                    "metrics": dict(slot.metrics),
                }
                for slot in manager.allocated
            ],
        },
    }


def _slot(slot: Slot) -> dict[str, object]:
    return {
        "jobId": slot.job_id,
        "resource": {"cpuCores": 1.0, **_UNKNOWN_RESOURCE},
        "assignedTasks": slot.tasks,
    }


def _artifact(file: Artifact) -> dict[str, object]:
    return {
        "id": file.id,
        "name": file.filename,
        "uploaded": file.uploaded_ms,
        "entry": [{"name": file.filename, "description": None}],
    }
