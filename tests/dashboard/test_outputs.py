"""Outputs of a job: what lies where each sink writes, and what this page must not read."""

from __future__ import annotations

import csv
import io
import json
import os
from datetime import UTC, datetime

import polars as pl
import pytest

from controlplane.backends.sinks import SinkPlace
from controlplane.jobs.output_files import CHARACTERS, ROWS, look_into, rows_of
from controlplane.jobs.output_page import output_of
from controlplane.jobs.output_series import look_at
from controlplane.metrics.line_protocol import Point, tags_of
from controlplane.metrics.store import OUTPUTS

PAGE = "/jobs/flights/outputs/"
HOUR = datetime(2013, 3, 14, 5, tzinfo=UTC)


@pytest.fixture
def folder(settings, tmp_path):
    """A folder that the page may read."""
    settings.HEADWATER_OUTPUT_FOLDERS = [str(tmp_path / "output")]
    made = tmp_path / "output" / "daily"
    (made / "2013-03").mkdir(parents=True)
    return made


@pytest.fixture
def written(folder):
    """Two committed files, and one that waits."""
    first = pl.DataFrame({"carrier": ["AA"], "window_end": [HOUR], "delay": [1.25]})
    last = pl.DataFrame({"carrier": ["B6"] * 30, "window_end": [HOUR] * 30, "delay": [2.0] * 30})
    first.write_parquet(folder / "2013-03" / "j-0-0-1.parquet")
    last.write_parquet(folder / "2013-03" / "j-0-0-2.parquet")
    (folder / "2013-03" / ".j-0-0-3.pending").write_text("")
    os.utime(folder / "2013-03" / "j-0-0-1.parquet", (1_000, 1_000))
    return folder


def point(measurement, origin, hour, delay):
    tags = tags_of({"origin": origin}.items())
    fields = (("delay", delay), ("flights", 10))
    return Point(measurement, tags, fields, hour * 3_600 * 10**9)


@pytest.fixture
def points(store):
    given = [point("flights_daily", o, h, h / 2) for o in ("EWR", "JFK") for h in range(30)]
    given += [point("flights_daily@r-1", "EWR", 3, 1.5)]
    assert store.write(OUTPUTS, given) == []


def test_files_are_counted_and_the_newest_is_shown_to_its_end(written):
    seen = look_into(str(written))
    assert (seen.files, seen.waiting, seen.newest) == (2, 1, "2013-03/j-0-0-2.parquet")
    assert seen.size_bytes > 500
    assert [name for name, _ in seen.rows.columns] == ["carrier", "window_end", "delay"]
    assert len(seen.rows.rows) == ROWS
    assert seen.rows.newest_event_ms == HOUR.timestamp() * 1_000


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/etc", "not one that this page may read"),
        ("{folder}/../../..", "not one that this page may read"),
        ("{folder}-elsewhere", "nothing has been written there yet"),
        ("{folder}", "the folder is empty"),
    ],
)
def test_a_folder_that_shows_nothing_says_why(target, reason, folder):
    seen = look_into(target.format(folder=folder))
    assert reason in seen.reason
    assert seen.files == 0


def test_a_link_does_not_lead_out_of_the_folder(folder, tmp_path):
    outside = tmp_path / "secret"
    outside.mkdir()
    (outside / "x.jsonl").write_text('{"a": 1}\n')
    (folder / "link").symlink_to(outside)
    (folder / "x.jsonl").symlink_to(outside / "x.jsonl")
    assert look_into(str(folder)).files == 0
    assert "not one that this page" in look_into(str(folder / "link")).reason


def test_the_end_of_a_long_file_of_lines_is_read(folder):
    lines = "".join(f'{{"n": {n}, "text": "{"x" * 400}"}}\n' for n in range(2_000))
    (folder / "a.jsonl").write_text(lines)
    seen = look_into(str(folder))
    assert [row[0] for row in seen.rows.rows] == [str(n) for n in range(1_990, 2_000)]
    assert seen.rows.rows[0][1] == "x" * CHARACTERS + "…"


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl"])
def test_a_file_that_cannot_be_read_is_named(name, folder):
    (folder / name).write_text("no such thing\n")
    seen = look_into(str(folder))
    assert (seen.files, seen.rows) == (1, None)
    assert f"the newest file cannot be read: {name}" in seen.reason


def test_values_of_all_kinds_become_text():
    frame = pl.DataFrame(
        {"n": [None], "f": [1 / 3], "l": [[1, 2]], "s": [{"a": 1}], "b": [b"\x00"], "t": [HOUR]}
    )
    assert rows_of(frame).rows == (
        ("", "0.333333", "[1, 2]", '{"a": 1}', "b'\\x00'", "2013-03-14T05:00:00+00:00"),
    )


def test_points_have_a_schema_a_span_and_last_rows(points):
    seen = look_at("flights_daily")
    assert dict(seen.fields) == {"delay": "float", "flights": "integer"}
    assert (seen.tags, seen.series) == (("origin",), 2)
    assert (seen.first_ms, seen.newest_ms) == (0, 29 * 3_600_000)
    assert len(seen.rows.rows) == ROWS
    assert seen.rows.rows[-1] == ("1970-01-02T05:00:00+00:00", "JFK", "14.5", "10")


def test_a_measurement_that_is_not_here_says_so(store):
    assert "no point of that measurement" in look_at("nothing").reason


def test_a_stopped_job_shows_what_is_found_by_name_and_what_a_replay_wrote(
    as_, alice, replay, points
):
    page = as_(alice).get(PAGE).content.decode()
    assert "The engine tells nothing of the sinks." in page
    assert "found by name" in page
    assert "flights_daily@r-1" in page
    assert "Last 10 rows" in page


def test_a_running_job_shows_where_its_sinks_write(as_, alice, running):
    page = as_(alice).get(PAGE).content.decode()
    assert "The engine tells nothing" not in page
    assert "Goes to" in page


def test_each_kind_of_sink_is_looked_at_where_it_writes(written, points, flights):
    places = [("files", "parquet", str(written)), ("points", "influx", "flights_daily")]
    places += [("lines", "print", "standard output")]
    files, series, lines = (
        output_of(SinkPlace(name, name, kind, target, {}), []) for name, kind, target in places
    )
    assert files.files.files == 2
    assert series.points.series == 2
    assert "keeps nothing to look at" in lines.reason


def test_the_list_as_a_file(as_, alice, replay, points):
    answer = as_(alice).get("/jobs/flights/outputs.csv").getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(answer)))
    assert [(row["target"], row["replay"], row["series"]) for row in rows] == [
        ("flights_daily", "", "2"),
        ("flights_daily@r-1", "r-1", "1"),
    ]
    assert len(json.loads(as_(alice).get("/jobs/flights/outputs.json").getvalue())) == 2
