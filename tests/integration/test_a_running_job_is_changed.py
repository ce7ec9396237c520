"""Real processes: a running job gets another parallelism or pace, and its output stays the same."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from engine.rest.client import Refused
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import RescaleRequest
from engine.testing.cluster import wait_until
from integration import recording
from integration.conftest import Bench

pytestmark = pytest.mark.integration

SLOWLY = 300
"""Rows a second: the input lasts longer than any of this takes, however busy the machine is."""


def start(bench: Bench) -> str:
    """A job that reads slowly."""
    bench.settings = {"headwater.read-limit": str(SLOWLY)}
    job = bench.submit(parallelism=1)
    bench.await_status(job, JobStatus.RUNNING)
    return job


def await_rescale(bench: Bench, job: str, trigger: str) -> str | None:
    """Wait until a rescale is over; return why it failed, if it did."""
    wait_until(
        lambda: bench.status(job) is not None and bench.client.rescale_status(job, trigger).done,
        "the rescale is over",
    )
    return bench.client.rescale_status(job, trigger).failure


def test_a_job_is_rescaled_up_and_down_by_one_call_each(
    bench: Bench, undisturbed: pl.DataFrame
) -> None:
    job = start(bench)
    with pytest.raises(Refused, match="needs 5 slots: got 4, free or its own"):
        bench.client.rescale(job, RescaleRequest(5))
    for parallelism in (3, 2):
        bench.await_checkpoints(job, 1)
        trigger = bench.client.rescale(job, RescaleRequest(parallelism))
        assert await_rescale(bench, job, trigger) is None
        assert {v.parallelism for v in bench.client.job(job).vertices} == {parallelism}
    bench.client.limit_reading(job, None)
    assert bench.await_end(job) is JobStatus.FINISHED
    assert_frame_equal(recording.written(bench.output), undisturbed, check_exact=True)


def test_a_rescale_and_a_limit_outlive_a_job_manager_that_is_killed(
    bench: Bench, undisturbed: pl.DataFrame
) -> None:
    job = start(bench)
    bench.await_checkpoints(job, 1)
    trigger = bench.client.rescale(job, RescaleRequest(3))
    bench.cluster.kill_job_manager()
    bench.cluster.restart_job_manager()
    assert await_rescale(bench, job, trigger) is None
    assert {v.parallelism for v in bench.client.job(job).vertices} == {3}
    (limit,) = bench.client.read_limits(job)
    assert limit.rows_per_second == SLOWLY
    bench.client.limit_reading(job, None)
    assert bench.await_end(job) is JobStatus.FINISHED
    assert_frame_equal(recording.written(bench.output), undisturbed, check_exact=True)
