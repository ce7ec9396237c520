"""Claim modes and consent, with real processes and real snapshots."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from engine.rest.client import Refused
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import (
    ClaimMode,
    Program,
    RunRequest,
    SavepointRequest,
    StopRequest,
)
from integration import recording
from integration.conftest import JOB_FILE, Bench

pytestmark = pytest.mark.integration

PACE = 3_600 * 6
SLOW = 600
"""The recording takes minutes: the job runs until the test cancels it."""
SELDOM = {"execution.checkpointing.interval": "1h"}


def stopped(bench: Bench) -> str:
    """A savepoint from the middle of the job."""
    job = bench.submit(speed=PACE)
    bench.await_status(job, JobStatus.RUNNING)
    bench.await_checkpoints(job, 2)
    return bench.await_savepoint(job, bench.client.stop(job, StopRequest()))


def program(bench: Bench, content: str, pace: int = PACE, **settings: str) -> Program:
    artifact = bench.client.upload("counting.py", content.encode())
    arguments = (str(bench.data), str(bench.output), str(pace))
    return Program(artifact, arguments, 3, settings)


@pytest.mark.parametrize("claim", ClaimMode)
def test_a_kill_before_the_first_checkpoint_goes_back_to_the_snapshot(
    bench: Bench, undisturbed: pl.DataFrame, claim: ClaimMode
) -> None:
    savepoint = stopped(bench)
    again = program(bench, JOB_FILE.read_text(), **SELDOM)
    job = bench.client.run(RunRequest(again, savepoint_path=savepoint, claim=claim))
    bench.await_status(job, JobStatus.RUNNING)
    bench.kill_worker(job)
    assert bench.await_end(job) is JobStatus.FINISHED
    restored = bench.client.checkpoints(job).restored
    assert restored is not None
    assert restored.external_path == savepoint
    assert Path(savepoint, "_metadata").exists()
    assert_frame_equal(recording.written(bench.output), undisturbed, check_exact=True)


def test_consent_to_lose_state_is_for_one_restore_only(bench: Bench) -> None:
    savepoint, text = stopped(bench), JOB_FILE.read_text()
    other = program(bench, text.replace('uid="hourly"', 'uid="hours"'), SLOW, **SELDOM)
    request = RunRequest(other, savepoint_path=savepoint)
    with pytest.raises(Refused, match="hourly"):
        bench.client.run(request)
    consent = RunRequest(other, savepoint_path=savepoint, allow_non_restored=frozenset({"hourly"}))
    job = bench.client.run(consent)
    bench.await_status(job, JobStatus.RUNNING)
    bench.kill_worker(job)
    bench.await_status(job, JobStatus.RUNNING)
    mine = bench.await_savepoint(job, bench.client.trigger_savepoint(job, SavepointRequest()))
    with pytest.raises(Refused, match="hours"):
        bench.client.run(RunRequest(program(bench, text), savepoint_path=mine))
    bench.client.cancel(job)
    bench.await_end(job)
