"""Rows that become blocks: no chart can tell, whatever is written when, and whatever is killed."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.metrics.contract import DAY_MS, HOUR_MS, Aggregate
from controlplane.metrics.embedded.compaction import KEPT, Keep, compact, expire
from controlplane.metrics.embedded.store import SeriesStore
from controlplane.metrics.line_protocol import Point

MS = 1_000_000
FOREVER = {"b": Keep()}
DAYS = {"b": Keep(raw_ms=DAY_MS, tens_ms=3 * DAY_MS, minutes_ms=10 * DAY_MS, hours_ms=90 * DAY_MS)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "series.db"


def points(times_ms, value=lambda t: float(t % 7)):
    return [Point("m", (), (("v", value(t)),), int(t * MS)) for t in times_ms]


def line(store, **options):
    return [point for one in store.query("b", "m", "v", **options) for point in one.points]


def model(written, step_ms, aggregate, low=None, high=None):
    """What a step is, by definition: from all points, at once."""
    steps: dict[int, list[float]] = {}
    for at in sorted(written):
        if (low is None or at >= low) and (high is None or at < high):
            steps.setdefault(at // step_ms * step_ms, []).append(written[at])
    how = {
        Aggregate.MEAN: lambda of: sum(of) / len(of),
        Aggregate.MIN: min,
        Aggregate.MAX: max,
        Aggregate.SUM: sum,
        Aggregate.COUNT: len,
        Aggregate.LAST: lambda of: of[-1],
    }[aggregate]
    return [(start, how(of)) for start, of in steps.items()]


bursts = st.tuples(
    st.integers(-50, 50),  # begins at so many hours
    st.sampled_from([500, 1_000, 7_000, 60_000, 3_600_000, 40 * DAY_MS]),  # a point each so many ms
    st.integers(1, 900),
)
scripts = st.lists(bursts | st.just("compact"), max_size=8)


@settings(max_examples=12, deadline=None)
@given(scripts, st.sampled_from(list(Aggregate)), st.data())
def test_equals_its_definition_whenever_it_is_compacted(script, aggregate, data):
    with tempfile.TemporaryDirectory() as folder:
        store = SeriesStore(Path(folder) / "series.db", FOREVER)
        written: dict[int, float] = {}
        for number, step in enumerate(script):
            if step == "compact":
                store.compact(0)
                continue
            hour, every, count = step
            times = [hour * HOUR_MS + 250 + n * every for n in range(count)]
            new = {t: float((t + number) % 11) for t in times}
            written |= new
            store.write("b", points(times, new.__getitem__))
        low, high = sorted(data.draw(st.integers(-60, 60)) * HOUR_MS + 130_000 for _ in range(2))
        assert line(store, limit=10**6) == sorted(written.items())
        for step_ms in (10_000, 50_000, HOUR_MS, 6 * HOUR_MS, 7_777):
            asked = {"step_ms": step_ms, "aggregate": aggregate, "limit": 10**6}
            assert line(store, **asked) == model(written, step_ms, aggregate)
            found = line(store, **asked, start_ms=low, stop_ms=high)
            assert found == model(written, step_ms, aggregate, low, high)
        store.close()


def contents(path: Path) -> list[list[tuple]]:
    with sqlite3.connect(path) as db:
        tables = ("series", "columns", "points", "raw", "rollups")
        return [db.execute(f"SELECT * FROM {table}").fetchall() for table in tables]


def test_the_same_hours_written_twice_leave_the_same_points_and_roll_ups(path: Path) -> None:
    store = SeriesStore(path, FOREVER)
    hours = points(range(0, 3 * HOUR_MS, 1_000), lambda t: t / 3)
    store.write("b", hours)
    store.compact(0)
    once = contents(path)
    assert once[3]
    assert once[4]
    store.write("b", hours)
    assert line(store, step_ms=60_000) == line(SeriesStore(path), step_ms=60_000)
    store.compact(0)
    assert contents(path) == once
    store.close()


def test_a_point_that_comes_late_counts_at_once_and_in_the_roll_up(path: Path) -> None:
    store = SeriesStore(path, FOREVER)
    store.write("b", points(range(0, 2 * HOUR_MS, 1_000), lambda _: 1.0))
    store.compact(0)
    asked = {"step_ms": HOUR_MS, "aggregate": "max", "stop_ms": HOUR_MS}
    store.write("b", points([1_800_500], lambda _: 9.0))
    assert line(store, **asked) == [(0, 9.0)]
    store.compact(0)
    assert line(store, **asked) == [(0, 9.0)]
    assert contents(path)[2][0][1] >= HOUR_MS * MS
    store.close()


def test_raw_points_go_and_their_roll_ups_stay_as_they_are(path: Path) -> None:
    store = SeriesStore(path, DAYS)
    end = 5 * DAY_MS
    store.write("b", points(range(end - 30 * HOUR_MS, end, 4_000)))
    store.compact(end)
    before = {step: line(store, step_ms=step, limit=10**6) for step in (10_000, 60_000, HOUR_MS)}
    store.expire(end)
    kept = line(store, limit=10**6)
    assert kept[0][0] == end - DAY_MS
    for step, found in before.items():
        assert line(store, step_ms=step, limit=10**6) == found
    (late,) = store.write("b", points([end - DAY_MS - 1]))
    assert late.beyond_retention
    store.expire(end + 3 * DAY_MS)
    coarse = line(store, step_ms=10_000, limit=10**6)
    assert {at % 60_000 for at, _ in coarse[:1_000]} == {0}  # the finest that are left
    assert line(store, step_ms=HOUR_MS) == before[HOUR_MS]
    store.compact(end + 200 * DAY_MS)
    store.expire(end + 200 * DAY_MS)
    assert line(store, step_ms=HOUR_MS) == []
    store.close()


def test_another_process_learns_of_a_seal(path: Path) -> None:
    mine, other = SeriesStore(path, DAYS), SeriesStore(path, DAYS)
    mine.write("b", points(range(0, 3 * HOUR_MS, 1_000)))
    other.write("b", points([500]))
    other.compact(10 * DAY_MS)
    other.expire(10 * DAY_MS)
    (late,) = mine.write("b", points([700]))
    assert late.beyond_retention
    assert line(mine, limit=9) == line(other, limit=9) == []
    assert line(mine, step_ms=HOUR_MS, aggregate="count")[0] == (0, 3_601)
    mine.close()
    other.close()


def test_a_series_of_which_nothing_is_left_is_forgotten_and_can_come_again(path: Path) -> None:
    store = SeriesStore(path, DAYS)
    store.write("b", points(range(0, HOUR_MS, 1_000)))
    store.compact(200 * DAY_MS)
    store.expire(200 * DAY_MS)
    store.expire(200 * DAY_MS)
    assert store.tag_sets("b", "m") == []
    store.write("b", points([200 * DAY_MS]))
    assert line(store) == [(200 * DAY_MS, float(200 * DAY_MS % 7))]
    store.close()


def test_of_outputs_so_many_raw_points_are_kept_and_all_roll_ups(path: Path) -> None:
    store = SeriesStore(path, {"b": Keep(newest=2_000)})
    store.write("b", points(range(0, 6 * HOUR_MS, 4_000)))
    store.compact(0)
    store.expire(0)
    assert 2_000 <= len(line(store, limit=10**6)) <= 2_000 + 2 * 900
    assert len(line(store, step_ms=60_000)) == 6 * 60
    store.close()


@pytest.mark.parametrize("steps", range(4))
def test_a_compaction_that_is_killed_has_lost_nothing(path: Path, steps: int) -> None:
    store = SeriesStore(path, DAYS)
    store.write("b", points(range(0, 5 * HOUR_MS, 4_000)))
    whole = line(store, limit=10**6)
    store.close()
    killed = SeriesStore(path, DAYS)
    for _, _ in zip(range(steps), compact(killed.database, "b", 0, KEPT["engine"]), strict=False):
        pass
    for _, _ in zip(range(1), expire(killed.database, "b", 0, Keep()), strict=False):
        pass
    after = SeriesStore(path, DAYS)
    assert line(after, limit=10**6) == whole
    after.compact(0)
    assert line(after, limit=10**6) == whole
    after.close()
    killed.close()


def test_whole_numbers_booleans_and_text_keep_their_types(path: Path) -> None:
    store = SeriesStore(path, FOREVER)
    rows = [
        Point("m", (), (("i", t), ("b", t % 2 == 0), ("s", f"t{t}")), t * 1_000 * MS)
        for t in range(4_000)
    ]
    store.write("b", rows)
    store.compact(0)
    for field, newest in (("i", 3_999), ("b", False), ("s", "t3999")):
        (found,) = store.query("b", "m", field)
        assert len(found.points) == 4_000
        assert found.points[-1] == (3_999_000, newest)
        assert type(found.points[0][1]) is type(newest)
    assert store.query("b", "m", "s", step_ms=1_000) == []
    assert store.span_ms("b", "m") == (0, 3_999_000)
    store.close()


def test_the_file_of_an_older_version_is_taken_over(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.executescript(
            "CREATE TABLE series (id INTEGER PRIMARY KEY, bucket TEXT NOT NULL,"
            " measurement TEXT NOT NULL, tags TEXT NOT NULL, UNIQUE (bucket, measurement, tags));"
            "CREATE TABLE columns (id INTEGER PRIMARY KEY, series_id INTEGER NOT NULL, field TEXT"
            " NOT NULL, UNIQUE (series_id, field));"
            "CREATE TABLE field_types (bucket TEXT, measurement TEXT, field TEXT, type TEXT,"
            " PRIMARY KEY (bucket, measurement, field)) WITHOUT ROWID;"
            "CREATE TABLE points (column_id INTEGER NOT NULL, time_ns INTEGER NOT NULL, value NOT"
            " NULL, PRIMARY KEY (column_id, time_ns)) WITHOUT ROWID;"
            "INSERT INTO series VALUES (1, 'b', 'm', '[]');"
            "INSERT INTO columns VALUES (1, 1, 'v');"
            "INSERT INTO field_types VALUES ('b', 'm', 'v', 'float');"
            "INSERT INTO points VALUES (1, 5000000, 2.5);"
        )
    store = SeriesStore(path, FOREVER)
    assert line(store) == [(5, 2.5)]
    store.close()
