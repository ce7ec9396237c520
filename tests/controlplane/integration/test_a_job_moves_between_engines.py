"""A job that runs is moved from one real engine to another and back; parts of both are killed.

engine 1 ── its job manager is killed while it writes the savepoint ──▶ engine 2
engine 1 ◀── its worker is killed as soon as it has the job ─────────── engine 2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from controlplane.backends.models import Cluster
from controlplane.backends.registry import client_for
from controlplane.jobs import actions
from controlplane.jobs.models import Job, Run
from controlplane.jobs.moving import move_job
from controlplane.operations.models import Operation
from controlplane.snapshots.models import Savepoint
from engine.testing.cluster import LocalCluster
from on_a_real_engine import succeed, wait

pytestmark = pytest.mark.integration

JOB_FILE = Path(__file__).parents[2] / "integration" / "remembering_job.py"
KEYS, ROWS_PER_S, SECONDS = 7, 200, 900


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[dict[str, LocalCluster]]:
    """Both read each other's checkpoints, which is what a move asks for."""
    shared = [
        part
        for name in ("one", "two")
        for part in ("--snapshots", str(tmp_path / name / "checkpoints"))
    ] + ["--snapshots", str(tmp_path / "savepoints")]
    with (
        LocalCluster(tmp_path / "one", task_managers=1, options=shared) as one,
        LocalCluster(tmp_path / "two", task_managers=1, options=shared) as two,
    ):
        yield {"one": one, "two": two}


@pytest.fixture
def job(engines, team, alice, tmp_path, settings) -> Job:
    settings.HEADWATER_SAVEPOINTS = tmp_path / "savepoints"
    for name, cluster in engines.items():
        Cluster.objects.create(name=name, url=cluster.url)
    data = recording(tmp_path / "rows.parquet")
    chosen = {"parallelism": 2, "arguments": [str(data), str(tmp_path / "output")]}
    one = Cluster.objects.get(name="one")
    content = JOB_FILE.read_bytes()
    return actions.create_job("seen", team, alice, JOB_FILE.name, content, chosen, cluster=one)


def recording(path: Path) -> Path:
    """More rows than any machine is slow enough to see all of: played in real time."""
    number = pl.int_range(ROWS_PER_S * SECONDS, eager=True)
    at = datetime(2024, 1, 1, tzinfo=UTC) + number * timedelta(seconds=1 / ROWS_PER_S)
    pl.DataFrame({"at": at, "key": number % KEYS}).write_parquet(path)
    return path


def written(folder: Path) -> pl.DataFrame:
    files = [file for file in folder.rglob("*.parquet") if not file.name.startswith(".")]
    return pl.concat([pl.read_parquet(file) for file in files]) if files else pl.DataFrame()


def test_every_row_counts_once_on_whichever_engine(job, engines, alice, tmp_path):
    output = tmp_path / "output"
    succeed(actions.deploy(job, alice))
    wait(lambda: written(output).height > 0, "the job writes")

    def restart() -> None:
        engines["one"].kill_job_manager()
        engines["one"].restart_job_manager()

    move(job, alice, "two", "savepoint", restart)
    before = written(output).height
    wait(lambda: written(output).height > before, "it writes on the other engine")
    move(job, alice, "one", "confirm", engines["one"].kill_worker)
    stopped = succeed(actions.stop(job, alice))

    savepoint = Savepoint.objects.get(pk=stopped.result["savepoint"])
    rows = written(output)
    assert rows.height == savepoint.source_positions["rows"]["all"]["row"]
    for key, times in rows.group_by("key").agg("times").iter_rows():
        assert sorted(times) == list(range(1, len(times) + 1)), key
    assert [run.cluster.name for run in job.runs.order_by("pk")] == ["one", "two", "one"]


def move(job: Job, alice, name: str, step: str, kill: Callable[[], object]) -> None:
    """To its end, with a kill at that step; then the engine that it left runs nothing."""
    left = job.runs.filter(purpose=Run.Purpose.LIVE).first()
    kills = [kill]

    def look(operation: Operation) -> None:
        if operation.step == step and kills:
            kills.pop()()

    job.refresh_from_db()
    succeed(move_job(job, alice, Cluster.objects.get(name=name)), look)
    assert not kills
    assert client_for(left.cluster).job(left.engine_job_id).state == "FINISHED"
