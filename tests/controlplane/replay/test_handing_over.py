"""All outputs of a replay handed over, files and points, and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.access.errors import Refused
from controlplane.audit.models import AuditEntry
from controlplane.metrics.line_protocol import Point
from controlplane.metrics.store import OUTPUTS, embedded_store, series_store
from controlplane.replay.comparison.compare import HOUR_US
from controlplane.replay.comparison.found import Verdict
from controlplane.replay.comparison.keeping import count
from controlplane.replay.comparison.looking import AT_LEAST, Looked, look_at, look_at_all
from controlplane.replay.models import Replay
from controlplane.replay.outputs.handing import create_outputs, restore_all, swap_all
from controlplane.replay.outputs.tables import committed, scan_files
from controlplane.replay.outputs.targets import targets_of
from controlplane.replay.tolerances import set_tolerance

DAY = timedelta(days=1)
BEGIN = datetime(2013, 3, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD, REPLAY = "a" * 32, "b" * 32


def operator(uid, role, **description):
    return {"uid": uid, "name": uid, "kind": role, "description": description}


def plan(folder) -> dict:
    """A source, and a window whose results go to files, points and a socket, in two vertices."""
    window = operator("daily", "transform", keys="carrier, origin", window="tumbling 1 d")
    files = operator("files", "sink", kind="parquet", target=f"{folder}@r-1")
    points = operator(
        "points", "sink", kind="influx", target="daily@r-1", bucket=OUTPUTS, tags="carrier, origin"
    )
    raw = operator("raw", "sink", kind="parquet", target=f"{folder}-raw@r-1")
    other = operator("told", "sink", kind="print", target="told@r-1")
    vertices = [
        {"id": "v1", "operators": [operator("flights", "source"), raw]},
        {"id": "v2", "operators": [window, files]},
        {"id": "v3", "operators": [points, other]},
    ]
    edges = [
        {"source": "v1", "target": "v2", "operator": 0},
        {"source": "v2", "target": "v3", "operator": 0},
    ]
    return {"vertices": vertices, "edges": edges}


@pytest.fixture
def replay(running, alice, savepoint, tmp_path):
    made = Replay.objects.create(
        number=1,
        job=running,
        savepoint=savepoint,
        version=running.versions.get(),
        status=Replay.Status.CAUGHT_UP,
        event_time_start=BEGIN,
    )
    create_outputs(made, targets_of(plan(tmp_path / "daily")))
    for name in ("daily", "daily@r-1", "daily@r-1.old", "daily@r-1.new"):
        embedded_store().remove(OUTPUTS, name, 0)  # points of the test before
    return made


@pytest.fixture
def savepoint(running):
    return running.savepoints.create(origin="manual", status="completed", location="/sp")


def write(folder, run: str, days: range, delay: int) -> None:
    """A file of one day each, and a point; the window of day n ends n days after the beginning."""
    measurement = "daily@r-1" if folder.name.endswith("@r-1") else "daily"
    for day in days:
        end = BEGIN + day * DAY
        row = {"carrier": ["AA"], "origin": ["JFK"], "window_start": [end - DAY]}
        frame = pl.DataFrame({**row, "window_end": [end], "delay": [delay]})
        folder.mkdir(exist_ok=True)
        frame.write_parquet(folder / f"{run}-{day}.parquet")
        tags = (("carrier", "AA"), ("origin", "JFK"))
        time_ns = int(end.timestamp()) * 10**9
        series_store().write(OUTPUTS, [Point(measurement, tags, (("delay", delay),), time_ns)])


def delays(folder) -> tuple[list[int], list[int]]:
    """What is in the files, and in the points."""
    files = scan_files(committed(folder)).sort("window_end").collect()["delay"].to_list()
    found = series_store().query(OUTPUTS, "daily", "delay")
    return files, [int(value) for one in found for _, value in one.points]


def test_a_plan_says_which_outputs_can_be_compared_and_why_others_cannot(replay, tmp_path):
    told = {one.uid: (one.place, one.keys, one.why_not) for one in replay.outputs.all()}
    assert told["files"] == (
        str(tmp_path / "daily"),
        ["carrier", "origin", "window_start"],
        "",
    )
    assert told["points"] == ("daily", ["carrier", "origin"], "")
    assert "no results of windows" in told["raw"][2]
    assert "kind print" in told["told"][2]


def test_outputs_of_every_kind_are_swapped_and_restored(replay, tmp_path):
    target, beside = tmp_path / "daily", tmp_path / "daily@r-1"
    write(target, OLD, range(-1, 4), 1)
    write(beside, REPLAY, range(1, 5), 2)
    for _ in range(2):
        swap_all(replay)
        assert delays(target) == ([1, 1, 2, 2, 2, 2],) * 2
    write(target, "c" * 32, range(5, 6), 2)
    for _ in range(2):
        restore_all(replay, [REPLAY, "c" * 32])
        assert delays(target) == ([1] * 5,) * 2


def test_cut_over_at_a_time_only_what_was_written_from_there_on_gives_way(replay, tmp_path):
    target, cut = tmp_path / "daily", BEGIN + 3 * DAY
    write(target, OLD, range(4), 1)
    write(target, "c" * 32, range(4, 6), 2)
    Replay.objects.update(cut_at=cut)
    replay.refresh_from_db()
    for since, points in ((None, [1] * 4 + [2] * 2), (cut + timedelta(microseconds=1), [1] * 4)):
        replay.outputs.update(new_from=since)
        for _ in range(2):
            restore_all(replay, ["c" * 32])
            assert delays(target) == ([1] * 4, points)
    kept = series_store().query(OUTPUTS, "daily@r-1.new", "delay")
    assert [int(value) for one in kept for _, value in one.points] == [2, 2]


def test_looks_compare_each_closed_window_once(replay, tmp_path):
    target, beside = tmp_path / "daily", tmp_path / "daily@r-1"
    write(target, OLD, range(-1, 9), 1)
    write(beside, REPLAY, range(1, 3), 1)
    look_at_all(NOW)
    look_at_all(NOW + AT_LEAST / 2)  # too soon to say anything new
    write(beside, REPLAY, range(3, 6), 2)
    look_at_all(NOW + AT_LEAST)
    files = replay.outputs.get(uid="files")
    assert (count(files, Verdict.EQUAL), count(files, Verdict.CHANGED)) == (2, 0)

    look_at_all(NOW + 2 * AT_LEAST)
    look_at_all(NOW + 3 * AT_LEAST)
    for output in replay.outputs.filter(why_not=""):
        assert (count(output, Verdict.EQUAL), count(output, Verdict.CHANGED)) == (2, 3)
        difference = output.differences.get()
        assert (difference.fields, difference.rows) == (["delay"], 3)
        assert difference.examples[0]["old"], difference.examples[0]["new"] == (
            {"delay": 1},
            {"delay": 2},
        )


def test_an_output_that_cannot_be_read_is_told_and_tried_again(replay, tmp_path):
    target, beside = tmp_path / "daily", tmp_path / "daily@r-1"
    write(target, OLD, range(1, 3), 1)
    write(beside, REPLAY, range(1, 3), 1)
    (target / "torn.parquet").write_bytes(b"no parquet")
    look_at_all(NOW)
    assert "cannot be read" in replay.outputs.get(uid="files").trouble
    (target / "torn.parquet").unlink()
    look_at_all(NOW + AT_LEAST)
    assert replay.outputs.get(uid="files").trouble == ""


def looked(replay, at=NOW) -> Looked:
    return look_at(replay.outputs.select_related("replay").get(uid="files"), at)


def test_what_has_not_changed_is_not_read_again(replay, tmp_path):
    target, beside = tmp_path / "daily", tmp_path / "daily@r-1"
    write(target, OLD, range(1, 9), 1)
    write(beside, REPLAY, range(1, 9), 1)
    assert looked(replay).files == 16
    second = looked(replay, NOW + AT_LEAST)
    assert (second.files, second.rows) == (0, 8)
    assert sum(end - begin for begin, end in second.stretches) == 8 * 24 * HOUR_US
    assert looked(replay, NOW + 2 * AT_LEAST) == Looked()


def test_a_late_correction_is_noticed_and_only_its_hours_are_compared_again(replay, tmp_path):
    target, beside = tmp_path / "daily", tmp_path / "daily@r-1"
    write(target, OLD, range(1, 9), 1)
    write(beside, REPLAY, range(1, 9), 1)
    for turn in range(2):
        looked(replay, NOW + turn * AT_LEAST)
    write(beside, REPLAY, range(3, 4), 2)
    again = looked(replay, NOW + 2 * AT_LEAST)
    assert (again.files, again.rows) == (1, 1)
    assert [end - begin for begin, end in again.stretches] == [HOUR_US]
    files = replay.outputs.get(uid="files")
    assert (count(files, Verdict.EQUAL), count(files, Verdict.CHANGED)) == (7, 1)
    write(beside, REPLAY, range(3, 4), 1)
    looked(replay, NOW + 3 * AT_LEAST)
    files.refresh_from_db()
    assert (count(files, Verdict.EQUAL), files.differences.count()) == (8, 0)


def test_a_file_that_goes_takes_its_rows_with_it(replay, tmp_path):
    target, beside = tmp_path / "daily", tmp_path / "daily@r-1"
    write(target, OLD, range(1, 9), 1)
    write(beside, REPLAY, range(1, 9), 1)
    for turn in range(2):
        looked(replay, NOW + turn * AT_LEAST)
    (target / f"{OLD}-4.parquet").unlink()
    looked(replay, NOW + 2 * AT_LEAST)
    files = replay.outputs.get(uid="files")
    assert (count(files, Verdict.EQUAL), count(files, Verdict.ONLY_NEW)) == (7, 1)


def test_what_was_accepted_stays_accepted_when_an_hour_is_compared_again(replay, alice, tmp_path):
    target, beside = tmp_path / "daily", tmp_path / "daily@r-1"
    write(target, OLD, range(1, 9), 1)
    write(beside, REPLAY, range(1, 9), 2)
    for turn in range(2):
        looked(replay, NOW + turn * AT_LEAST)
    replay.outputs.get(uid="files").differences.update(accepted_by=alice, accepted_at=NOW)
    write(beside, REPLAY, range(3, 4), 1)
    with CaptureQueriesContext(connection) as asked:
        looked(replay, NOW + 2 * AT_LEAST)
    changes = [one["sql"] for one in asked if one["sql"].startswith("UPDATE")]
    assert not any("accepted" in sql for sql in changes)  # somebody may do so meanwhile
    difference = replay.outputs.get(uid="files").differences.get()
    assert (difference.rows, difference.accepted_by) == (7, alice)


def test_a_tolerance_compares_all_again_and_asks_for_consent_anew(replay, alice, bob, tmp_path):
    target, beside = tmp_path / "daily", tmp_path / "daily@r-1"
    write(target, OLD, range(1, 9), 10)
    write(beside, REPLAY, range(1, 9), 11)
    for turn in range(2):
        looked(replay, NOW + turn * AT_LEAST)
    files = replay.outputs.get(uid="files")
    files.differences.update(accepted_by=alice, accepted_at=NOW)
    with pytest.raises(Refused, match="needs the operator role"):
        set_tolerance(replay, bob, "files", "delay", "relative", 0.1)
    set_tolerance(replay, alice, "files", "delay", "relative", 0.1)
    entry = AuditEntry.objects.get(action="replay.tolerance")
    assert (entry.before["accepted"], entry.after["tolerance"]) == (1, {"delay": {"relative": 0.1}})
    again = looked(replay, NOW + 2 * AT_LEAST)
    files.refresh_from_db()
    assert (again.files, count(files, Verdict.EQUAL), files.differences.count()) == (0, 8, 0)
    set_tolerance(replay, alice, "files", "delay", "absolute", 0.5)
    looked(replay, NOW + 3 * AT_LEAST)
    files.refresh_from_db()
    assert (count(files, Verdict.CHANGED), files.differences.get().accepted_at) == (8, None)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("nothing", "delay", "absolute", 1.0), "there is no output nothing"),
        (("files", "carrier", "absolute", 1.0), "files has no column of numbers carrier: choose"),
        (("files", "delay", "twice", 1.0), "a tolerance is absolute or relative: got twice"),
        (("files", "delay", "absolute", -1.0), "must be a number from 0: got -1"),
        (("told", "delay", "absolute", 1.0), "told is not compared: what a sink of kind print"),
    ],
)
def test_a_tolerance_that_cannot_be_meant_is_refused(replay, alice, given, sentence):
    replay.outputs.filter(uid="files").update(columns=["delay"])
    with pytest.raises(Refused, match=sentence):
        set_tolerance(replay, alice, *given)
