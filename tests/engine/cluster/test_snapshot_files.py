"""Which files of a job's snapshots are deleted: on disk, with a store, without any process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.checkpoint.coordination.stats import CheckpointLog
from engine.checkpoint.format.entries import OperatorEntry, StateEntry
from engine.checkpoint.format.files import Layer, StateFile
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.format.writer import write_manifest
from engine.checkpoint.restoring.restore import check_files, load_manifest
from engine.checkpoint.storage.addresses import open_folder
from engine.cluster.jobs.life import JobLife
from engine.cluster.snapshots import snapshot_files
from engine.cluster.snapshots.snapshot_files import SnapshotFiles
from engine.cluster.store.rows import JobRow, SnapshotRow
from engine.cluster.store.store import Store
from engine.elements import MIN_TIME, Barrier, SnapshotKind
from engine.errors import StorageError
from engine.keygroups import KeyGroupRange
from engine.state.contract import StateKind

RETAINED = 2


@dataclass
class Job:
    """A job whose checkpoints are a file of their own and those of the checkpoints before."""

    id: str
    home: Path
    store: Store

    def __post_init__(self) -> None:
        self.directory = self.home / self.id
        life = JobLife.begin(0)
        self.store.add_job(
            JobRow(self.id, "n", life.status, life.entered_ms, 0, "", "", (), {}, None)
        )
        self.files = self.begun()

    def begun(self) -> SnapshotFiles:
        """What a job manager knows that has just begun."""
        return SnapshotFiles(self.id, str(self.directory), self.store, CheckpointLog())

    def write(self, id_: int, on: Sequence[int] = ()) -> Manifest:
        """What subtasks write, up to the manifest."""
        folder = open_folder(f"{self.directory}/chk-{id_}")
        self.files.begin(Barrier(id_, base=max(on, default=0)))
        folder.write("uid/small-0.parquet", lambda file: file.write(b"small"))
        chain = []
        for number, written_by in enumerate([*on, id_]):
            path = f"../shared/chk-{written_by}/uid/large-0.parquet"
            stored = folder.write(path, lambda file: file.write(b"large"))
            layer = Layer(number, 0, ("k",) if number else ())
            chain.append(
                StateFile(path, 1, stored.size_bytes, stored.sha256, KeyGroupRange(0, 1), layer)
            )
        state = StateEntry("large", StateKind.VALUE, {"k": "Int64"}, {"n": "Int64"}, tuple(chain))
        operators = (OperatorEntry("uid", "n", "v", 1, 1, MIN_TIME, (state,)),)
        kind = SnapshotKind.CHECKPOINT
        manifest = Manifest(self.id, "n", "", id_, kind, 0, "", operators)
        write_manifest(manifest, folder)
        return manifest

    def checkpoint(self, id_: int, on: Sequence[int] = ()) -> None:
        """A checkpoint that succeeds, and what is deleted after it."""
        manifest = self.write(id_, on)
        self.store.add_snapshot(
            SnapshotRow(self.id, id_, SnapshotKind.CHECKPOINT, f"{self.directory}/chk-{id_}", 0)
        )
        self.files.complete(manifest)
        self.retire()

    def retire(self) -> None:
        asyncio.run(self.files.retire(RETAINED))

    def found(self) -> set[str]:
        """The folders and shared files of the job."""
        folders = set(open_folder(str(self.directory)).children()) - {"shared"}
        shared = open_folder(f"{self.directory}/shared").children()
        return folders | {f"shared/{name}" for name in shared}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store.db")


@pytest.fixture
def job(tmp_path: Path, store: Store) -> Job:
    return Job("a" * 32, tmp_path, store)


def test_a_file_goes_with_the_last_checkpoint_that_names_it(job: Job) -> None:
    job.checkpoint(1)
    job.checkpoint(2, on=[1])
    job.checkpoint(3, on=[1, 2])
    assert job.found() == {"chk-2", "chk-3", "shared/chk-1", "shared/chk-2", "shared/chk-3"}
    job.checkpoint(4)
    job.checkpoint(5, on=[4])
    assert job.found() == {"chk-4", "chk-5", "shared/chk-4", "shared/chk-5"}


def test_what_a_checkpoint_under_way_may_build_on_stays(job: Job) -> None:
    job.checkpoint(1)
    job.files.begin(Barrier(2, base=1))
    job.checkpoint(3)
    job.checkpoint(4)
    assert "shared/chk-1" in job.found()
    job.files.abort(2)
    asyncio.run(job.files.discard(f"{job.directory}/chk-2"))
    assert job.found() == {"chk-3", "chk-4", "shared/chk-3", "shared/chk-4"}


def test_a_checkpoint_that_came_to_nothing_leaves_nothing(job: Job) -> None:
    job.checkpoint(1)
    job.write(2, on=[1])
    job.files.abort(2)
    asyncio.run(job.files.discard(f"{job.directory}/chk-2"))
    assert job.found() == {"chk-1", "shared/chk-1"}


def test_a_successor_knows_what_is_needed_and_deletes_what_is_not(job: Job) -> None:
    job.checkpoint(1)
    job.checkpoint(2, on=[1])
    job.write(3, on=[1, 2])  # not recorded: the job manager was killed
    job.files = job.begun()
    asyncio.run(job.files.sweep(next_id=4))
    assert job.found() == {"chk-1", "chk-2", "shared/chk-1", "shared/chk-2"}
    job.checkpoint(4)
    assert job.found() == {"chk-2", "chk-4", "shared/chk-1", "shared/chk-2", "shared/chk-4"}
    job.checkpoint(5)
    assert job.found() == {"chk-4", "chk-5", "shared/chk-4", "shared/chk-5"}


def test_the_sweep_leaves_alone_what_has_begun_since(job: Job) -> None:
    job.checkpoint(1)
    job.files = job.begun()
    job.write(2, on=[1])
    asyncio.run(job.files.sweep(next_id=2))
    assert job.found() == {"chk-1", "chk-2", "shared/chk-1", "shared/chk-2"}


def test_nothing_is_deleted_while_it_is_not_known_what_is_needed(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.checkpoint(1)
    job.checkpoint(2, on=[1])
    job.files = job.begun()

    def unreachable(url: str) -> Manifest:
        raise StorageError(url)

    with monkeypatch.context() as away:
        away.setattr(snapshot_files, "load_manifest", unreachable)
        asyncio.run(job.files.sweep(next_id=3))
        job.checkpoint(3)
    assert {"chk-1", "shared/chk-1"} < job.found()
    job.checkpoint(4)
    assert job.found() == {"chk-3", "chk-4", "shared/chk-3", "shared/chk-4"}


def test_a_claimed_checkpoint_goes_without_the_files_of_those_beside_it(
    job: Job, tmp_path: Path, store: Store
) -> None:
    job.checkpoint(1)
    job.checkpoint(2, on=[1])
    heir = Job("b" * 32, tmp_path, store)
    claimed = f"{job.directory}/chk-2"
    store.claim(SnapshotRow(heir.id, 2, SnapshotKind.CHECKPOINT, claimed, 0))
    heir.checkpoint(3)
    assert job.found() == {"chk-1", "chk-2", "shared/chk-1", "shared/chk-2"}
    heir.checkpoint(4)
    assert heir.found() == {"chk-3", "chk-4", "shared/chk-3", "shared/chk-4"}
    assert job.found() == {"chk-1", "shared/chk-1"}
    check_files(load_manifest(f"{job.directory}/chk-1"), f"{job.directory}/chk-1")
