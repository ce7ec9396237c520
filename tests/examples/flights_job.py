"""The flights job on a real cluster, driven as people drive it: upload, run, savepoint, stop.

Needs   engine.testing.cluster for the processes and engine.rest.client for the requests; where an
        output stands is read from its files alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
from polars.testing import assert_frame_equal

from engine.rest.client import EngineClient, EngineUnreachable
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import Program, RunRequest, SavepointRequest, StopRequest
from engine.testing.cluster import PATIENCE_S
from examples.truth import EXAMPLES, Cut, read_output

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400


class FlightsJob:
    """One job of one of the two versions, on one cluster."""

    def __init__(
        self,
        url: str,
        output: Path,
        *,
        version: int = 1,
        parallelism: int = 1,
        days_per_second: float = 0,
        bounded: bool = True,
        savepoint: Path | None = None,
        shadow: str | None = None,
    ) -> None:
        """Upload and start it; 0 days per second is as fast as it can."""
        self.client = EngineClient(url, timeout=PATIENCE_S)
        self.output = output.with_name(f"{output.name}@{shadow}") if shadow else output
        file = EXAMPLES / ("flights.py" if version == 1 else f"flights_v{version}.py")
        speed = str(days_per_second * DAY)
        arguments = ["--output", str(output), "--speed", speed, "--no-points"]
        if bounded:
            arguments.append("--bounded")
        settings = {"headwater.sinks.shadow": shadow} if shadow else {}
        artifact = self.client.upload(file.name, file.read_bytes())
        program = Program(artifact, tuple(arguments), parallelism, settings)
        path = None if savepoint is None else str(savepoint)
        self.id = self.client.run(RunRequest(program, savepoint_path=path))

    def close(self) -> None:
        """Close the connection; the job runs on."""
        self.client.close()

    def wait_until_finished(self) -> None:
        """Wait for the end of the year."""
        self.wait_for(lambda: self.status().terminal, "the end of the job")
        self._assert_finished()

    def wait_until_running(self) -> None:
        """Wait for the start, or for a restart."""
        self.wait_for(lambda: self.status() is JobStatus.RUNNING, "a running job")

    def wait_for_month(self, month: str) -> None:
        """Wait until a day of this month, e.g. 2013-03, has been written."""
        self.wait_for(lambda: any(self.output.glob(f"{month}/[!.]*.parquet")), f"rows of {month}")

    def wait_for_event_time(self, moment: datetime) -> None:
        """Wait until the engine says that everything before a moment is done."""
        wanted = (moment - EPOCH) // timedelta(microseconds=1)

        def reached() -> bool:
            position = self.client.progress(self.id).event_time_us
            return position is not None and position >= wanted

        self.wait_for(reached, f"event time {moment}")

    def savepoint(self, target: Path) -> Path:
        """Take a savepoint; its folder."""
        trigger = self.client.trigger_savepoint(self.id, SavepointRequest(str(target)))
        return self._location(trigger)

    def stop(self, target: Path) -> Path:
        """Stop with a savepoint; its folder."""
        location = self._location(self.client.stop(self.id, StopRequest(str(target))))
        self.wait_until_finished()
        return location

    def cancel(self) -> None:
        """Cancel and wait until it is."""
        self.client.cancel(self.id)
        self.wait_for(lambda: self.status() is JobStatus.CANCELED, "the job's cancellation")

    def wait_for_failure(self, kill: Callable[[], object]) -> None:
        """Kill something, and wait until the job manager has noticed."""
        known = self.failures()
        kill()
        self.wait_for(lambda: self.failures() > known, "the failure to be noticed")

    def failures(self) -> int:
        """How often the job failed and was restarted."""
        return len(self.client.job_failures(self.id, at_most=100))

    def status(self) -> JobStatus:
        """The job's state now."""
        return self.client.job_status(self.id)

    def wait_for(self, reached: Callable[[], bool], what: str) -> None:
        """Wait for something to become true, also while the job manager is down."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                if reached():
                    return
            except EngineUnreachable:
                pass
            time.sleep(0.05)
        msg = f"waited {PATIENCE_S} s for {what}: {self._story()}"
        raise AssertionError(msg)

    def assert_output(self, expected: pl.DataFrame) -> None:
        """Assert that every row is there, bit for bit, once, and nothing else."""
        assert_frame_equal(read_output(self.output), expected, check_exact=True)
        assert list(self.output.rglob(".*")) == [], "hidden files were left behind"

    def _location(self, trigger: str) -> Path:
        self.wait_for(lambda: self.client.savepoint_status(self.id, trigger).done, "a savepoint")
        status = self.client.savepoint_status(self.id, trigger)
        assert status.failure is None, status.failure
        assert status.location is not None
        return Path(status.location.removeprefix("file://"))

    def _assert_finished(self) -> None:
        assert self.status() is JobStatus.FINISHED, self._story()

    def _story(self) -> str:
        failures = self.client.job_failures(self.id)
        return f"{self.status()}, {len(failures)} failures, latest: {failures[:1]}"


def cut_of(savepoint: Path) -> Cut:
    """Where a savepoint cuts the stream, read from its manifest as anyone would."""
    manifest = json.loads((savepoint / "_metadata").read_text())
    operators = {operator["uid"]: operator for operator in manifest["operators"]}
    splits = operators["flights"]["splits"]
    rows = {name: split["position"]["row"] for name, split in splits.items()}
    return Cut(rows, EPOCH + timedelta(microseconds=operators["daily"]["watermark"]))
