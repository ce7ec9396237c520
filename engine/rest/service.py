"""What the HTTP interface needs from a job manager.

    request ─▶ routes/ (parse) ─▶ EngineService ─▶ model/ (values) ─▶ render/ (Flink's JSON)

`cluster.service` implements it over real processes, `testing.fake_service` in memory for tests.
Every method may be called concurrently, on the event loop, and must not block it.

Errors   methods raise the refusals of `rest.errors` and the errors of `engine.errors`; the app
         turns each into one sentence with its status code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from engine.checkpoint.coordination.stats import CheckpointHistory
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.inspection.questions import StateQuestion, StateRows
from engine.graph.plan import Plan
from engine.rest.model.checkpoints import CheckpointSettings
from engine.rest.model.cluster import Artifact, ClusterInfo
from engine.rest.model.jobs import FailureHistory, JobDetails
from engine.rest.model.operations import JobProgress, Preflight, TriggerStatus
from engine.rest.model.requests import (
    PreflightRequest,
    Program,
    RescaleRequest,
    RunRequest,
    SavepointRequest,
    StopRequest,
)
from engine.rest.model.resources import LocalResources
from engine.rest.model.snapshots import InspectionStatus
from engine.rest.model.sources import SourceLimit
from engine.rest.model.states import StateQuery, StateValue
from engine.rest.model.statistics import StreamingStatistics


class EngineService(Protocol):
    """A job manager, seen from HTTP. An unknown job id raises NotFound in every method."""

    # Reading.

    async def cluster(self) -> ClusterInfo:
        """Version and task managers."""

    async def jobs(self) -> Sequence[JobDetails]:
        """Every job that is remembered, oldest first."""

    async def job(self, job_id: str) -> JobDetails:
        """One job."""

    async def failures(self, job_id: str) -> FailureHistory:
        """Why its attempts failed, newest first."""

    async def checkpoints(self, job_id: str) -> CheckpointHistory:
        """Its checkpoints and savepoints."""

    async def checkpoint_settings(self, job_id: str) -> CheckpointSettings:
        """How it takes checkpoints."""

    async def progress(self, job_id: str) -> JobProgress:
        """How far it is in event time."""

    async def statistics(self, job_id: str, window_s: int, step_s: int) -> StreamingStatistics:
        """What its source batches came to in the last `window_s` seconds, 3,600 at most.

        In steps of `step_s` seconds, of which the window is a whole number.
        """

    async def live_state(self, job_id: str, query: StateQuery) -> StateValue:
        """What one key has in a state of a running job; nothing is found for a key that has none.

        Raises NotFound, BadRequest, ConfigError, Conflict when the job has ended, Unavailable while
        it restarts or does not answer.
        """

    # Artifacts.

    async def artifacts(self) -> Sequence[Artifact]:
        """Uploaded programs, newest first."""

    async def upload_artifact(self, filename: str, content: Path) -> Artifact:
        """Take in the file `content`, which is deleted afterwards. Raises ArtifactError.

        `filename` is one safe path segment ending in .py, .zip or .whl.
        """

    async def delete_artifact(self, artifact_id: str) -> None:
        """Forget an artifact; jobs that run from it are not touched. Raises NotFound."""

    async def plan(self, program: Program) -> Plan:
        """Build the program's graph and return its plan. Raises NotFound, ArtifactError."""

    # Commands.

    async def run(self, request: RunRequest) -> str:
        """Start a job and return its id as soon as it is accepted.

        Raises NotFound (artifact), ArtifactError (no graph), RestoreError or StorageError (the
        snapshot cannot be used), Conflict (the job id is taken): nothing has started then.
        """

    async def cancel(self, job_id: str) -> None:
        """Begin to cancel. Again on a cancelled job is fine; Conflict when it ended otherwise."""

    async def trigger_savepoint(self, job_id: str, request: SavepointRequest) -> str:
        """Begin a savepoint and return its trigger id: the client's own if it gave one.

        Conflict when the job has ended; what goes wrong later is in `savepoint_status`.
        """

    async def stop(self, job_id: str, request: StopRequest) -> str:
        """Begin to stop with a savepoint; as `trigger_savepoint`, polled at the same place."""

    async def savepoint_status(self, job_id: str, trigger_id: str) -> TriggerStatus:
        """Where a savepoint or stop stands. Raises NotFound for an unknown trigger id."""

    async def trigger_checkpoint(self, job_id: str, trigger_id: str | None, *, full: bool) -> str:
        """Begin a checkpoint outside the interval and return its trigger id.

        `full`: it is to build on no earlier one.
        """

    async def checkpoint_status(self, job_id: str, trigger_id: str) -> TriggerStatus:
        """Where a manual checkpoint stands. Raises NotFound for an unknown trigger id."""

    async def dispose_savepoint(self, path: str) -> str:
        """Begin to delete a savepoint's folder and return a trigger id.

        Only a folder that holds a `_metadata` manifest of a savepoint may be deleted.
        """

    async def disposal_status(self, trigger_id: str) -> TriggerStatus:
        """Where a disposal stands. Raises NotFound for an unknown trigger id."""

    # Task managers of this machine.

    async def local_task_managers(self) -> LocalResources:
        """Those that the job manager starts itself."""

    async def start_task_manager(self, name: str | None) -> str:
        """Start one and return its name. Raises BadRequest, Conflict."""

    async def stop_task_manager(self, name: str) -> None:
        """Begin to end one, whoever started it; it stays away. Raises NotFound."""

    async def leave_lost_task_managers(self, wish: bool) -> None:
        """Whether those that are lost stay so, instead of being started again."""

    async def rescale(self, job_id: str, request: RescaleRequest) -> str:
        """Begin to change the parallelism and return a trigger id.

        Raises, and nothing has begun then: Conflict (the job has ended, another rescale is under
        way, too few slots), ConfigError (the job cannot run so), NotFound (vertex).
        """

    async def rescale_status(self, job_id: str, trigger_id: str) -> TriggerStatus:
        """Where a rescale stands. Raises NotFound for an unknown trigger id."""

    async def read_limits(self, job_id: str) -> Sequence[SourceLimit]:
        """How fast each source may read."""

    async def limit_reading(
        self,
        job_id: str,
        source: str | None,
        rows_per_second: float | None,
        times_real_time: float | None = None,
    ) -> Sequence[SourceLimit]:
        """Change how fast a source (by uid), or each, may read, for good; None: as it can.

        Raises Conflict when the job has ended, ConfigError for an unknown source.
        """

    # Snapshots.

    async def savepoint(self, path: str) -> Manifest:
        """Read the manifest of a snapshot. Raises Forbidden, RestoreError, StorageError."""

    async def verify_savepoint(self, path: str, trigger_id: str | None) -> str:
        """Begin to read every byte of a snapshot and return a trigger id.

        Raises Forbidden, Unavailable; what is found later is in `verification`.
        """

    async def verification(self, trigger_id: str) -> InspectionStatus:
        """Where a verification stands. Raises NotFound for an unknown trigger id."""

    async def compare_savepoints(
        self, left: str, right: str, examples: int, trigger_id: str | None
    ) -> str:
        """Begin to compare two snapshots and return a trigger id. Raises as `verify_savepoint`."""

    async def comparison(self, trigger_id: str) -> InspectionStatus:
        """Where a comparison stands. Raises NotFound for an unknown trigger id."""

    async def read_state(self, path: str, question: StateQuestion) -> StateRows:
        """Rows of one state of a snapshot.

        Raises Forbidden, RestoreError, StorageError, TooCostly, Unavailable.
        """

    async def preflight(self, request: PreflightRequest) -> Preflight:
        """Say what a start from a snapshot would restore; starts nothing. Raises as `run`."""
