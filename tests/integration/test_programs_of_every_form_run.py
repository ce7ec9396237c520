"""Zips, wheels and packages of their own: the same job, through an engine of real processes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cli import main
from engine.cluster.programs.environments import Environments
from engine.errors import ArtifactError
from engine.rest.client import EngineClient, Refused
from engine.rest.model.jobs import JobStatus
from engine.rest.model.requests import Program, RunRequest
from engine.testing.cluster import PATIENCE_S, LocalCluster, wait_until
from fixtures import programs

pytestmark = pytest.mark.integration

DOUBLED = [2, 4, 6]


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster that installs packages from one folder only."""
    folder = tmp_path_factory.mktemp("programs")
    with pytest.MonkeyPatch.context() as variables:
        variables.setenv("PIP_NO_INDEX", "1")
        variables.setenv("PIP_FIND_LINKS", str(programs.tidemath(folder / "wheels")))
        with LocalCluster(folder / "engine", task_managers=1) as cluster:
            yield cluster
        assert cluster.left_over() == []


def await_finished(cluster: LocalCluster, job: str) -> None:
    with EngineClient(cluster.url) as client:
        ended = wait_until(
            lambda: status if (status := client.job_status(job)).terminal else None,
            "the job has ended",
            60,
        )
        assert ended is JobStatus.FINISHED, client.job_result(job)


def heights(output: Path) -> list[int]:
    files = sorted(output.rglob("*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return sorted(row["height"] for row in rows)


def test_a_zip_with_packages_of_its_own_runs_and_they_are_installed_once(
    offline: LocalCluster, tmp_path: Path
) -> None:
    files = programs.FILES | {
        "tides/heights.py": programs.WITH_PACKAGE,
        "requirements.txt": "tidemath==1.0  # not on any index\n",
    }
    for run in ("first", "second"):
        files["tides/run.txt"] = run  # another artifact with the same requirements
        with EngineClient(offline.url) as client:
            artifact = client.upload("tides.zip", programs.zipped(files))
            program = Program(artifact, (str(tmp_path / run),), entry="tides.jobs:build")
            job = client.run(RunRequest(program))
        await_finished(offline, job)
        assert heights(tmp_path / run) == DOUBLED
    (only,) = (offline.home / "environments").iterdir()
    assert json.loads((only / "complete").read_text()) == ["tidemath==1.0"]


def test_a_package_that_is_not_to_be_had_is_one_sentence(offline: LocalCluster) -> None:
    file = b'# /// script\n# dependencies = ["tidalwave"]\n# ///\nimport tidalwave\n'
    with EngineClient(offline.url) as client:
        artifact = client.upload("job.py", file)
        with pytest.raises(Refused) as refused:
            client.run(RunRequest(Program(artifact)))
    assert str(refused.value) == (
        "packages of the job cannot be installed: tidalwave: No matching distribution found for "
        "tidalwave; correct the requirements"
    )


def test_a_wheel_runs_the_package_that_can_be_run(offline: LocalCluster, tmp_path: Path) -> None:
    with EngineClient(offline.url) as client:
        artifact = client.upload(
            "tides-1.0-py3-none-any.whl", programs.wheel("tides", programs.FILES, ("headwater",))
        )
        job = client.run(RunRequest(Program(artifact, (str(tmp_path / "out"),))))
    await_finished(offline, job)
    assert heights(tmp_path / "out") == DOUBLED


def test_the_command_line_sends_a_folder_and_an_entry(
    offline: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = programs.written(tmp_path / "code")
    command = ["--url", offline.url, "run", str(folder), "-c", "tides.jobs:environment"]
    assert main([*command, "--", str(tmp_path / "out")]) == 0
    await_finished(offline, capsys.readouterr().out.split()[1])
    assert heights(tmp_path / "out") == DOUBLED


@pytest.mark.parametrize("form", ["zip", "module"])
def test_an_embedded_job_begins_where_a_submitted_one_does(tmp_path: Path, form: str) -> None:
    folder = programs.written(tmp_path / "code")
    (tmp_path / "tides.zip").write_bytes(programs.zipped(programs.FILES))
    what = {"zip": str(tmp_path / "tides.zip"), "module": "tides.jobs:build"}
    ended = subprocess.run(
        [sys.executable, "-m", "engine.cli", "run", "--embedded", what[form], "--", "out"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert heights(folder / "out") == DOUBLED


async def test_packages_that_two_ask_for_at_once_are_installed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(programs.tidemath(tmp_path / "wheels")))
    environments = Environments(tmp_path / "environments")
    asked = [asyncio.create_task(environments.python_for(["tidemath"])) for _ in range(3)]
    await asyncio.sleep(0)
    asked[0].cancel()  # the others still wait for it
    first, *others = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(first, asyncio.CancelledError)
    assert others[0] == others[1]
    assert environments.replaced([str(others[0])], kept=0) == []
    (folder,) = environments.replaced([], kept=0)
    (folder / "complete").unlink()
    assert environments.replaced([]) == [folder]


async def test_a_package_that_the_engine_has_in_another_version_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    environments = Environments(tmp_path / "environments")
    with pytest.raises(
        ArtifactError, match=r"Cannot install polars==0.1 because these package ver"
    ):
        await environments.python_for(["polars==0.1"])
    assert list((tmp_path / "environments").iterdir()) == []
