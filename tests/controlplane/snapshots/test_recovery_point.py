"""How old the newest restorable state is, against the objective."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.jobs.models import Job, Run
from controlplane.snapshots.models import Checkpoint, Savepoint
from controlplane.snapshots.recovery_point import State, recovery_points


@pytest.fixture
def point(running, clock):
    """The recovery point of the job, whose objective is a minute."""
    Job.objects.update(settings=running.settings | {"recovery_point_objective_s": 60})

    def now():
        return recovery_points(list(Job.objects.all()), clock())[running.pk]

    return now


@pytest.fixture
def checkpoint(running, clock):
    return Checkpoint.objects.create(
        run=running.runs.get(), engine_checkpoint_id=1, status="completed", trigger_at=clock()
    )


def test_there_is_nothing_to_start_from_at_first(point):
    assert (point().state, point().at, point().source) == (State.NONE, None, "")


@pytest.mark.parametrize(("age_s", "state"), [(60, State.MET), (61, State.MISSED)])
def test_it_is_missed_when_older_than_the_objective(age_s, state, point, checkpoint, clock):
    clock.advance(age_s)
    assert (point().state, point().age) == (state, timedelta(seconds=age_s))


def test_the_newer_of_checkpoint_and_savepoint_counts(point, checkpoint, make, clock):
    clock.advance(30)
    assert point().source == "checkpoint"
    savepoint = make(0)
    assert (point().source, point().at) == ("savepoint", clock())
    for bad in ("damaged", "unreadable"):
        Savepoint.objects.filter(pk=savepoint.pk).update(verdict=bad)
        assert point().source == "checkpoint"


def test_checkpoints_of_a_cancelled_run_are_gone(point, checkpoint):
    Run.objects.update(state="CANCELED")
    assert point().state == State.NONE


def test_a_job_that_is_not_wanted_can_lose_nothing(point, checkpoint, clock):
    Job.objects.update(desired_state="stopped")
    clock.advance(999)
    assert point().state == State.RESTING


def test_without_an_objective_nothing_is_missed(point, checkpoint, clock):
    Job.objects.update(settings={})
    clock.advance(999)
    assert point().state == State.NO_OBJECTIVE


def test_many_jobs_take_as_many_queries_as_one(point, django_assert_num_queries):
    jobs = list(Job.objects.all())
    with django_assert_num_queries(3):
        recovery_points(jobs * 20, jobs[0].created_at)
