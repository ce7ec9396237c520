"""A full disk, with real processes: checkpoints fail and say why, the job runs on, nothing is lost.

chk-7/hourly/.sums-0.parquet.4711.tmp -> /dev/full      what process 4711 writes there meets
                                                        a full disk: the kernel's own ENOSPC
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from engine.rest.answers.checkpoints import CheckpointEntry
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import StopRequest
from engine.testing.cluster import wait_until
from integration import recording
from integration.conftest import Bench

pytestmark = pytest.mark.integration

PACE = 3_600 * 4
"""The recording takes ten seconds."""
SOON, FULL = 4, 5
"""Checkpoints from now on that still find room, and those that find none."""


def fill(folder: Path, ids: Iterable[int], files: Iterable[str], pids: Iterable[int]) -> None:
    """Leave no room for some files of coming checkpoints."""
    for id_ in ids:
        for file in files:
            for pid in pids:
                path = folder / f"chk-{id_}" / file
                path.parent.mkdir(parents=True, exist_ok=True)
                (path.parent / f".{path.name}.{pid}.tmp").symlink_to("/dev/full")


def failed_from(bench: Bench, job: str, first: int) -> list[CheckpointEntry]:
    history = bench.client.checkpoints(job).history
    return [entry for entry in history if entry.id >= first and entry.failed_ms]


def newest(bench: Bench, job: str) -> CheckpointEntry:
    found = bench.client.checkpoints(job).latest_completed
    assert found is not None
    return found


def test_checkpoints_fail_while_the_disk_is_full_and_the_next_one_succeeds(
    bench: Bench, undisturbed: pl.DataFrame
) -> None:
    job = bench.submit(speed=PACE)
    bench.await_status(job, JobStatus.RUNNING)
    bench.await_checkpoints(job, 2)
    complete = newest(bench, job)
    manifest = json.loads((Path(str(complete.external_path)) / "_metadata").read_text())
    states = [state for operator in manifest["operators"] for state in operator["states"]]
    files = [file["path"] for state in states for file in state["files"]]
    assert files
    folder = bench.cluster.home / "checkpoints" / job
    first = complete.id + SOON
    workers = [process.pid for process in bench.cluster.workers()]
    manager = json.loads((bench.cluster.home / "jobmanager.json").read_text())["pid"]
    fill(folder, range(first, first + FULL), files, workers)
    fill(folder, range(first + FULL, first + 2 * FULL), ["_metadata"], [manager])

    wait_until(lambda: len(failed_from(bench, job, first)) == 2 * FULL, "all of them failed")
    wait_until(lambda: newest(bench, job).id >= first + 2 * FULL, "the next one succeeded")
    for entry in failed_from(bench, job, first):
        reason = "a subtask could not write its part" if entry.id < first + FULL else "recorded"
        assert reason in str(entry.failure)
        assert "No space left on device" in str(entry.failure)
    assert bench.client.job_failures(job) == []
    assert bench.await_end(job) is JobStatus.FINISHED
    assert len(list(folder.iterdir())) == 3
    assert_frame_equal(recording.written(bench.output), undisturbed, check_exact=True)


def test_a_stop_that_cannot_be_stored_leaves_the_job_running_and_the_next_one_ends_it(
    bench: Bench, undisturbed: pl.DataFrame, tmp_path: Path
) -> None:
    job = bench.submit(speed=PACE)
    bench.await_status(job, JobStatus.RUNNING)
    bench.await_checkpoints(job, 1)
    (tmp_path / "file").write_text("in the way")
    trigger = bench.client.stop(job, StopRequest(str(tmp_path / "file")))
    wait_until(lambda: bench.client.savepoint_status(job, trigger).done, "the stop is over")
    assert str(bench.client.savepoint_status(job, trigger).failure).endswith("; the job runs on")
    bench.await_checkpoints(job, 1)
    assert bench.client.job_failures(job) == []
    stopped = bench.await_savepoint(job, bench.client.stop(job, StopRequest()))
    assert bench.status(job) is JobStatus.FINISHED
    again = bench.submit(parallelism=3, savepoint=stopped)
    assert bench.await_end(again) is JobStatus.FINISHED
    assert_frame_equal(recording.written(bench.output), undisturbed, check_exact=True)
