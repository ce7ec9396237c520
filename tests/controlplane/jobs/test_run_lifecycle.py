"""What may become of a run, whoever reports it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError
from django.utils import timezone

from controlplane.jobs import lifecycle
from controlplane.jobs.models import RunState


@pytest.fixture
def run(running):
    return running.runs.get()


def test_a_change_of_state_is_noted_with_its_time(run, clock):
    clock.advance(5)
    assert lifecycle.observe(run, "RESTARTING", clock(), attempt=1, failure="worker 2 was killed")

    assert (run.state, run.attempt, run.failure) == ("RESTARTING", 1, "worker 2 was killed")
    assert run.state_since == run.last_seen == clock()


def test_the_same_state_again_changes_only_when_it_was_seen(run, clock):
    since = run.state_since
    clock.advance(5)

    assert not lifecycle.observe(run, "RUNNING", clock())
    assert (run.state_since, run.last_seen) == (since, clock())


@pytest.mark.parametrize("end", ["FAILED", "CANCELED", "FINISHED", "LOST"])
def test_a_run_that_has_ended_stays_as_it_is(run, clock, end):
    lifecycle.observe(run, end, clock(), failure="first")
    assert not lifecycle.observe(run, "RUNNING", clock(), failure="late news")

    run.refresh_from_db()
    assert (run.state, run.failure, run.ended_at) == (end, "first", clock())


def test_a_state_that_flink_does_not_have_is_refused(run, clock):
    with pytest.raises(ValueError, match="DANCING"):
        lifecycle.observe(run, "DANCING", clock())


def test_a_run_that_the_engine_does_not_know_is_lost(run):
    later = timezone.now() + timedelta(minutes=1)

    assert lifecycle.lose(run, later, "the engine does not know it")
    assert run.state == RunState.LOST


def test_a_run_that_is_only_just_starting_is_not_lost(run):
    assert not lifecycle.lose(run, timezone.now(), "the engine does not know it")


def test_two_live_runs_of_a_job_cannot_be(run, clock):
    with pytest.raises(IntegrityError):
        lifecycle.create_run(run.job, run.version, "f" * 32, clock(), parallelism=1)
