"""Snapshots that clients name to begin from lie in the configured folders, or are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cluster.answers.service import JobManagerService
from engine.cluster.jobs.deployment import Surroundings
from engine.cluster.jobs.registry import Jobs
from engine.cluster.machines.fleet import Fleet
from engine.cluster.machines.resources import LocalTaskManagers
from engine.cluster.programs.artifacts import Artifacts
from engine.cluster.store.store import Store
from engine.errors import SnapshotMissing
from engine.rest.errors import Forbidden
from engine.rest.model.requests import PreflightRequest, Program, RunRequest
from snapshot_folders import counts, save


@pytest.fixture
def service(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    store = Store(home / "engine.db")
    fleet, artifacts = Fleet(store, lambda: None), Artifacts(home, store)
    jobs = Jobs(home, Surroundings(store, fleet, home, home, 100), artifacts)
    resources = LocalTaskManagers(home, home, 1, None, respawn=False)
    allowed = (str(tmp_path / "allowed"),)
    yield JobManagerService(home / "savepoints", store, fleet, artifacts, jobs, resources, allowed)
    store.close()


async def test_a_path_outside_is_refused_before_anything_is_built(
    service: JobManagerService, tmp_path: Path
) -> None:
    for path in ("/etc", f"{tmp_path}/allowed/../secret", "s3://elsewhere/s"):
        with pytest.raises(Forbidden, match="lies outside of the folders"):
            await service.run(RunRequest(Program("none"), savepoint_path=path))
        with pytest.raises(Forbidden, match="lies outside of the folders"):
            await service.preflight(PreflightRequest(Program("none"), path))


async def test_what_the_operator_allowed_may_be_named(
    service: JobManagerService, tmp_path: Path
) -> None:
    path = str(tmp_path / "allowed" / "savepoint-1")
    with pytest.raises(SnapshotMissing):
        await service.run(RunRequest(Program("none"), savepoint_path=path))
    with pytest.raises(SnapshotMissing):
        await service.preflight(PreflightRequest(Program("none"), path))


async def test_a_checkpoint_may_be_replaced_while_the_graph_that_it_is_compared_with_is_built(
    service: JobManagerService, tmp_path: Path
) -> None:
    path = save(tmp_path / "allowed" / "chk-1", counts(("a", 1)))
    file = tmp_path / "job.py"
    file.write_text(
        "import shutil, engine as hw\n"
        "from engine.connectors.parquet_files import ParquetFilesSink\n"
        "from engine.connectors.generator import SensorGenerator\n"
        f"shutil.rmtree({path!r})\n"
        "env = hw.Environment('job')\n"
        "env.source(SensorGenerator(1), uid='a').sink(ParquetFilesSink('out'), uid='b')\n"
        "env.execute()\n"
    )
    artifact = await service.upload_artifact(file.name, file)
    found = await service.preflight(PreflightRequest(Program(artifact.id), path))
    assert not Path(path).exists()
    assert [row.uid for row in found.report.refused] == ["count"]
