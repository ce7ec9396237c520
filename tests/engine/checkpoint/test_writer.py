"""The files and the acknowledgement of one subtask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from engine.checkpoint.format.entries import StateEntry, SubtaskSnapshot
from engine.checkpoint.format.frozen import OperatorSnapshot, TaskSnapshot
from engine.checkpoint.format.writer import slug, write_snapshot
from engine.checkpoint.storage.addresses import open_folder
from engine.elements import KEY_GROUP, Barrier, Micros
from engine.graph.jobgraph import TaskId
from engine.keygroups import KeyGroupRange
from engine.state.contract import FrozenState, StateDescriptor, StateKind


class Rows(FrozenState):
    """A state with the given numbers."""

    descriptor = StateDescriptor("n", StateKind.VALUE, {"k": pl.Int64()}, {"n": pl.Int64()})

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers

    def table(self) -> pl.DataFrame:
        columns = {KEY_GROUP: [3] * len(self._numbers), "k": self._numbers, "n": self._numbers}
        return pl.DataFrame(columns, schema={KEY_GROUP: pl.UInt16, "k": pl.Int64, "n": pl.Int64})


def written(folder: Path, state: FrozenState) -> SubtaskSnapshot:
    operator = OperatorSnapshot("sums/a b", Micros(5), KeyGroupRange(0, 64), (state,))
    barrier = Barrier(7, triggered_ms=1_000, folder=str(folder))
    snapshot = TaskSnapshot(
        TaskId("v", 2), barrier, (operator,), Micros(1_004_000), Micros(1_006_500)
    )
    return write_snapshot(snapshot, open_folder(str(folder)), sync_ms=3)


def state_of(snapshot: SubtaskSnapshot) -> StateEntry:
    return snapshot.operators[0].states[0]


def test_a_state_is_one_parquet_file_that_anyone_can_read(tmp_path: Path) -> None:
    (file,) = state_of(written(tmp_path, Rows(8, 9))).files
    assert (file.rows, file.key_groups) == (2, KeyGroupRange(0, 64))
    assert pl.read_parquet(tmp_path / file.path)["n"].to_list() == [8, 9]


class ManyRows(Rows):
    """The same in parts of one row, and some of none."""

    def tables(self) -> Iterator[pl.DataFrame]:
        table = self.table()
        yield table.clear()
        for part in table.iter_slices(1):
            yield part
            yield table.clear()


def test_a_state_that_comes_in_parts_is_one_file_too(tmp_path: Path) -> None:
    (file,) = state_of(written(tmp_path, ManyRows(8, 9, 7))).files
    assert file.rows == 3
    assert pl.read_parquet(tmp_path / file.path).equals(Rows(8, 9, 7).table())


def test_an_empty_state_keeps_its_types_and_costs_no_file(tmp_path: Path) -> None:
    state = state_of(written(tmp_path, Rows()))
    assert (state.files, state.keys, state.values) == ((), {"k": "Int64"}, {"n": "Int64"})
    assert list(tmp_path.iterdir()) == []


def test_an_acknowledgement_says_how_long_each_part_took(tmp_path: Path) -> None:
    timing = written(tmp_path, Rows()).timing
    assert (timing.start_delay_ms, timing.alignment_ms, timing.sync_ms) == (4, 2, 3)


def test_writing_again_replaces_the_files_of_an_earlier_attempt(tmp_path: Path) -> None:
    written(tmp_path, Rows(1, 2, 3))
    (file,) = state_of(written(tmp_path, Rows(4))).files
    assert pl.read_parquet(tmp_path / file.path)["n"].to_list() == [4]


def test_names_of_files_are_readable_safe_and_apart() -> None:
    uids = ["sums/a b", "sums-a-b", "Sums-a-b", "../x", "日", "x" * 300]
    names = [slug(uid) for uid in uids]
    assert names[0].startswith("sums-a-b-")
    assert len({name.lower() for name in names}) == len(uids)
    assert all("/" not in name and not name.startswith(".") for name in names)
    assert all(len(name) <= 50 for name in names)
