"""An engine behind REST: Headwater's own, or Apache Flink.

The one client does the talking; here its answers and errors become those of `backends.contract`.

Times    event times come as int64 microseconds; the largest stands for the end of all input, which
         is no date: it is None here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from controlplane.backends.asking import asking
from controlplane.backends.connections import connection
from controlplane.backends.contract import (
    EngineJob,
    Preflight,
    RestoreRow,
    SavepointSummary,
    SourceInput,
    Start,
    TriggerStatus,
)
from controlplane.backends.errors import EngineRefused, UnknownJob, UnknownTrigger, Unsupported
from controlplane.backends.manifests import contents_of
from controlplane.backends.plans import plan_json
from controlplane.backends.rest_snapshots import RestSnapshots
from controlplane.backends.tokens import Address
from engine.rest.answers.jobs import JobDetail
from engine.rest.calls.call import BUILD_S
from engine.rest.client import EngineClient, NotFound
from engine.rest.model.jobs import TaskStatus
from engine.rest.model.requests import (
    PreflightRequest,
    Program,
    RescaleRequest,
    RunRequest,
    SavepointRequest,
    StopRequest,
)

QUICK_S = 10.0
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RestBackend(RestSnapshots):
    """One engine behind its REST address."""

    def __init__(self, quick: EngineClient, builds: EngineClient) -> None:
        self._quick = quick
        self._builds = builds

    @classmethod
    def at(cls, address: Address) -> RestBackend:
        """The engine at that address; connections are shared by all who ask for it."""
        return cls(connection(address, QUICK_S), connection(address, BUILD_S))

    def upload(self, filename: str, content: Path) -> str:
        """Send the file."""
        try:
            file = content.read_bytes()
        except OSError as error:
            msg = (
                f"job file {filename} is not readable: {error.strerror}; upload it as a new version"
            )
            raise EngineRefused(msg) from error
        with asking():
            return self._builds.upload(filename, file)

    def check(self, artifact_id: str, arguments: Sequence[str], parallelism: int) -> None:
        """Ask for the plan."""
        with asking():
            self._builds.plan(Program(artifact_id, tuple(arguments), parallelism))

    def start(self, request: Start) -> None:
        """Run the artifact under our id."""
        with asking():
            self._builds.run(
                RunRequest(
                    program=_program(request),
                    job_id=request.engine_job_id,
                    savepoint_path=request.savepoint_path or None,
                    allow_non_restored=request.allow_non_restored,
                    accept_missing_input=request.accept_missing_input,
                )
            )

    def job(self, engine_job_id: str) -> EngineJob:
        """State, tasks, plan, and why it failed or restarts."""
        with asking(UnknownJob):
            detail = self._quick.job(engine_job_id)
            return _job(detail, self._failure_of(detail))

    def _failure_of(self, detail: JobDetail) -> str:
        if detail.state == "FAILED":
            return self._quick.job_result(detail.id).failure or ""
        if detail.state == "RESTARTING":
            return next((one.sentence for one in self._quick.job_failures(detail.id, 1)), "")
        return ""

    def engine_plan(self, engine_job_id: str) -> Mapping[str, Any]:
        """Ask for it; Flink has none."""
        with asking(UnknownJob):
            try:
                return self._quick.engine_plan(engine_job_id)
            except NotFound:
                return {}

    def limit_reading(
        self,
        engine_job_id: str,
        rows_per_second: float | None,
        times_real_time: float | None = None,
    ) -> None:
        """Limit every source."""
        with asking(UnknownJob):
            self._quick.limit_reading(engine_job_id, rows_per_second, None, times_real_time)

    def cancel(self, engine_job_id: str) -> None:
        """Cancel."""
        with asking(UnknownJob):
            self._quick.cancel(engine_job_id)

    def trigger_savepoint(self, engine_job_id: str, folder: str, trigger_id: str) -> None:
        """Trigger under our id."""
        with asking(UnknownJob):
            self._quick.trigger_savepoint(engine_job_id, SavepointRequest(folder, trigger_id))

    def stop(self, engine_job_id: str, folder: str, trigger_id: str, *, drain: bool) -> None:
        """Stop under our id."""
        with asking(UnknownJob):
            self._quick.stop(engine_job_id, StopRequest(folder, trigger_id, drain))

    def savepoint_status(self, engine_job_id: str, trigger_id: str) -> TriggerStatus:
        """Poll."""
        with asking(UnknownTrigger):
            status = self._quick.savepoint_status(engine_job_id, trigger_id)
        return TriggerStatus(status.done, status.location or "", status.failure or "")

    def savepoint_locations(self, engine_job_id: str) -> Sequence[str]:
        """From the checkpoint statistics."""
        with asking(UnknownJob):
            found = self._quick.checkpoints(engine_job_id)
        entries = (*found.history, found.latest_savepoint)
        return [
            entry.external_path
            for entry in entries
            if entry and entry.is_savepoint and entry.external_path
        ]

    def newest_snapshot(self, engine_job_id: str) -> str:
        """From the checkpoint statistics."""
        with asking(UnknownJob):
            newest = self._quick.checkpoints(engine_job_id).latest_completed
        return (newest.external_path or "") if newest else ""

    def rescale(self, engine_job_id: str, parallelism: int, trigger_id: str) -> None:
        """Rescale under our id."""
        self._require("rescale", "rescale a running job")
        with asking(UnknownJob):
            self._quick.rescale(
                engine_job_id, RescaleRequest(parallelism=parallelism, trigger_id=trigger_id)
            )

    def rescale_status(self, engine_job_id: str, trigger_id: str) -> TriggerStatus:
        """Poll."""
        with asking(UnknownTrigger):
            status = self._quick.rescale_status(engine_job_id, trigger_id)
        return TriggerStatus(status.done, failure=status.failure or "")

    def savepoint(self, location: str) -> SavepointSummary:
        """Read the manifest; Flink has no way to, so little is known of its savepoints."""
        with asking():
            try:
                found = self._quick.savepoint(location)
            except NotFound:
                return SavepointSummary(location, "", None, None, None, {})
        return SavepointSummary(
            location=found.path,
            job_name=found.job_name,
            checkpoint_id=found.checkpoint_id,
            size_bytes=found.size_bytes,
            event_time=event_time(found.event_time_us),
            source_positions={uid: dict(splits) for uid, splits in found.source_positions.items()},
            created_ms=found.created_ms,
            contents=contents_of(found.manifest),
        )

    def preflight(self, request: Start) -> Preflight:
        """Let the engine compare the savepoint with the graph."""
        self._require("preflight", "compare a snapshot with a job")
        asked = PreflightRequest(
            _program(request),
            request.savepoint_path,
            request.allow_non_restored,
            request.accept_missing_input,
        )
        with asking():
            report = self._builds.preflight(asked)
        rows = [
            RestoreRow(
                uid=row.uid,
                name=row.name,
                state=row.state,
                outcome=row.outcome,
                sentence=row.sentence,
                rows=row.rows,
                allowed=row.allowed,
            )
            for row in report.rows
        ]
        inputs = [SourceInput(one.uid, one.gone, one.unknown) for one in report.inputs]
        return Preflight(report.ok, rows, report.refusals, inputs)

    def _require(self, feature: str, to: str) -> None:
        """Refuse what only some engines can do. Raises Unsupported."""
        with asking():
            try:
                features = self._quick.capabilities().features
            except NotFound:  # Apache Flink has no such route
                features = frozenset()
        if feature not in features:
            msg = f"the engine at {self._quick.url} cannot {to}"
            raise Unsupported(msg)


def event_time(micros: int | None) -> datetime | None:
    """A date, or None for what is no date: unknown, before all time, after all input."""
    try:
        return None if micros is None else EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None


def _program(request: Start) -> Program:
    return Program(
        request.artifact_id,
        tuple(request.arguments),
        request.parallelism,
        dict(request.settings),
    )


def _job(detail: JobDetail, failure: str) -> EngineJob:
    tasks = [vertex.tasks for vertex in detail.vertices]
    return EngineJob(
        engine_job_id=detail.id,
        name=detail.name,
        state=detail.state.value,
        tasks_running=sum(count.get(TaskStatus.RUNNING.value, 0) for count in tasks),
        tasks_total=sum(vertex.parallelism for vertex in detail.vertices),
        failure=failure,
        waiting_for=detail.waiting_for or "",
        plan=plan_json(detail.plan),
    )
