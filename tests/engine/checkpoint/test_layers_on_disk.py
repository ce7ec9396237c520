"""Checkpoints in layers, as folders on disk: read, compared, moved, damaged, restored."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from engine.checkpoint.format.entries import OperatorEntry
from engine.checkpoint.format.frozen import OperatorSnapshot, TaskSnapshot
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.format.writer import Chains, write_manifest, write_snapshot
from engine.checkpoint.inspection.difference import difference
from engine.checkpoint.inspection.reading import of_key, open_snapshot
from engine.checkpoint.inspection.verification import verify
from engine.checkpoint.restoring.restore import (
    SubtaskRestore,
    check_files,
    load_manifest,
    read_restore,
)
from engine.checkpoint.storage.addresses import open_folder
from engine.elements import Barrier, Micros, SnapshotKind
from engine.errors import SnapshotCorrupt
from engine.graph.jobgraph import TaskId
from engine.keygroups import KeyGroupRange
from engine.state.changes import LayerPolicy
from engine.state.contract import Increment, StateDescriptor, StateKind
from engine.state.handles import DELETED, Key
from engine.state.memory import MemoryBackend

ALL = KeyGroupRange(0, 8)
NUMBERS = StateDescriptor("numbers", StateKind.VALUE, {"k": pl.Int64()}, {"n": pl.Int64()})
LAST = 3


def key(number: int) -> Key:
    return number % 8, number


@dataclass
class Subtask:
    """A subtask with a thousand numbers that takes snapshots."""

    folder: str

    def __post_init__(self) -> None:
        self.backend = MemoryBackend(ALL, LayerPolicy(min_rows=100))
        self.numbers = self.backend.state(NUMBERS)
        self.chains = Chains()

    def put(self, numbers: range, value: object) -> None:
        self.numbers.put_many({key(number): value for number in numbers})

    def take(self, name: str, id_: int, base: int | None) -> Manifest:
        at = f"{self.folder}/{name}"
        kind = SnapshotKind.SAVEPOINT if base is None else SnapshotKind.CHECKPOINT
        barrier = Barrier(id_, kind, folder=at, base=base)
        freeze = self.backend.freeze if base is None else self.increment(id_, base)
        operator = OperatorSnapshot("uid", Micros(0), ALL, tuple(freeze()))
        snapshot = TaskSnapshot(TaskId("v", 0), barrier, (operator,), Micros(0), Micros(0))
        ack = write_snapshot(snapshot, open_folder(at), 0, self.chains)
        states = ack.operators[0].states
        entry = OperatorEntry("uid", "n", "v", 1, 8, Micros(0), states)
        manifest = Manifest("j", "job", "", id_, kind, 0, "", (entry,))
        write_manifest(manifest, open_folder(at))
        return manifest

    def increment(self, id_: int, base: int):
        return lambda: self.backend.freeze_increment(Increment(id_, base))


def take_all(folder: str) -> None:
    """Three checkpoints, and a savepoint of the same moment as the last one."""
    subtask = Subtask(folder)
    subtask.put(range(1_000), 0)
    subtask.take("chk-1", 1, base=0)
    subtask.put(range(0, 1_000, 50), 2)
    subtask.take("chk-2", 2, base=1)
    subtask.put(range(0, 1_000, 100), 3)
    subtask.put(range(5), DELETED)
    subtask.take("chk-3", LAST, base=2)
    subtask.take("savepoint", 4, base=None)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The directory of a job."""
    take_all(str(tmp_path / "job"))
    return tmp_path / "job"


def shared(job: Path, checkpoint: int, what: str = "") -> Path:
    """A file that a checkpoint has written."""
    (found,) = job.glob(f"shared/chk-{checkpoint}/*/*-0{what}.parquet")
    return found


def test_only_what_has_changed_is_written(job: Path) -> None:
    rows = [pl.read_parquet(shared(job, id_)).height for id_ in (1, 2, 3)]
    assert rows == [1_000, 20, 9]
    assert pl.read_parquet(shared(job, 3, "-removed"))["k"].sort().to_list() == [0, 1, 2, 3, 4]
    manifest = load_manifest(str(job / "chk-3"))
    (entry,) = manifest.operators[0].states
    assert entry.written_bytes(LAST) < entry.size_bytes / 2
    assert not any(
        file.path.startswith("..") for file in load_manifest(str(job / "savepoint")).files
    )


