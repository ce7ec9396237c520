"""What is said to be wrong with a job, look by look."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.backends.sightings import (
    CheckpointSighting,
    FailureSighting,
    JobSighting,
    VertexSighting,
)
from controlplane.collector.ailing import LATELY_MS, LOOKS, Ailing, FailureStreak

NOW = 1_800_000_000_000
SOURCE = VertexSighting(
    "v1", "RUNNING", 2, 2, 100.0, 100.0, 10.0, 0.0, 90.0, NOW, is_source=True, is_sink=False
)
WELL = JobSighting(
    id="j",
    state="RUNNING",
    since_ms=NOW,
    waiting_for="",
    uptime_ms=1,
    restarts=0,
    plan={},
    vertices=(SOURCE,),
    checkpoints=(),
    completed=None,
    failures=(),
    event_ms=NOW - 90_000.0,
    newest_ms=float(NOW),
    pending_rows=0,
)
NOTHING = {"why": None, "why_ms": None}


def checkpoint(number, status, at_ms=NOW):
    return CheckpointSighting(number, False, status, at_ms - 10, 10, None, "", "expired", {})


def looks(ailing, seen, times=LOOKS, wall_ms=NOW, goal_ms=None, held=""):
    for _ in range(times):
        told = ailing.tell(seen, wall_ms, goal_ms, held)
    return told


def failed(at_ms):
    return replace(WELL, failures=(FailureSighting(at_ms, "Error", "disk is full", ""),))


def test_of_a_job_that_is_well_nothing_is_said():
    assert looks(Ailing(), WELL) == NOTHING


def test_one_unlucky_look_says_nothing_and_one_lucky_look_unsays_nothing():
    ailing, part = Ailing(), replace(WELL, vertices=(replace(SOURCE, running=1),))
    assert looks(ailing, part, LOOKS - 1) == NOTHING
    assert looks(ailing, part, 1)["why"] == "1 of 2 tasks run"
    assert looks(ailing, WELL, LOOKS - 1)["why"] == "1 of 2 tasks run"
    assert looks(ailing, WELL, 1) == NOTHING


def test_a_failure_is_said_until_it_is_long_ago():
    ailing = Ailing()
    assert looks(ailing, failed(NOW)) == {
        "why": "restarted after a failure: disk is full",
        "why_ms": NOW,
    }
    assert looks(ailing, failed(NOW), wall_ms=NOW + LATELY_MS) == NOTHING


def test_failures_of_the_run_before_count_and_a_streak_has_the_time_of_its_first():
    streak = FailureStreak()
    for at_ms in (NOW - 2 * LATELY_MS, NOW - 9_000, NOW - 5_000):
        streak.add(at_ms, "disk is full")
    assert looks(Ailing(streak), WELL)["why_ms"] == NOW - 9_000
    assert looks(Ailing(streak), failed(NOW))["why_ms"] == NOW - 9_000


def test_checkpoints_fail_when_two_in_a_row_have_and_one_that_completes_ends_it():
    ailing = Ailing()
    one, two = checkpoint(1, "failed", NOW - 8_000), checkpoint(2, "failed")
    assert looks(ailing, replace(WELL, checkpoints=(one,))) == NOTHING
    told = looks(ailing, replace(WELL, checkpoints=(two, one)))
    assert told == {"why": "checkpoints fail: expired", "why_ms": NOW - 8_000}
    assert looks(ailing, replace(WELL, checkpoints=(checkpoint(3, "completed"),))) == NOTHING


@pytest.mark.parametrize(("goal_ms", "said"), [(None, False), (90_000, False), (89_999, True)])
def test_a_job_is_late_beyond_its_objective_only(goal_ms, said):
    assert bool(looks(Ailing(), WELL, goal_ms=goal_ms)["why"]) is said


def test_what_holds_it_back_is_said_when_nothing_worse_is():
    assert looks(Ailing(), WELL, held="held back by enrich")["why"] == "held back by enrich"
    assert looks(Ailing(), failed(NOW), held="held back by enrich")["why"].startswith("restarted")
