"""Looks at the jobs of a Flink cluster, which has no route for many jobs: what to ask again, when.

    part                         asked again
    state                        every look, of all jobs in one request (the caller's)
    detail, checkpoints          after 3 s      Flink keeps an answer so long (web.refresh-interval)
    metrics of job and vertices  after 10 s     and those so long (metrics.fetcher.update-interval)
    names of a vertex's metrics  with them, until it has all that is wanted
    failures                     when the state or the number of restarts changed, else after 30 s
    all of them                  when the state is another one than the detail says

Asking more often gives the same answers; at these intervals 200 jobs cost some 200 requests a
second. First looks are spread, so that they do not all come due at once.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from controlplane.backends.flink_figures import askable, ours
from controlplane.backends.seeing import (
    JOB_METRICS,
    MAX_FAILURES,
    Graph,
    Metrics,
    sighting_of,
    vertex_sighting,
)
from controlplane.backends.sightings import JobSighting
from engine.rest.answers.checkpoints import CheckpointList
from engine.rest.answers.jobs import FailureEntry, JobDetail
from engine.rest.client import AsyncEngineClient, NotFound

T = TypeVar("T")

DETAIL_S, METRICS_S, FAILURES_S = 3.0, 10.0, 30.0
AT_ONCE = 16
"""Requests on their way at a time: more would wait for a connection until they time out."""


@dataclass(slots=True)
class _Known:
    """What is known of one job, and when each part is due again."""

    state: str = ""
    """As all jobs were listed when the parts were asked for."""
    detail: JobDetail | None = None
    checkpoints: CheckpointList | None = None
    numbers: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, Metrics] = field(default_factory=dict)
    called: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Of vertices that have all that is wanted: what to ask for, and our names of it."""
    failures: Sequence[FailureEntry] = ()
    failures_of: tuple[str, str | None] = ("", None)
    """State and restarts that the failures belong to."""
    detail_due: float = 0.0
    metrics_due: float = 0.0
    failures_due: float = 0.0


class FlinkLooks:
    """Belongs to one event loop; `clock` gives seconds."""

    def __init__(self, client: AsyncEngineClient, clock: Callable[[], float] | None = None) -> None:
        self._client = client
        self._clock = clock or asyncio.get_running_loop().time
        self._known: dict[str, _Known] = {}
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def look(self, wanted: Sequence[str], states: Mapping[str, str]) -> list[JobSighting]:
        """These jobs; one that has vanished is left out."""
        self._known = {key: self._known.get(key) or _Known() for key in wanted}
        seen = await asyncio.gather(*(self._job(job_id, states[job_id]) for job_id in wanted))
        return [one for one in seen if one is not None]

    async def _job(self, job_id: str, state: str) -> JobSighting | None:
        known, now = self._known[job_id], self._clock()
        first = known.detail is None
        if first or known.state != state or now >= known.detail_due:
            known.detail, known.checkpoints = await asyncio.gather(
                self._ask(self._client.job(job_id)), self._ask(self._client.checkpoints(job_id))
            )
            known.detail_due = now + _wait(job_id, DETAIL_S, first)
        if known.detail is None:
            return None
        if first or known.state != state or now >= known.metrics_due:
            await self._metrics(known.detail, known)
            known.metrics_due = now + _wait(job_id, METRICS_S, first)
        known.state = state
        of = (state, known.numbers.get("numRestarts"))
        if of != known.failures_of or now >= known.failures_due:
            found = await self._ask(self._client.job_failures(job_id, MAX_FAILURES))
            known.failures, known.failures_of = found or (), of
            known.failures_due = now + FAILURES_S
        return _sighting(known.detail, known)

    async def _metrics(self, detail: JobDetail, known: _Known) -> None:
        graph = Graph.of(detail.plan, None)
        ids = [vertex.id for vertex in detail.vertices]
        figures = await asyncio.gather(
            *(self._figures(detail.id, key, graph.metrics_of(key), known) for key in ids)
        )
        known.figures = dict(zip(ids, figures, strict=True))
        known.numbers = await self._ask(self._client.job_metrics(detail.id, JOB_METRICS)) or {}

    async def _figures(
        self, job_id: str, vertex_id: str, wanted: Sequence[str], known: _Known
    ) -> Metrics:
        called = known.called.get(vertex_id)
        if called is None:
            names = await self._ask(self._client.metric_names(job_id, vertex_id)) or ()
            called = askable(frozenset(names), wanted)
        if not called:
            return {}
        figures = await self._ask(self._client.subtask_metrics(job_id, vertex_id, tuple(called)))
        known.called.pop(vertex_id, None)
        if figures and set(called.values()) >= set(wanted):
            known.called[vertex_id] = called
        return ours(figures or {}, called)

    async def _ask(self, answer: Awaitable[T]) -> T | None:
        """None where the cluster knows no such job (any more)."""
        async with self._gate:
            try:
                return await answer
            except NotFound:
                return None


def _sighting(detail: JobDetail, known: _Known) -> JobSighting:
    graph = Graph.of(detail.plan, None)
    vertices = [
        vertex_sighting(vertex, known.figures.get(vertex.id, {}), graph)
        for vertex in detail.vertices
    ]
    return sighting_of(detail, vertices, known.checkpoints, None, known.failures, known.numbers)


def _wait(job_id: str, period_s: float, first: bool) -> float:
    """Until a part is due again; the first time a share of the period that the id decides."""
    share = int.from_bytes(hashlib.blake2b(job_id.encode(), digest_size=2).digest()) / 65_536
    return period_s * share if first else period_s
