"""What anyone may ask of a snapshot: its rows, its damage, and how it differs from another."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from engine.checkpoint.inspection import difference as differences
from engine.checkpoint.inspection.difference import difference
from engine.checkpoint.inspection.difference_report import (
    Difference,
    SplitDifference,
    StateDifference,
)
from engine.checkpoint.inspection.reading import of_key, open_snapshot
from engine.checkpoint.inspection.verification import verify
from engine.cli import main
from engine.elements import KEY_GROUP, Micros
from engine.errors import ConfigError, RestoreError, SnapshotCorrupt
from engine.operators.sources.source import SplitState
from engine.state.contract import StateDescriptor, StateKind
from engine.state.schema import table_schema
from snapshot_folders import COUNTS, HELD, PAGES, PANES, WAITING, Frozen, counts, save


def compare(left: str, right: str) -> Difference:
    return difference(open_snapshot(left), open_snapshot(right))


def test_rows_of_a_state_can_be_read_and_queried(tmp_path: Path) -> None:
    snapshot = open_snapshot(save(tmp_path / "s", counts(("ann", 1), ("bob", 2))))
    state = snapshot.state("count", "counts")
    assert snapshot.collect(snapshot.scan(state)).rows() == [(0, "ann", 1), (1, "bob", 2)]
    of_bob = of_key(snapshot.scan(state), state, {"k": "bob"})
    assert snapshot.collect(of_bob).rows() == [(1, "bob", 2)]


def test_a_state_without_rows_reads_as_an_empty_table(tmp_path: Path) -> None:
    snapshot = open_snapshot(save(tmp_path / "s", counts()))
    rows = snapshot.collect(snapshot.scan(snapshot.state("count", "counts")))
    assert rows.schema == table_schema(COUNTS)


@pytest.mark.parametrize(
    ("uid", "state", "sentence"),
    [
        ("sums", "counts", "has no operator 'sums': those with state are 'count'"),
        ("count", "sums", "operator 'count' has no state 'sums': it has 'counts'"),
    ],
)
def test_unknown_names_are_answered_with_the_known_ones(
    tmp_path: Path, uid: str, state: str, sentence: str
) -> None:
    snapshot = open_snapshot(save(tmp_path / "s", counts(("ann", 1))))
    with pytest.raises(RestoreError, match=sentence):
        snapshot.state(uid, state)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = save(tmp_path / "s", counts(("ann", 1)), Frozen(PAGES, [(0, "ann", "x", 1)]))
    file = next(Path(path).glob("*/counts*.parquet"))
    content = bytearray(file.read_bytes())
    content[20] ^= 1
    file.write_bytes(content)
    (problem,) = verify(open_snapshot(path)).problems
    assert file.name in problem
    assert "is altered" in problem


def test_a_torn_file_is_found_before_it_is_read(tmp_path: Path) -> None:
    snapshot = open_snapshot(save(tmp_path / "s", counts(("ann", 1))))
    file = next((tmp_path / "s").glob("*/counts*.parquet"))
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(SnapshotCorrupt, match="is torn"):
        snapshot.scan(snapshot.state("count", "counts"))


@pytest.mark.parametrize("at_once", [1, 2_000_000])
def test_the_difference_counts_rows_by_key(
    tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(differences, "_ROWS_AT_ONCE", at_once)
    left = save(tmp_path / "l", counts(("ann", 1), ("bob", 2), ("cid", None)))
    right = save(tmp_path / "r", counts(("ann", 1), ("bob", 3), ("cid", None), ("dan", None)))
    (found,) = compare(left, right).states
    assert (found.equal, found.changed, found.only_left, found.only_right) == (2, 1, 0, 1)
    assert list(found.examples) == [
        {"k": "bob", "left": {"n": 2}, "right": {"n": 3}},
        {"k": "dan", "left": None, "right": {"n": None}},
    ]


def test_entries_of_a_map_are_compared_one_by_one(tmp_path: Path) -> None:
    left = save(tmp_path / "l", Frozen(PAGES, [(0, "ann", "x", 1), (0, "ann", "y", 2)]))
    right = save(tmp_path / "r", Frozen(PAGES, [(0, "ann", "x", 1), (0, "ann", "z", 2)]))
    (found,) = compare(left, right).states
    assert (found.equal, found.only_left, found.only_right) == (1, 1, 1)


def test_rows_that_a_key_keeps_in_order_are_compared_by_their_place(tmp_path: Path) -> None:
    left = save(tmp_path / "l", Frozen(PANES, [(0, "ann", 0, 1), (0, "ann", 1, 2)]))
    right = save(
        tmp_path / "r", Frozen(PANES, [(0, "ann", 0, 1), (0, "ann", 1, 3), (0, "ann", 2, 4)])
    )
    (found,) = compare(left, right).states
    assert (found.equal, found.changed, found.only_left, found.only_right) == (1, 1, 0, 1)


@pytest.mark.parametrize("descriptor", [WAITING, HELD])
def test_waiting_and_held_rows_are_compared_as_a_multiset(
    tmp_path: Path, descriptor: StateDescriptor
) -> None:
    row = (0, "ann", 5, 1)
    left = save(tmp_path / "l", Frozen(descriptor, [row, row, (0, "ann", 5, 2)]))
    right = save(tmp_path / "r", Frozen(descriptor, [row, row, row]))
    (found,) = compare(left, right).states
    assert (found.equal, found.only_left, found.only_right) == (2, 1, 1)


def test_a_state_that_only_one_side_has_is_told(tmp_path: Path) -> None:
    left = save(tmp_path / "l", counts(("ann", 1)))
    right = save(tmp_path / "r", counts(("ann", 1)), Frozen(PAGES, [(0, "ann", "x", 1)]))
    _, found = compare(left, right).states
    reason = "only the right snapshot has this state"
    assert found == StateDifference("count", "pages", only_right=1, reason=reason)


def test_other_places_in_the_input_are_a_difference(tmp_path: Path) -> None:
    left = save(tmp_path / "l", counts(("ann", 1)))
    right = save(tmp_path / "r", counts(("ann", 1)), split=9)
    found = compare(left, right)
    assert not found.is_equal
    assert [(split.split, split.right and split.right.position) for split in found.splits] == [
        ("a", {"row": 9})
    ]


def test_a_difference_comes_back_from_json_with_all_that_a_place_has() -> None:
    left = SplitState({"row": 1}, Micros(5), generator={"seen": 2})
    found = Difference((), (SplitDifference("rows", "a", left, replace(left, generator=None)),))
    assert Difference.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_a_snapshot_equals_its_copy(tmp_path: Path) -> None:
    states = (counts(("ann", 1)), Frozen(PAGES, [(0, "ann", "x", 1)]))
    assert compare(save(tmp_path / "l", *states), save(tmp_path / "r", *states)).is_equal


def test_the_commands_answer_with_text_and_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = save(tmp_path / "l", counts(("ann", 1), ("bob", 2)))
    right = save(tmp_path / "r", counts(("ann", 1), ("bob", 3)))
    assert main(["savepoint", "show", left]) == 0
    assert main(["savepoint", "verify", left]) == 0
    assert "1 of 1 files are as they were written" in capsys.readouterr().out
    assert main(["savepoint", "diff", left, left]) == 0
    assert main(["savepoint", "diff", left, right]) == 1
    assert '{"k": "bob", "left": {"n": 2}, "right": {"n": 3}}' in capsys.readouterr().out
    assert main(["savepoint", "diff", left, right, "--json", "--examples", "0"]) == 1
    assert json.loads(capsys.readouterr().out)["states"][0]["changed"] == 1


def test_read_prints_rows_of_a_key_or_a_query(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path / "s", counts(("ann", 1), ("bob", 2)))
    of = ["savepoint", "read", path, "--operator", "count", "--state", "counts"]
    assert main([*of, "--key", "k=bob", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "key_group,k,n\n1,bob,2\n"
    assert main([*of, "--sql", "select sum(n) as total from state", "--format", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out) == {"total": 3}
    assert main([*of, "--limit", "1"]) == 0
    assert "there are more than 1 rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--key", "who=bob"], "state 'counts' has no key column 'who': its key is k"),
        (["--sql", "select nothing from state"], "query cannot be run: "),
        (["--sql", "select 1 from elsewhere"], "the rows are the table 'state'"),
        (["--sql", "select cast(k as int) from state"], "query cannot be run: conversion from"),
        (
            ["--sql", "select * from READ_CSV ('/etc/passwd')"],
            "query may read the table 'state' and no files: got READ_CSV (…; leave it out",
        ),
    ],
)
def test_a_wrong_question_is_answered_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], sentence: str
) -> None:
    path = save(tmp_path / "s", counts(("ann", 1)))
    of = ["savepoint", "read", path, "--operator", "count", "--state", "counts"]
    assert main([*of, *more]) == 1
    assert sentence in capsys.readouterr().err


def test_keys_of_other_types_are_read_from_text(tmp_path: Path) -> None:
    days = StateDescriptor(
        "days", StateKind.VALUE, {"day": pl.Date(), "n": pl.Int32()}, {"value": pl.Int64()}
    )
    rows = Frozen(days, [(0, date(2013, 3, 1), 3, 7)])
    snapshot = open_snapshot(save(tmp_path / "s", rows))
    state = snapshot.state("count", "days")
    found = snapshot.collect(of_key(snapshot.scan(state), state, {"day": "2013-03-01", "n": "3"}))
    assert found.get_column("value").to_list() == [7]
    with pytest.raises(ConfigError, match="key column 'n' is Int32: got 'x'"):
        of_key(snapshot.scan(state), state, {"n": "x"})
    assert found.columns[0] == KEY_GROUP
