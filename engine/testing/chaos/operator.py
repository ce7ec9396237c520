"""The person who looks after the job: starts it, takes savepoints, moves it, waits for its end.

    submitted ─▶ runs ─ told to move ─▶ stopping ─ stopped ─▶ submitted again, from its savepoint
                   └─ finished ─▶ over

Every request carries an id of its own, so that it can be repeated when nobody has answered: a job
manager that was killed may have accepted it.

Errors   JobLost when a job ends in a way that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from engine.errors import ExternalError
from engine.rest.client import EngineClient, EngineUnreachable, NotFound, Refused
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import (
    Program,
    RescaleRequest,
    RunRequest,
    SavepointRequest,
    StopRequest,
)


class JobLost(ExternalError):
    """The job ended in a way that nobody asked for."""


class Operator:
    """Brings the chaos job to its end, over REST only."""

    def __init__(self, client: EngineClient, chance: Random) -> None:
        self.job = ""
        self._client = client
        self._chance = chance
        self._file = Path()
        self._program = Program("")
        self._submission: RunRequest | None = None
        """To be sent, until it is known to have arrived."""
        self._stop: StopRequest | None = None
        self._stop_arrived = False
        self._parallelism = 1
        """Of the next start."""

    def start(
        self, file: Path, arguments: Sequence[str], parallelism: int, settings: Mapping[str, str]
    ) -> None:
        """Submit the job."""
        self._file, self._program = file, Program("", tuple(arguments), settings=settings)
        self._parallelism = parallelism
        self._submit_next(None)

    def savepoint(self) -> str:
        """Ask for a savepoint; what becomes of it is the engine's affair."""
        request = SavepointRequest(trigger_id=self._id())
        return self._try(lambda: self._client.trigger_savepoint(self.job, request))

    def rescale(self, parallelism: int) -> str:
        """Ask for another parallelism; what becomes of it is the engine's affair."""
        request = RescaleRequest(parallelism, trigger_id=self._id())
        return self._try(lambda: self._client.rescale(self.job, request))

    def _try(self, ask: Callable[[], object]) -> str:
        try:
            ask()
        except (EngineUnreachable, Refused) as error:
            return f"in vain, {error}"
        return f"job {self.job[:8]}"

    def move(self, parallelism: int) -> str:
        """Have the job stopped; `advance` starts it again at another parallelism."""
        if self._stop is None and self._submission is None:
            self._stop, self._stop_arrived = StopRequest(trigger_id=self._id()), False
            self._parallelism = parallelism
        return f"job {self.job[:8]} to parallelism {self._parallelism}"

    def has_checkpoint(self) -> bool:
        """Whether the job would start again from a snapshot of its own."""
        try:
            return self._client.checkpoints(self.job).counts.completed > 0
        except (EngineUnreachable, NotFound):
            return False

    def advance(self) -> bool:
        """Go on with what is under way; whether the job is over. Raises JobLost."""
        try:
            if self._submission is not None:
                self._submit(self._submission)
            if self._stop is not None:
                self._look_after(self._stop)
            under_way = self._stop is not None or self._submission is not None
            return not under_way and self._is_over()
        except EngineUnreachable:
            return False

    def _is_over(self) -> bool:
        status = self._client.job_status(self.job)
        if status.terminal and status is not JobStatus.FINISHED:
            cause = self._client.job_failures(self.job)[0].sentence
            msg = f"job {self.job} is {status}: {cause}"
            raise JobLost(msg)
        return status is JobStatus.FINISHED

    def _look_after(self, stop: StopRequest) -> None:
        assert stop.trigger_id is not None
        if not self._stop_arrived:
            try:
                self._client.stop(self.job, stop)
            except Refused:  # its input has ended, and so has the job
                self._stop = None
                return
            self._stop_arrived = True
        status = self._client.savepoint_status(self.job, stop.trigger_id)
        if status.done:
            self._stop = None
            if status.location is not None and status.failure is None:
                self._submit_next(status.location)

    def _submit_next(self, savepoint: str | None) -> None:
        self.job = self._id()
        program = replace(self._program, parallelism=self._parallelism)
        self._submission = RunRequest(program, job_id=self.job, savepoint_path=savepoint)

    def _submit(self, request: RunRequest) -> None:
        """Upload the job file, whether it is there or not, and start it."""
        try:
            artifact = self._client.upload(self._file.name, self._file.read_bytes())
            program = replace(request.program, artifact_id=artifact)
            self._client.run(replace(request, program=program))
        except Refused as refused:
            if "is taken" not in refused.message:  # it had arrived, and nobody lived to say so
                raise
        self._submission = None

    def _id(self) -> str:
        return f"{self._chance.getrandbits(128):032x}"
