"""Whatever is wrong with a snapshot is told in one sentence, before any job starts."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.checkpoint.restoring.inputs import Positions
from engine.cli import main
from engine.cluster.answers.service import JobManagerService
from engine.cluster.jobs.deployment import Surroundings
from engine.cluster.jobs.registry import Jobs
from engine.cluster.machines.fleet import Fleet
from engine.cluster.machines.resources import LocalTaskManagers
from engine.cluster.programs.artifacts import Artifacts, Built
from engine.cluster.store.store import Store
from engine.graph.plan import plan_of
from engine.rest.app import create_app
from engine.rest.client import EngineClient, Refused
from engine.rest.model.requests import PreflightRequest, Program, RunRequest
from engine.testing.in_memory import InMemory
from engine.testing.memory import OutputTables
from fixtures.every_kind_job import every_kind_job
from golden_snapshots import formats, snapshots

NOBODY = 65_534

JOB_FILE = """
from engine.testing.memory import OutputTables
from fixtures.every_kind_job import every_kind

every_kind(1, OutputTables()).execute()
"""


def state_file(folder: Path) -> Path:
    return sorted(folder.glob("*/*.parquet"))[2]


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def of_a_newer_format(folder: Path) -> None:
    manifest = json.loads((folder / "_metadata").read_text())
    (folder / "_metadata").write_text(json.dumps(manifest | {"format_version": 99}))


def emptied(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def another_folder(folder: Path) -> None:
    emptied(folder)
    (folder / "notes.txt").write_text("no snapshot")


def a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("no folder")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a flipped bit in the manifest": (
        lambda folder: flipped(folder / "_metadata"),
        "its _metadata is damaged (its content does not match its checksum)",
    ),
    "a torn manifest": (lambda folder: torn(folder / "_metadata"), "its _metadata is damaged ("),
    "no manifest": (lambda folder: (folder / "_metadata").unlink(), "it has no _metadata; pass"),
    "a folder as manifest": (
        lambda folder: a_folder(folder / "_metadata"),
        "_metadata cannot be read: Is a directory; check it",
    ),
    "a newer format": (of_a_newer_format, "was written by a newer engine: format 99, this engine"),
    "a flipped bit in a state": (
        lambda folder: flipped(state_file(folder)),
        "is altered: its content does not match its checksum; choose another snapshot",
    ),
    "a torn state": (lambda folder: torn(state_file(folder)), " is torn: "),
    "a missing state": (lambda folder: state_file(folder).unlink(), "is missing; choose another"),
    "a folder as state": (
        lambda folder: a_folder(state_file(folder)),
        "is missing; choose another",
    ),
    "a state that may not be read": (
        lambda folder: state_file(folder).chmod(0),
        "cannot be read: Permission denied; check it and its rights",
    ),
    "a folder that may not be read": (
        lambda folder: folder.chmod(0),
        "_metadata cannot be read: Permission denied; check it and its rights",
    ),
    "an empty folder": (emptied, "is not a snapshot: it has no _metadata; pass the folder of one"),
    "another folder": (another_folder, "is not a snapshot: it has no _metadata; pass the folder"),
    "a file": (a_file, "is a file; pass the folder that it lies in"),
    "nothing": (shutil.rmtree, "snapshot is not there: no folder"),
}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everyone may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """Root may read everything: be somebody else meanwhile."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


class BuiltHere(Artifacts):
    """Artifacts that are all the same job, without a process to build it."""

    async def build(
        self, program: Program, folder: Path, positions: Positions | None = None
    ) -> Built:
        return Built(folder, folder, plan_of(every_kind_job(1, OutputTables())))


class Doors:
    """The ways in which a snapshot comes to an engine."""

    def __init__(self, home: Path) -> None:
        self.job_file = home / "job.py"
        self.job_file.write_text(JOB_FILE)
        self.store = Store(home / "engine.db")
        fleet = Fleet(self.store, lambda: None)
        artifacts = BuiltHere(home, self.store)
        around = Surroundings(self.store, fleet, home, home, 100)
        self.jobs = Jobs(home, around, artifacts)
        resources = LocalTaskManagers(home, home, 1)
        self._make = lambda: JobManagerService(
            home, self.store, fleet, artifacts, self.jobs, resources
        )

    def submit(self, snapshot: str) -> str:
        """Over REST; nothing is left of the job."""
        with pytest.raises(Refused) as refused:
            self._client().run(RunRequest(Program("job"), savepoint_path=snapshot))
        assert not self.store.jobs()
        assert not self.jobs.masters
        return str(refused.value)

    def preflight(self, snapshot: str) -> str:
        """Over REST."""
        with pytest.raises(Refused) as refused:
            self._client().preflight(PreflightRequest(Program("job"), snapshot))
        return str(refused.value)

    def _client(self) -> EngineClient:
        return EngineClient(transport=InMemory(create_app(self._make())))

    def command(self, *argv: str) -> None:
        """On the command line."""
        assert main(argv) == 1


def told(door: str, doors: Doors, snapshot: Path, capsys: pytest.CaptureFixture[str]) -> str:
    match door:
        case "submit":
            return doors.submit(str(snapshot))
        case "preflight":
            return doors.preflight(str(snapshot))
        case "headwater preflight":
            doors.command("preflight", str(doors.job_file), "-s", str(snapshot))
        case _:
            doors.command("savepoint", "verify", str(snapshot))
    (sentence,) = capsys.readouterr().err.splitlines()
    return sentence


@pytest.mark.parametrize(
    "door", ["submit", "preflight", "headwater preflight", "headwater savepoint verify"]
)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damage_is_told_in_one_sentence(
    damage: str, door: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = place / "savepoint"
    shutil.copytree(snapshots(formats()[0])[0], snapshot)
    doors = Doors(place)
    do, sentence = DAMAGES[damage]
    do(snapshot)
    with without_privileges():
        found = told(door, doors, snapshot, capsys)
    assert sentence in found
    assert "\n" not in found
    assert str(snapshot) in found
