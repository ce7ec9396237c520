"""Sources that begin elsewhere than where the snapshot left them: where, and what that means."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

import engine as hw
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.compatibility import check_restore
from engine.checkpoint.restoring.inputs import Chosen, SourceInput, begun, look, positions_of
from engine.checkpoint.restoring.renames import Renames
from engine.checkpoint.restoring.starts import in_words, parse_starts
from engine.connectors.generator import SensorGenerator
from engine.connectors.json_lines import JsonLinesSource
from engine.connectors.playback import PlaybackSource
from engine.connectors.print import PrintSink
from engine.elements import MIN_TIME, Micros
from engine.errors import RestoreError, SourceError
from engine.graph.plan import Plan

SECOND = 1_000_000
STORED = {"row": 7, "anchor_us": 5 * SECOND}


def test_a_recording_begins_at_its_own_time_and_keeps_its_clock(tmp_path: Path) -> None:
    time = [datetime(1970, 1, 1, hour, tzinfo=UTC) for hour in range(4)]
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"at": time, "of": ["a", "b", "a", "a"]}).write_parquet(path)
    source = PlaybackSource(path, order="at", split_by="of")
    hour = 3_600 * SECOND

    def row(split: str, at: int | None) -> object:
        return source.position_at(split, STORED, None if at is None else Micros(at))

    assert row("a", None) == STORED | {"row": 0}
    assert [row("a", at * hour) for at in (0, 1, 2, 3, 4)] == [
        STORED | {"row": n} for n in (0, 1, 1, 2, 3)
    ]


@pytest.mark.parametrize(("at", "row"), [(None, 0), (4, 0), (6, 0), (7, 1), (8, 2), (99, 10)])
def test_a_generator_begins_with_the_first_row_that_is_appended_then(
    at: int | None, row: int
) -> None:
    source = SensorGenerator(rate=1, disorder_ms=0, rows=10)
    time = None if at is None else Micros(at * SECOND)
    assert source.position_at("door", STORED, time) == STORED | {"row": row}


def test_files_begin_at_their_first_line_and_cannot_be_searched_by_time(tmp_path: Path) -> None:
    source = JsonLinesSource(tmp_path / "*.jsonl", schema={"n": int})
    assert source.position_at("a.jsonl", {"byte": 9, "line": 1}, None) is None
    with pytest.raises(SourceError, match="JsonLinesSource finds no rows by time; begin where"):
        source.position_at("a.jsonl", None, Micros(1))


def test_choices_are_read_as_they_are_written() -> None:
    given = ["a=earliest", " b = 1970-01-01T00:00:01Z ", ""]
    assert parse_starts(given) == {"a": None, "b": SECOND}


@pytest.mark.parametrize("given", ["earliest", "=earliest", "a=noon", "a="])
def test_what_is_no_choice_is_refused(given: str) -> None:
    with pytest.raises(RestoreError, match="position"):
        parse_starts([given])


def test_what_a_choice_means_is_said() -> None:
    day = Micros(86_400 * SECOND)
    assert "counted again, and rows of windows that have closed are late" in in_words(None, day)
    assert "to 1970-01-02T00:00:00+00:00 it reads again" in in_words(Micros(0), day)
    skipped = "event time from 1970-01-02T00:00:00+00:00 to then is not read"
    assert skipped in in_words(Micros(day + 1), day)
    assert "not known" in in_words(day, MIN_TIME)


@pytest.fixture
def manifest(tmp_path: Path, take_snapshot: Callable[..., Manifest]) -> Manifest:
    return take_snapshot(tmp_path)


def test_a_choice_for_what_is_no_source_names_those_there_are(manifest: Manifest) -> None:
    with pytest.raises(RestoreError, match="no source of the snapshot: it has read; name one"):
        positions_of(manifest, {"count": None})


def test_the_splits_begin_there_with_event_time_anew_and_the_check_says_so(
    manifest: Manifest, make_plan: Callable[..., Plan]
) -> None:
    env = hw.Environment("n")
    source = SensorGenerator(rate=1)
    env.source(source, uid="read").sink(PrintSink())
    found = look(env.graph(), {"read": {"door": (dict(STORED), MIN_TIME)}}, {"read": None})
    assert found["read"].starts == {"door": STORED | {"row": 0}}
    assert SourceInput.from_json(found["read"].to_json()) == found["read"]
    report = check_restore(manifest, make_plan(), inputs=found)
    assert report.rows[0].reason.startswith("begins at its earliest row: what windows")
    starts = dict.fromkeys(positions_of(manifest, {})["read"], 3)
    entry = begun(manifest, {"read": Chosen(starts)}, Renames()).operator("read")
    assert entry is not None
    assert entry.watermark == MIN_TIME
    assert {(one.position, one.watermark, one.finished) for one in entry.splits.values()} == {
        (3, MIN_TIME, False)
    }
