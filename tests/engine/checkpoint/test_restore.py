"""Restore: to any parallelism, from any place, and never from damaged files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from engine.checkpoint.format.frozen import RestoredOperator
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.inspection.reading import open_snapshot
from engine.checkpoint.inspection.verification import verify
from engine.checkpoint.restoring.restore import SubtaskRestore, assign, load_manifest, read_restore
from engine.elements import KEY_GROUP, MAX_TIME, MIN_TIME
from engine.errors import SnapshotCorrupt
from engine.graph.jobgraph import TaskId
from engine.graph.plan import Plan
from engine.keygroups import range_of

MakePlan = Callable[..., Plan]
TakeSnapshot = Callable[..., Manifest]


def restored(
    manifest: Manifest, folder: Path, plan: Plan
) -> dict[TaskId, dict[str, RestoredOperator]]:
    """What every subtask reads, after its instruction has travelled as JSON."""
    found = {}
    for task, restore in assign(manifest, str(folder), plan).items():
        sent = SubtaskRestore.from_json(json.loads(json.dumps(restore.to_json())))
        assert sent == restore
        found[task] = {operator.uid: operator for operator in read_restore(sent)}
    return found


def counts(operator: RestoredOperator) -> pl.DataFrame:
    return pl.concat(operator.tables["counts"])


@pytest.mark.parametrize("before", [1, 2, 3])
@pytest.mark.parametrize("after", [1, 2, 3, 7])
def test_keyed_state_goes_to_the_owners_of_its_key_groups(
    tmp_path: Path,
    make_plan: MakePlan,
    take_snapshot: TakeSnapshot,
    all_rows: pl.DataFrame,
    before: int,
    after: int,
) -> None:
    manifest = take_snapshot(tmp_path, before)
    found = restored(manifest, tmp_path, make_plan(after))
    tables = [counts(found[TaskId("b", subtask)]["count"]) for subtask in range(after)]
    for subtask, table in enumerate(tables):
        ours = range_of(subtask, after, 128)
        assert table[KEY_GROUP].to_list() == list(range(ours.lo, ours.hi))
    assert pl.concat(tables).equals(all_rows)


def test_only_files_that_overlap_are_read(
    tmp_path: Path, make_plan: MakePlan, take_snapshot: TakeSnapshot
) -> None:
    manifest = take_snapshot(tmp_path, 2)
    restores = assign(manifest, str(tmp_path), make_plan(4))
    files = [
        len(restores[TaskId("b", subtask)].operators[0].states[0].files) for subtask in range(4)
    ]
    assert files == [1, 1, 1, 1]


def test_staged_output_goes_to_subtask_0_alone(
    tmp_path: Path, make_plan: MakePlan, take_snapshot: TakeSnapshot
) -> None:
    found = restored(take_snapshot(tmp_path, 3), tmp_path, make_plan(2))
    assert found[TaskId("b", 0)]["out"].committables == ("staged 0", "staged 1", "staged 2")
    assert found[TaskId("b", 1)]["out"].committables == ()


def test_every_source_subtask_sees_all_splits_and_picks_its_own(
    tmp_path: Path, make_plan: MakePlan, take_snapshot: TakeSnapshot
) -> None:
    found = restored(take_snapshot(tmp_path, 3), tmp_path, make_plan(2))
    for subtask in range(2):
        assert sorted(found[TaskId("a", subtask)]["read"].splits) == [
            "split-0",
            "split-1",
            "split-2",
        ]


def test_event_time_goes_on_at_the_slowest_subtask(
    tmp_path: Path, make_plan: MakePlan, take_snapshot: TakeSnapshot
) -> None:
    found = restored(take_snapshot(tmp_path, 3), tmp_path, make_plan(3))
    assert {found[TaskId("b", subtask)]["count"].watermark for subtask in range(3)} == {90}


@pytest.mark.parametrize(("finished", "expected"), [(True, MAX_TIME), (False, MIN_TIME)])
def test_after_a_drain_event_time_begins_anew_unless_the_input_has_ended(
    tmp_path: Path,
    make_plan: MakePlan,
    take_snapshot: TakeSnapshot,
    finished: bool,
    expected: int,
) -> None:
    manifest = take_snapshot(tmp_path, 1)
    entries = []
    for entry in manifest.operators:
        splits = {id_: replace(split, finished=finished) for id_, split in entry.splits.items()}
        entries.append(replace(entry, watermark=MAX_TIME, splits=splits))
    drained = replace(manifest, operators=tuple(entries))
    assert restored(drained, tmp_path, make_plan(1))[TaskId("b", 0)]["count"].watermark == expected


def test_a_folder_can_be_moved(
    tmp_path: Path, make_plan: MakePlan, take_snapshot: TakeSnapshot, all_rows: pl.DataFrame
) -> None:
    take_snapshot(tmp_path / "old")
    shutil.move(tmp_path / "old", tmp_path / "new")
    manifest = load_manifest(str(tmp_path / "new"))
    found = restored(manifest, tmp_path / "new", make_plan(1))
    assert counts(found[TaskId("b", 0)]["count"]).equals(all_rows)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "problem"),
    [(flip, "is altered"), (truncate, "is torn"), (Path.unlink, "is missing")],
)
def test_a_damaged_state_file_is_found_and_named(
    tmp_path: Path,
    make_plan: MakePlan,
    take_snapshot: TakeSnapshot,
    damage: Callable[[Path], None],
    problem: str,
) -> None:
    manifest = take_snapshot(tmp_path)
    name = manifest.operators[1].states[0].files[1].path
    damage(tmp_path / name)
    with pytest.raises(SnapshotCorrupt, match=f"snapshot file {name} in .* {problem}"):
        counts(restored(manifest, tmp_path, make_plan(1))[TaskId("b", 0)]["count"])
    (told,) = verify(open_snapshot(str(tmp_path))).problems
    assert name in told
    assert problem in told


def test_no_temporary_file_is_left(tmp_path: Path, take_snapshot: TakeSnapshot) -> None:
    take_snapshot(tmp_path)
    assert not list(tmp_path.rglob(".*"))
