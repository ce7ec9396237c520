"""The temporal join against its definition, one row at a time."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings

from engine.elements import MAX_TIME
from engine.operators.joins import versions
from engine.operators.joins.temporal_join import TemporalJoin
from fixtures.join_job import JoinJob, accepted, play, scripts, side

LEFT, RIGHT = side("key", "n"), side("id", "factor")
DEFAULTS = pl.DataFrame({"factor": [1]})


def join(**settings_of_it):
    return lambda: TemporalJoin(LEFT, RIGHT, **settings_of_it)


def run(script, **settings_of_it):
    found, *late = play(join(**settings_of_it), (LEFT, RIGHT), script)
    rows = [(row["key"], row["n"], row["factor"], row["event_time"]) for row in found]
    return sorted(rows, key=repr), late


def model(script, *, outer=False, ttl=None, defaults=None):
    (rows, known), late = accepted(script, lambda port, time, mark: time < mark)
    found = []
    for key, n, at, _ in rows:
        valid = [
            (time, factor)
            for id_, factor, time, _ in known
            if id_ == key and time <= at and (ttl is None or at < time + ttl)
        ]
        if valid:
            found.append((key, n, max(valid)[1], at))
        elif outer:
            found.append((key, n, None if defaults is None else 1, at))
    return sorted(found, key=repr), late


@pytest.mark.parametrize(
    "settings_of_it",
    [{}, {"outer": True}, {"outer": True, "ttl": 4, "defaults": DEFAULTS}],
    ids=["inner", "outer", "ttl and defaults"],
)
@given(script=scripts)
@settings(max_examples=25, deadline=None)
def test_a_row_gets_the_version_of_its_time_through_any_crash_and_rescale(settings_of_it, script):
    assert run(script, **settings_of_it) == model(script, **settings_of_it)


@given(script=scripts)
@settings(max_examples=15, deadline=None)
def test_versions_that_nobody_can_ask_for_are_dropped_unseen(script):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versions, "_SLACK", 0)
        assert run(script, ttl=6) == model(script, ttl=6)


def factors(*script, **settings_of_it):
    return [row[2] for row in run(script, **settings_of_it)[0]]


@pytest.mark.parametrize(("at", "found"), [(4, []), (5, [2]), (6, [2])])
def test_a_version_of_the_same_time_counts(at, found):
    assert factors((1, [("a", 2, 5, None)]), (0, [("a", 0, at, None)])) == found


@pytest.mark.parametrize("order", [[3, 7], [7, 3]])
def test_of_two_versions_of_one_time_the_larger_counts(order):
    script = [(1, [("a", factor, 5, None)]) for factor in order]
    assert factors(*script, (0, [("a", 0, 9, None)])) == [7]


@pytest.mark.parametrize(("at", "found"), [(8, [2]), (9, [])])
def test_a_version_is_valid_for_its_ttl(at, found):
    assert factors((1, [("a", 2, 5, None)]), (0, [("a", 0, at, None)]), ttl=4) == found


def test_a_row_waits_until_event_time_has_passed_it():
    job = JoinJob(join(), (LEFT, RIGHT))
    job.push(1, [("a", 2, 1, None)])
    job.push(0, [("a", 0, 5, None)])
    job.advance(5)
    job.collect()
    assert not job.played.outputs
    job.push(1, [("a", 3, 5, None)])
    job.advance(6)
    job.collect()
    assert job.played.outputs == [{"key": "a", "n": 0, "factor": 3, "event_time": 5}]


def test_a_version_that_is_null_is_not_the_default():
    script = [(1, [("a", None, 5, None)]), (0, [("a", 0, 6, None), ("b", 0, 6, None)])]
    assert factors(*script, outer=True, defaults=DEFAULTS) == [None, 1]


def test_only_the_newest_versions_stay(monkeypatch):
    monkeypatch.setattr(versions, "_SLACK", 5)
    job = JoinJob(join(), (LEFT, RIGHT))
    for time in range(30):
        job.push(1, [("a", time, time, None), ("b", time, time, None)])
        job.advance(time + 1)
    [held] = [snapshot.tables["versions"] for snapshot in job.snapshots()]
    assert held.height <= 12
    job.push(0, [("a", 0, 50, None)])
    job.advance(MAX_TIME)
    job.collect()
    assert [row["factor"] for row in job.played.outputs] == [29]
