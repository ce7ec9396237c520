"""Checkpoints of a large state are layers, and a job goes on from them, whatever dies."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from engine.checkpoint.inspection.reading import open_snapshot
from engine.checkpoint.inspection.verification import verify
from engine.rest.model.jobs import JobStatus
from engine.testing.cluster import wait_until
from integration.conftest import Bench
from integration.recording import START_US, visible

pytestmark = pytest.mark.integration

JOB_FILE = Path(__file__).parent / "remembering_job.py"

KEYS, AGAIN, SECONDS = 30_000, 3_000, 20
"""Every key once at the beginning, then some of them again, over so many seconds."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pace = SECONDS * 1_000_000 // AGAIN
    at = [*range(KEYS), *(KEYS + row * pace for row in range(AGAIN))]
    keys = [*range(KEYS), *(row * 7 % 1_000 for row in range(AGAIN))]
    path = tmp_path_factory.mktemp("keys") / "rows.parquet"
    at_us = (pl.Series("at", at) + START_US).cast(pl.Datetime("us", "UTC"))
    pl.DataFrame({"at": at_us, "key": keys}).write_parquet(path)
    return path


def layered(bench: Bench, job: str) -> str | None:
    """The latest checkpoint, if it has written less than it holds."""
    latest = bench.client.checkpoints(job).latest_completed
    if latest is None or latest.total.checkpointed_bytes >= latest.total.state_bytes:
        return None
    return latest.external_path


def test_a_kill_and_a_rescale_from_a_checkpoint_in_layers_change_nothing(
    bench: Bench, rows: Path
) -> None:
    arguments = [str(rows), str(bench.output)]
    job = bench.submit_file(JOB_FILE, arguments, parallelism=1)
    wait_until(lambda: layered(bench, job), "a checkpoint is in layers")
    bench.kill_worker(job)
    bench.await_status(job, JobStatus.RUNNING)
    wait_until(lambda: layered(bench, job), "a checkpoint is in layers again")
    bench.client.cancel(job)
    bench.await_end(job)
    left = layered(bench, job)
    assert left is not None
    assert verify(open_snapshot(left)).is_whole
    again = bench.submit_file(JOB_FILE, arguments, parallelism=3, savepoint=left)
    assert bench.await_end(again) is JobStatus.FINISHED
    assert verify(open_snapshot(left)).is_whole, "a job that does not claim it leaves it alone"
    found = pl.concat(map(pl.read_parquet, visible(bench.output))).sort("key", "times")
    wanted = pl.read_parquet(rows).select("key", times=pl.int_range(pl.len()).over("key") + 1)
    assert found.equals(wanted.sort("key", "times"))