def test_layers_are_read_and_compared_as_the_table_that_they_are(job: Path) -> None:
    last, saved = open_snapshot(str(job / "chk-3")), open_snapshot(str(job / "savepoint"))
    assert difference(last, saved).is_equal
    (found,) = difference(open_snapshot(str(job / "chk-2")), last).states
    assert (found.equal, found.changed, found.only_left, found.only_right) == (986, 9, 5, 0)
    state = last.state("uid", "numbers")
    for number, wanted in {50: [2], 100: [3], 3: [], 7: [0]}.items():
        rows = last.collect(of_key(last.scan(state), state, {"k": str(number)}))
        assert rows["n"].to_list() == wanted


def test_a_directory_that_was_moved_as_a_whole_is_read_as_before(job: Path, tmp_path: Path) -> None:
    moved = job.rename(tmp_path / "elsewhere")
    last, saved = open_snapshot(str(moved / "chk-3")), open_snapshot(str(moved / "savepoint"))
    assert difference(last, saved).is_equal
    (tmp_path / "link").symlink_to(moved / "chk-3")
    assert difference(open_snapshot(str(tmp_path / "link")), saved).is_equal


def test_layers_in_an_object_store_are_read_in_the_same_way() -> None:
    folder = f"memory://{uuid.uuid4().hex}/job"
    take_all(folder)
    last, saved = open_snapshot(f"{folder}/chk-3"), open_snapshot(f"{folder}/savepoint")
    assert difference(last, saved).is_equal
    assert verify(last).is_whole
    restore = SubtaskRestore(f"{folder}/chk-3", ALL, last.manifest.operators)
    parts = list(read_restore(restore)[0].tables["numbers"])
    assert sum(part.height for part in parts) == 995


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("what", [(1, ""), (2, ""), (3, "-removed")])
@pytest.mark.parametrize(
    ("damage", "problem"),
    [(flip, "is altered"), (truncate, "is torn"), (Path.unlink, "is missing")],
)
def test_a_damaged_layer_is_named_before_any_row_of_it_is_read(
    job: Path, what: tuple[int, str], damage: Callable[[Path], None], problem: str
) -> None:
    path = shared(job, *what)
    damage(path)
    name = f"../{path.relative_to(job)}"
    folder = str(job / "chk-3")
    manifest = load_manifest(folder)
    sentence = rf"snapshot file {name} in \S+ {problem}.*; choose another snapshot"
    with pytest.raises(SnapshotCorrupt, match=sentence):
        check_files(manifest, folder)
    (told,) = verify(open_snapshot(folder)).problems
    assert name in told
    restore = SubtaskRestore(folder, ALL, manifest.operators)
    with pytest.raises(SnapshotCorrupt, match=sentence):
        pl.concat(read_restore(restore)[0].tables["numbers"])


def test_a_checkpoint_that_was_taken_out_of_its_directory_misses_its_layers(
    job: Path, tmp_path: Path
) -> None:
    alone = shutil.copytree(job / "chk-3", tmp_path / "alone" / "chk-3")
    with pytest.raises(SnapshotCorrupt, match=r"\.\./shared/chk-1/\S+ in \S+ is missing"):
        check_files(load_manifest(str(alone)), str(alone))


@pytest.mark.parametrize("lo", range(0, 8, 2))
def test_each_subtask_restores_the_keys_that_are_its_own(job: Path, lo: int) -> None:
    ours = KeyGroupRange(lo, lo + 2)
    found, wanted = (
        pl.concat(
            read_restore(
                SubtaskRestore(str(job / name), ours, load_manifest(str(job / name)).operators)
            )[0].tables["numbers"]
        ).sort("k")
        for name in ("chk-3", "savepoint")
    )
    assert found.height > 200
    assert found.equals(wanted)


def test_layers_with_more_keys_than_fit_are_read_some_key_groups_at_a_time(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.checkpoint.format.layers.KEYS_AT_ONCE", 5)
    restore = SubtaskRestore(str(job / "chk-3"), ALL, load_manifest(str(job / "chk-3")).operators)
    parts = list(read_restore(restore)[0].tables["numbers"])
    assert len(parts) > 8
    saved = open_snapshot(str(job / "savepoint"))
    wanted = saved.collect(saved.scan(saved.state("uid", "numbers")))
    assert pl.concat(parts).sort("key_group", "k").equals(wanted)
