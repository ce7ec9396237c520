"""Commands that read files here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from engine.checkpoint.format.entries import OperatorEntry, StateEntry
from engine.checkpoint.format.manifest import Manifest
from engine.cli import main
from engine.elements import MIN_TIME, SnapshotKind
from engine.state.contract import StateKind
from engine.testing import fake_values as values
from engine.version import VERSION
from golden_snapshots import formats, snapshots

JOB_FILE = """
import sys
from collections.abc import Mapping, Sequence

import polars as pl

import engine as hw
from engine import agg, windows
from engine.connectors.contract import Json, Sink, SinkContext, SinkWriter, Source, SplitReader


class Nothing(Source):
    bounded = True

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        return {"carrier": pl.String(), "at": pl.Datetime("us")}

    def splits(self) -> Sequence[str]:
        return ["only"]

    def open(self, split: str, position: Json | None) -> SplitReader:
        raise NotImplementedError


class Nowhere(Sink):
    def open(self, context: SinkContext) -> SinkWriter:
        raise NotImplementedError

    def shadow(self, name: str) -> Sink:
        return self


env = hw.Environment(sys.argv[1])
rows = env.source(Nothing(), uid="rows", watermarks=hw.bounded_out_of_orderness("1h", column="at"))
daily = rows.key_by("carrier").window(windows.tumbling("1d")).agg(n=agg.count(), uid="daily")
daily.sink(Nowhere(), uid="nowhere")
env.execute()
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "daily.py"
    path.write_text(JOB_FILE)
    return str(path)


def test_plan_draws_the_graph(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", file, "-p", "2", "--", "by-day"]) == 0
    drawn = capsys.readouterr().out
    assert drawn.startswith("job by-day\n")
    assert "  daily: window_aggregate ← daily.partial hash(carrier)\n" in drawn
    assert drawn.count("× 2\n") == 2
    assert "keeps slices: runs by carrier String\n" in drawn


def test_plan_gives_json_to_programs(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", file, "--json", "--", "by-day"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["name"] == "by-day"
    assert [len(vertex["operators"]) for vertex in plan["vertices"]] == [2, 2]


def test_a_job_file_that_does_not_compile_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.py"
    path.write_text("def f(:\n")
    assert main(["plan", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("headwater: job file has a syntax error: broken.py, line 1: ")
    assert error.count("\n") == 1


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    stats = values.checkpoint(
        7, values.plan("flights", 2), 1_796_011_154_430, SnapshotKind.SAVEPOINT
    )
    folder = tmp_path / "savepoint"
    folder.mkdir()
    (folder / "_metadata").write_bytes(values.manifest("f" * 32, "flights", stats).dump())
    return folder


def test_state_shows_what_a_snapshot_holds(
    snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["state", "show", str(snapshot)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("savepoint 7 of job flights\n")
    assert "event time  2013-03-11 11:06:40 UTC\n" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["daily", "slices", "runs", "80", "40,439", "2", "2"] in lines
    assert ["flights", "EWR", "1000", "2013-03-11", "11:06:40", "UTC"] in lines


def test_state_gives_json_to_programs(snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", "show", str(snapshot), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoint_id"] == 7


def test_a_folder_that_is_no_snapshot_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["state", "show", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "is not a snapshot: it has no _metadata" in error
    assert error.count("\n") == 1


def test_a_checkpoint_in_layers_says_how_much_of_it_is_older(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["savepoint", "show", str(snapshots(formats()[-1])[-1])]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"size +[\d,]+ bytes, [\d,]+ of them in files of earlier checkpoints", shown)


@pytest.fixture
def other(tmp_path: Path) -> str:
    """A savepoint of another job, whose state `slices` of `by-carrier` has no rows."""
    kept = StateEntry("slices", StateKind.RUNS, {"carrier": "String"}, {"n": "Int64"})
    operators = (
        OperatorEntry("by-carrier", "by carrier", "v", 1, 128, MIN_TIME, (kept,)),
        OperatorEntry("old", "old", "w", 1, 128, MIN_TIME, (kept,)),
    )
    manifest = Manifest("f" * 32, "other", "hash", 7, SnapshotKind.SAVEPOINT, 0, VERSION, operators)
    folder = tmp_path / "savepoint"
    folder.mkdir()
    (folder / "_metadata").write_bytes(manifest.dump())
    return str(folder)


def test_preflight_says_what_would_be_restored(
    file: str, other: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["preflight", file, "-s", other, "--rename", "by-carrier=daily"]
    assert main([*asked, "--allow-lost", "old", "--", "by-day"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["operator", "state", "outcome", "rows", "bytes"]
    assert [line.split()[:3] for line in lines[1:]] == [
        ["rows", "new", "0"],
        ["daily", "slices", "restored"],
        ["old", "dropped", "0"],
    ]
    assert main([*asked, "--", "by-day"]) == 1
    assert "operator 'old': is in the snapshot and not in the job" in capsys.readouterr().err
