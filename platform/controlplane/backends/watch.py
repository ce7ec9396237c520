"""Watching an engine: everything the collector wants to know of it, asked at once and awaited.

    EngineWatch.look(ids) ─▶ EngineSighting of sightings.py
        our engine       two requests and one for all jobs
        Apache Flink     two requests and what flink_looks.py says is worth asking again

Errors   backends.errors: EngineAway when nobody answers; a job that vanishes while it is looked at
         is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import httpx

from controlplane.backends.errors import EngineAway
from controlplane.backends.flink_looks import FlinkLooks
from controlplane.backends.seeing import (
    JOB_METRICS,
    MAX_FAILURES,
    METRICS,
    Graph,
    sighting_of,
    vertex_sighting,
)
from controlplane.backends.sightings import EngineSighting, JobSighting
from engine.rest.answers.jobs import JobDetail
from engine.rest.answers.watching import WatchedJob
from engine.rest.client import AsyncEngineClient, ClientError, NotFound

TIMEOUT_S = 3.0
"""An engine that takes longer is shown as away: figures are asked for every second."""


class EngineWatch:
    """Asks one engine; belongs to one event loop."""

    def __init__(
        self,
        url: str,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] | None = None,
        token: str | None = None,
    ) -> None:
        self._client = AsyncEngineClient(url, token, TIMEOUT_S, transport)
        self._clock = clock
        self._graphs: dict[str, Graph] = {}
        self._flink: FlinkLooks | None = None
        self._version = ""

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def look(self, job_ids: Iterable[str], since_ms: int = 0) -> EngineSighting:
        """The engine, and these jobs of it. Raises EngineAway.

        Checkpoints that had ended before `since_ms`, by the engine's clock, may be left out.
        """
        try:
            overview, jobs = await asyncio.gather(self._client.overview(), self._client.jobs())
            states = {job.id: job.state.value for job in jobs}
            wanted = [job_id for job_id in job_ids if job_id in states]
            if overview.version != self._version:  # another engine answers: ask it anew
                self._flink, self._version = None, overview.version
            seen = await self._jobs(wanted, states, since_ms)
        except ClientError as error:
            raise EngineAway(str(error)) from error
        return EngineSighting(
            version=overview.version,
            task_managers=overview.task_managers,
            slots=overview.slots_total,
            slots_free=overview.slots_available,
            states=states,
            jobs={job.id: job for job in seen},
        )

    async def capabilities(self) -> Mapping[str, Any]:
        """What the engine says it can do beyond Flink's routes. Raises EngineAway."""
        try:
            found = await self._client.capabilities()
        except NotFound:
            return {"engine": "flink", "features": []}
        except ClientError as error:
            raise EngineAway(str(error)) from error
        return {"engine": found.engine, "features": sorted(found.features)}

    async def _jobs(
        self, wanted: list[str], states: Mapping[str, str], since_ms: int
    ) -> Sequence[JobSighting]:
        if not wanted:
            return []
        if self._flink is None:
            try:
                return await self._all_at_once(wanted, since_ms)
            except NotFound:  # no such route: it is a Flink cluster
                self._flink = FlinkLooks(self._client, self._clock)
        return await self._flink.look(wanted, states)

    async def _all_at_once(self, wanted: list[str], since_ms: int) -> Sequence[JobSighting]:
        self._graphs = {key: one for key, one in self._graphs.items() if key in wanted}
        names = {name.rpartition(".")[2]: None for name in (*METRICS, *JOB_METRICS)}
        seen = await self._client.watch(wanted, names, MAX_FAILURES, since_ms)
        return [_watched(one, await self._graph(one.job)) for one in seen]

    async def _graph(self, detail: JobDetail) -> Graph:
        """What each operator is; asked once."""
        if detail.id not in self._graphs:
            try:
                plan: Mapping[str, Any] | None = await self._client.engine_plan(detail.id)
            except NotFound:  # it has vanished meanwhile
                plan = None
            self._graphs[detail.id] = Graph.of(detail.plan, plan)
        return self._graphs[detail.id]


def _watched(one: WatchedJob, graph: Graph) -> JobSighting:
    vertices = [
        vertex_sighting(
            vertex, one.vertices.get(vertex.id, {}), graph, one.state_bytes.get(vertex.id)
        )
        for vertex in one.job.vertices
    ]
    return sighting_of(one.job, vertices, one.checkpoints, one.progress, one.failures, one.metrics)
