"""The part of the engine in memory that is about running jobs: statistics, limits, rescales."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from engine.checkpoint.inspection.questions import StateRows
from engine.cluster.answers.state_address import address
from engine.cluster.jobs.rescale import wanted_of
from engine.errors import ConfigError
from engine.graph.rescaling import rescaled_plan
from engine.rest.errors import Conflict, operation_not_found
from engine.rest.model.jobs import JobDetails, JobStatus, TaskStatus
from engine.rest.model.operations import TriggerStatus
from engine.rest.model.requests import RescaleRequest
from engine.rest.model.sources import SourceLimit
from engine.rest.model.states import StateQuery, StateValue
from engine.rest.model.statistics import StreamingStatistics
from engine.testing import fake_values as values

START_MS = 1_796_011_154_430


class FakeRunning:
    """Implements what `EngineService` says about running jobs."""

    def __init__(self) -> None:
        self.known: dict[str, JobDetails] = {}
        self.limits: dict[str, tuple[float | None, float | None]] = {}
        self._rescales: dict[tuple[str, str], list[TriggerStatus]] = {}
        """What polls answer: all but the last once."""

    @abstractmethod
    async def job(self, job_id: str) -> JobDetails:
        """One job."""

    async def running(self, job_id: str) -> JobDetails:
        """One job that runs."""
        job = await self.job(job_id)
        if job.status is not JobStatus.RUNNING:
            msg = f"job {job_id} is not running: it is {job.status}; start it first"
            raise Conflict(msg)
        return job

    async def live_state(self, job_id: str, query: StateQuery) -> StateValue:
        """The columns of the state; no key has anything."""
        job = await self.running(job_id)
        state = address(job.plan, query).state
        return StateValue(state.kind, StateRows({**state.keys, **state.values}, ()))

    async def statistics(self, job_id: str, window_s: int, step_s: int) -> StreamingStatistics:
        """A steady stream."""
        await self.job(job_id)
        return values.statistics(START_MS, window_s, step_s)

    async def rescale(self, job_id: str, request: RescaleRequest) -> str:
        """Change at once, if there are slots."""
        job = await self.running(job_id)
        plan = rescaled_plan(job.plan, wanted_of(request, job.plan))
        needed, slots = plan.slots, 4 * len(values.MANAGERS)
        if needed > slots:
            msg = f"rescale of job {job_id} needs {needed} slots: got {slots}; choose less"
            raise Conflict(msg)
        vertices = tuple(
            values.vertex(vertex, TaskStatus.RUNNING, START_MS + 10, -1) for vertex in plan.vertices
        )
        self.known[job_id] = replace(job, plan=plan, vertices=vertices, parallelism=needed)
        trigger = request.trigger_id or f"{len(self._rescales):032x}"
        self._rescales.setdefault((job_id, trigger), [TriggerStatus(False), TriggerStatus(True)])
        return trigger

    async def rescale_status(self, job_id: str, trigger_id: str) -> TriggerStatus:
        """Where a rescale stands."""
        answers = self._rescales.get((job_id, trigger_id))
        if answers is None:
            raise operation_not_found("rescale", trigger_id)  # noqa: EM101  a noun, not the message
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def read_limits(self, job_id: str) -> Sequence[SourceLimit]:
        """What `limit_reading` has set."""
        await self.job(job_id)
        limit = self.limits.get(job_id, (None, None))
        return (SourceLimit("flights", "Source: flights", values.SOURCE_ID, *limit),)

    async def limit_reading(
        self,
        job_id: str,
        source: str | None,
        rows_per_second: float | None,
        times_real_time: float | None = None,
    ) -> Sequence[SourceLimit]:
        """Remember it."""
        await self.running(job_id)
        if source not in (None, "flights"):
            msg = f"source {source!r} is not in the job: it has flights; name one of them"
            raise ConfigError(msg)
        self.limits[job_id] = rows_per_second, times_real_time
        return await self.read_limits(job_id)
