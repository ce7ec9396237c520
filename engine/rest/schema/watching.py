"""The answer of `/headwater/watch`."""

from __future__ import annotations

from typing import TypedDict

from engine.rest.schema.checkpoints import Checkpoints
from engine.rest.schema.cluster import AggregatedMetric, Metric
from engine.rest.schema.jobs import Failures, Job
from engine.rest.schema.running import Progress


class WatchedJob(TypedDict):
    """One job; each part is the answer of a route of its own."""

    job: Job
    checkpoints: Checkpoints
    exceptions: Failures
    progress: Progress
    metrics: list[Metric]
    vertices: dict[str, list[AggregatedMetric]]
    stateBytes: dict[str, int]


class WatchedJobs(TypedDict):
    """Those that were asked for and are known."""

    jobs: list[WatchedJob]
