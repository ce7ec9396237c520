"""Session windows: both halves together, against the definition, one row at a time."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import agg, windows
from engine.aggregates import Partials
from engine.elements import MAX_TIME, MIN_TIME
from engine.errors import GraphError
from engine.operators.windows.session_aggregate import (
    PartialSessions,
    SessionAggregate,
    session_partials,
)
from fixtures.window_job import WindowJob, play

GAP = 4
WINDOW = windows.session(GAP)
SCHEMA = {
    "key": pl.String(),
    "value": pl.Int64(),
    "event_time": pl.Int64(),
    "row_watermark": pl.Int64(),
}
SPECS = {"n": agg.count(), "total": agg.sum("value"), "most": agg.max("value")}
PARTS = (
    {name: spec.accumulator(name, pl.Int64()) for name, spec in SPECS.items()},
    {name: spec.of for name, spec in SPECS.items()},
)
FRAGMENTS, PARTIALS = session_partials(*PARTS), Partials(*PARTS)


def start():
    operator = SessionAggregate({"key": pl.String()}, WINDOW, FRAGMENTS, PARTIALS)
    return WindowJob((PartialSessions(["key"], WINDOW, FRAGMENTS), operator), SCHEMA)


def run(script):
    """(end, start, key, n, total, most) of every session; the late rows."""
    outputs, late = play(start, script)
    return sorted(map(result, outputs)), late


def result(row):
    bounds = (round(row[name].timestamp() * 1e6) for name in ("window_end", "window_start"))
    return (*bounds, *(row[name] for name in ("key", *SPECS)))


class Model:
    """The definition: sessions are lists of rows, and every row joins those that it touches."""

    def __init__(self):
        self.sessions, self.waiting, self.fired, self.late = [], [], [], []
        self.now = MIN_TIME

    def row(self, key, value, time, own):
        mark = max(self.now, MIN_TIME if own is None else own)
        if mark >= time + GAP and mark > time:
            self.late.append((key, time))
        elif mark > time:
            self.waiting.append((mark, key, time, value))
        else:
            self.join(key, time, value)

    def join(self, key, time, value):
        row = (key, time, value)
        touched = [
            rows
            for rows in self.sessions
            if rows[0][0] == key and any(abs(time - other) < GAP for _, other, _ in rows)
        ]
        self.sessions = [rows for rows in self.sessions if rows not in touched]
        self.sessions.append([row, *(row for rows in touched for row in rows)])

    def advance(self, time):
        for mark, key, at, value in sorted(row for row in self.waiting if row[0] < time):
            self.close(mark)
            self.join(key, at, value)
        self.waiting = [row for row in self.waiting if row[0] >= time]
        self.close(time)
        self.now = max(self.now, time)

    def close(self, time):
        for rows in [rows for rows in self.sessions if end(rows) <= time]:
            self.sessions.remove(rows)
            values = [value for _, _, value in rows]
            first = min(at for _, at, _ in rows)
            self.fired.append((end(rows), first, rows[0][0], len(values), sum(values), max(values)))


def end(rows):
    return max(time for _, time, _ in rows) + GAP


def model(script):
    """Play a script row by row."""
    model = Model()
    for step in [*script, MAX_TIME]:
        match step:
            case list():
                for row in step:
                    model.row(*row)
            case int():
                model.advance(max(step, model.now))
    return sorted(model.fired), model.late


rows = st.tuples(
    st.sampled_from("abc"),
    st.integers(-9, 9),
    st.integers(-10, 25),
    st.none() | st.integers(-10, 28),
)
near = st.tuples(st.just("a"), st.integers(0, 9), st.integers(0, 12), st.none())
batches = st.lists(rows | near, min_size=1, max_size=6)
watermarks = st.integers(-10, 28)
crashes = st.tuples(st.just("crash"), st.integers(1, 3))
scripts = st.lists(batches | watermarks | crashes, max_size=12)


@given(scripts)
@settings(max_examples=50, deadline=None)
def test_sessions_equal_their_definition_through_any_crash_and_rescale(script):
    assert run(script) == model(script)


behind = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 5), st.booleans()), min_size=1, max_size=8
)


@given(behind, behind, st.integers(1, 3), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_no_pace_of_two_splits_changes_a_session(left, right, bound, random):
    """Each split tells its watermarks; the job's is the smaller one, however they interleave."""
    splits = [stamped(rows, bound) for rows in (left, right)]
    one_by_one = []
    seen, ahead = [MIN_TIME, MIN_TIME], [list(rows) for rows in splits]
    while any(ahead):
        which = random.choice([index for index in (0, 1) if ahead[index]])
        row, seen[which] = ahead[which].pop(0)
        seen[which] = seen[which] if ahead[which] else MAX_TIME
        one_by_one += [[row], min(seen)]
    fired, late = run(one_by_one)
    all_fired, all_late = run([[row for rows in splits for row, _ in rows]])
    assert fired == all_fired
    assert sorted(late) == sorted(all_late)


def stamped(rows, bound):
    """Rows of a split with their row watermarks, and the split's watermark after each."""
    watermark, found = MIN_TIME, []
    for time, value, far in rows:
        time = time + 5 if far else time
        watermark = max(watermark, time - bound)
        own = watermark if time < watermark else None
        found.append((("a", value, time, own), watermark))
    return found


@pytest.mark.parametrize(("second", "sessions"), [(3, 1), (4, 2)])
def test_a_session_ends_one_gap_after_its_last_row(second, sessions):
    fired, _ = run([[("a", 1, 0, None), ("a", 1, second, None)]])
    assert len(fired) == sessions


@pytest.mark.parametrize(("watermark", "fires"), [(6, False), (7, True)])
def test_a_session_fires_when_the_watermark_reaches_its_end(watermark, fires):
    job = start()
    job.push([("a", 1, 0, None), ("a", 1, 3, None)])
    job.advance(watermark)
    assert bool(job.outputs()) is fires


def test_a_row_between_two_sessions_makes_them_one():
    script = [[("a", 1, 0, None), ("a", 2, 6, None)], [("a", 3, 3, None)]]
    assert run(script)[0] == [(10, 0, "a", 3, 6, 3)]


def test_a_row_that_is_behind_joins_only_sessions_that_end_after_its_watermark():
    open_one = [("a", 1, 0, None)]
    assert run([[*open_one, ("a", 2, 2, 3)]])[0] == [(6, 0, "a", 2, 3, 2)]
    assert run([[*open_one, ("a", 2, 2, 4)]])[0] == [(4, 0, "a", 1, 1, 1), (6, 2, "a", 1, 2, 2)]


@pytest.mark.parametrize(("own", "late"), [(3, False), (4, True)])
def test_a_row_is_late_when_its_split_is_a_gap_after_it(own, late):
    job = start()
    job.push([("a", 1, 0, own)])
    assert bool(job.late()) is late


def test_a_long_session_is_kept_as_one_row():
    job = start()
    for time in range(100):
        job.push([("a", 1, time, None)])
        job.advance(time)
    assert job.subtasks[0].snapshot().tables["sessions"].height <= 3
    job.advance(MAX_TIME)
    assert list(map(result, job.outputs())) == [(103, 0, "a", 100, 100, 1)]


def test_a_gap_must_be_positive():
    with pytest.raises(GraphError, match="session gap must be positive: got '0s'"):
        windows.session("0s")
