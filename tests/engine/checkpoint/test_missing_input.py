"""Input that a snapshot's positions need and that is gone: named by source, agreed to or not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

import engine as hw
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.compatibility import Outcome, check_restore
from engine.checkpoint.restoring.inputs import (
    Chosen,
    Gap,
    Inputs,
    SourceInput,
    begun,
    look,
    positions_of,
)
from engine.checkpoint.restoring.renames import Renames
from engine.connectors.contract import Source
from engine.connectors.frame import FrameSource
from engine.connectors.generator import SensorGenerator
from engine.connectors.json_lines import JsonLinesSource
from engine.connectors.playback import PlaybackSource
from engine.connectors.print import PrintSink
from engine.connectors.socket import SocketSource
from engine.elements import MIN_TIME, Micros
from engine.errors import RestoreError
from engine.graph.plan import Plan

MARCH = Micros(1_362_096_000_000_000)
FRAME = pl.DataFrame({"n": [1, 2, 3]})


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.jsonl").write_text('{"n": 1}\n{"n": 2}\n')
    return tmp_path


def lines(logs: Path) -> JsonLinesSource:
    return JsonLinesSource(logs / "*.jsonl", schema={"n": int})


def test_a_file_that_is_gone_or_shorter_is_named_with_its_lines(logs: Path) -> None:
    source, position = lines(logs), {"byte": 9, "line": 1}
    assert [source.missing(f"{name}.jsonl", position) for name in "abc"] == ["", "", ""]
    (logs / "a.jsonl").unlink()
    (logs / "b.jsonl").write_text("{}\n")
    assert source.missing("a.jsonl", None) == f"lines from 1 on: no file {logs}/a.jsonl"
    assert source.missing("a.jsonl", position) == f"lines from 2 on: no file {logs}/a.jsonl"
    gone = f"lines from 2 on: {logs}/b.jsonl ends at byte 3, before byte 9"
    assert source.missing("b.jsonl", position) == gone


def paced(row: int) -> dict[str, int]:
    return {"row": row, "anchor_us": 0}


@pytest.mark.parametrize(
    ("source", "split", "position", "missing"),
    [
        (FrameSource(FRAME), "frame", 3, ""),
        (FrameSource(FRAME), "frame", 4, "rows from 3 to 4 were read: the frame has them no more"),
        (FrameSource({"x": FRAME}), "y", 1, "rows from 1 on: the job has no frame 'y'"),
        (SensorGenerator(rate=1), "door", paced(10**9), ""),
        (SensorGenerator(rate=1, rows=5), "door", paced(5), ""),
        (SensorGenerator(rate=1, rows=5), "door", paced(6), "rows from 6 on: it ends at row 5"),
        (SensorGenerator(1), "x", None, "all of it: the generator has door, pressure, temperature"),
        (SocketSource("localhost", 1), "socket", {"lines": 9}, None),
    ],
)
def test_each_source_says_what_it_has(
    source: Source, split: str, position: object, missing: str | None
) -> None:
    assert source.missing(split, position) == missing  # type: ignore[arg-type]


def test_a_recording_says_which_split_it_has_no_more(tmp_path: Path) -> None:
    time = [datetime(2013, 1, 1, hour, tzinfo=UTC) for hour in range(3)]
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"at": time, "of": ["a", "a", "b"]}).write_parquet(path)
    source = PlaybackSource(path, order="at", split_by="of")
    assert source.missing("a", paced(2)) == ""
    assert source.missing("a", paced(3)) == "rows from 3 on: it ends at row 2"
    assert source.missing("c", None) == f"all of it: it is not in {path}"


def test_the_sources_of_a_graph_are_asked_about_what_has_not_ended(logs: Path) -> None:
    env = hw.Environment("n")
    env.source(lines(logs), uid="read").filter(pl.col("n") > 0).sink(PrintSink())
    env.source(SocketSource("localhost", 1), uid="wire").sink(PrintSink())
    (logs / "a.jsonl").unlink()
    (logs / "b.jsonl").unlink()
    positions = {
        "read": {"a.jsonl": ({"byte": 9, "line": 1}, MARCH), "c.jsonl": (None, MIN_TIME)},
        "wire": {"socket": ({"lines": 9}, MIN_TIME)},
        "gone": {"x": (None, MIN_TIME)},
    }
    found = look(env.graph(), positions, {})
    gap = Gap(f"lines from 2 on: no file {logs}/a.jsonl", MARCH)
    assert found == {"read": SourceInput({"a.jsonl": gap}), "wire": SourceInput(unknown=1)}
    assert SourceInput.from_json(found["read"].to_json()) == found["read"]


@pytest.fixture
def manifest(tmp_path: Path, take_snapshot: Callable[..., Manifest]) -> Manifest:
    return take_snapshot(tmp_path)


@pytest.fixture
def gone(manifest: Manifest) -> Inputs:
    return {"read": SourceInput({first_split(manifest): Gap("lines from 2 on: no file", MARCH)})}


def first_split(manifest: Manifest) -> str:
    return min(positions_of(manifest, {})["read"])


def test_missing_input_is_refused_with_the_range_and_needs_consent_by_source(
    manifest: Manifest, gone: Inputs, make_plan: Callable[..., Plan]
) -> None:
    report = check_restore(manifest, make_plan(), inputs=gone)
    with pytest.raises(RestoreError) as refused:
        report.raise_if_refused()
    assert str(refused.value) == (
        "snapshot does not fit the job: operator 'read': input that it has not read is not there "
        f"any more: split '{first_split(manifest)}', event time from 2013-03-01T00:00:00+00:00 on, "
        "lines from 2 on: no file; bring it back, choose a later snapshot, or accept that the job "
        "goes on without it"
    )
    assert report.rows[0].reason == "goes on with 1 split"
    assert check_restore(manifest, make_plan(), inputs=gone, accept_missing={"count"}).refused
    accepted = check_restore(manifest, make_plan(), inputs=gone, accept_missing={"read"})
    assert [row.outcome for row in accepted.rows][:2] == [Outcome.RESTORED, Outcome.MISSING_INPUT]
    assert not accepted.refused


def test_consent_to_lost_state_is_none_to_missing_input(
    manifest: Manifest, gone: Inputs, make_plan: Callable[..., Plan]
) -> None:
    assert check_restore(manifest, make_plan(), allow_non_restored=True, inputs=gone).refused


def test_what_a_source_cannot_tell_is_said_and_stands_in_nobodys_way(
    manifest: Manifest, make_plan: Callable[..., Plan]
) -> None:
    report = check_restore(manifest, make_plan(), inputs={"read": SourceInput(unknown=2)})
    told = "goes on with 2 splits; it does not say whether their input is still there"
    assert (report.rows[0].reason, report.refused) == (told, ())


def test_a_split_whose_input_is_gone_has_ended_under_any_name_of_its_source(
    manifest: Manifest,
) -> None:
    split = first_split(manifest)
    for uid, renames in (("read", Renames()), ("input", Renames({"read": "input"}))):
        entry = begun(manifest, {uid: Chosen(ended=[split])}, renames).operator("read")
        assert entry is not None
        assert [id_ for id_, state in entry.splits.items() if state.finished] == [split]


def test_a_sentence_names_three_splits_and_counts_the_others() -> None:
    gaps = {f"{n}.jsonl": Gap("all of it", MIN_TIME) for n in range(5)}
    assert SourceInput(gaps).sentences == [
        "split '0.jsonl', all of it",
        "split '1.jsonl', all of it",
        "split '2.jsonl', all of it",
        "and 2 more splits",
    ]
