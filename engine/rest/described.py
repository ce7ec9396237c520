"""What each route takes and gives: the table behind the OpenAPI document.

    endpoint ─▶ Described: type of the answer, of the body, query parameters, status code

Paths, methods and words come from the routes themselves. A route without a line here is found by a
test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.rest.routes import (
    artifacts,
    checkpoints,
    cluster,
    headwater,
    jobs,
    metrics,
    rescaling,
    resources,
    running,
    snapshots,
    vertices,
    watching,
)
from engine.rest.schema import checkpoints as cp
from engine.rest.schema import cluster as cl
from engine.rest.schema import jobs as jo
from engine.rest.schema import programs as pr
from engine.rest.schema import running as ru
from engine.rest.schema import snapshots as sn
from engine.rest.schema import task_managers as tm
from engine.rest.schema import vertices as ve
from engine.rest.schema import watching as wa

Endpoint = Callable[..., Any]

TEXT = "text/plain"


@dataclass(frozen=True, slots=True)
class Described:
    """One endpoint."""

    answer: Any
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    """Parameters to their types."""
    status: int = 200
    uploads: bool = False
    """Whether it takes a file."""
    media_type: str = "application/json"


GET = {"get": str}
"""Names of metrics: a,b."""
AGGREGATED = {"get": str, "agg": str}

DESCRIBED: Mapping[Endpoint, Described] = {
    headwater.openapi: Described(dict[str, object]),
    cluster.overview: Described(cl.Overview),
    cluster.config: Described(cl.Config),
    cluster.job_manager_metrics: Described(list[cl.Metric], query=GET),
    cluster.task_managers: Described(cl.TaskManagers),
    cluster.task_managers_metrics: Described(
        list[cl.AggregatedMetric], query={**AGGREGATED, "taskmanagers": str}
    ),
    cluster.task_manager: Described(cl.TaskManagerDetails),
    cluster.task_manager_metrics: Described(list[cl.Metric], query=GET),
    metrics.metrics: Described(str, media_type=TEXT),
    jobs.ids: Described(jo.JobIds),
    jobs.overview: Described(jo.JobSummaries),
    jobs.all_metrics: Described(list[cl.AggregatedMetric], query={**AGGREGATED, "jobs": str}),
    jobs.details: Described(jo.Job),
    jobs.terminate: Described(jo.Nothing, query={"mode": str}, status=202),
    jobs.status: Described(jo.JobState),
    jobs.plan: Described(jo.PlanAnswer),
    jobs.config: Described(jo.JobConfig),
    jobs.exceptions: Described(jo.Failures, query={"maxExceptions": int}),
    jobs.execution_result: Described(jo.JobResult),
    jobs.job_metrics: Described(list[cl.Metric], query=GET),
    vertices.details: Described(ve.Vertex),
    vertices.task_managers: Described(ve.VertexByTaskManagers),
    vertices.watermarks: Described(list[cl.Metric]),
    vertices.backpressure: Described(ve.Backpressure),
    vertices.vertex_metrics: Described(list[cl.Metric], query=GET),
    vertices.subtasks_metrics: Described(
        list[cl.AggregatedMetric], query={**AGGREGATED, "subtasks": str}
    ),
    vertices.subtask_metrics: Described(list[cl.Metric], query=GET),
    checkpoints.history: Described(cp.Checkpoints),
    checkpoints.trigger_checkpoint: Described(cp.Triggered, cp.CheckpointBody, status=202),
    checkpoints.settings: Described(cp.CheckpointConfig),
    checkpoints.checkpoint_status: Described(cp.CheckpointOperation),
    checkpoints.details: Described(cp.Checkpoint),
    checkpoints.subtasks: Described(cp.CheckpointSubtasks),
    checkpoints.trigger_savepoint: Described(cp.Triggered, cp.SavepointBody, status=202),
    checkpoints.savepoint_status: Described(cp.SavepointOperation),
    checkpoints.stop: Described(cp.Triggered, cp.StopBody, status=202),
    checkpoints.dispose: Described(cp.Triggered, cp.DisposalBody),
    checkpoints.disposal_status: Described(cp.SavepointOperation),
    artifacts.artifacts: Described(cl.Programs),
    artifacts.upload: Described(cl.Uploaded, uploads=True),
    artifacts.delete: Described(jo.Nothing),
    artifacts.plan: Described(
        jo.PlanAnswer, pr.ProgramBody, {"programArg": str, "parallelism": int}
    ),
    artifacts.run: Described(
        jo.Started, pr.RunBody, {"allowNonRestoredState": bool, "savepointPath": str}
    ),
    rescaling.requirements: Described(dict[str, ru.Requirements]),
    rescaling.require: Described(jo.Nothing, dict[str, ru.Requirements]),
    rescaling.rescale_all: Described(cp.Triggered, query={"parallelism": int}),
    rescaling.status: Described(cp.SavepointOperation),
    rescaling.rescale: Described(cp.Triggered, ru.RescaleBody, status=202),
    headwater.capabilities: Described(tm.Capabilities),
    headwater.progress: Described(ru.Progress),
    headwater.plan: Described(ru.EnginePlanAnswer),
    watching.watch: Described(
        wa.WatchedJobs, query={"jobs": str, "get": str, "maxExceptions": int, "since": int}
    ),
    running.statistics: Described(ru.Statistics, query={"window": int, "step": int}),
    running.read_limits: Described(ru.ReadLimits),
    running.limit_reading: Described(ru.ReadLimits, ru.ReadLimitBody),
    running.state: Described(sn.StateValue, query={"key": str}),
    resources.local: Described(tm.LocalTaskManagers),
    resources.start: Described(tm.TaskManagerName, tm.TaskManagerBody, status=202),
    resources.respawn: Described(tm.LocalTaskManagers, tm.RespawnBody),
    resources.stop: Described(jo.Nothing, status=202),
    snapshots.savepoint: Described(sn.Savepoint, query={"path": str}),
    snapshots.read: Described(sn.StateRows, sn.ReadBody),
    snapshots.verify: Described(cp.Triggered, sn.PathBody, status=202),
    snapshots.verification: Described(sn.Verification),
    snapshots.compare: Described(cp.Triggered, sn.CompareBody, status=202),
    snapshots.comparison: Described(sn.Comparison),
    snapshots.preflight: Described(sn.Preflight, pr.PreflightBody),
}
