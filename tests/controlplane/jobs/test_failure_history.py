"""Failures of runs, kept: which are the same, what is written once, and what followed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.utils import timezone

from controlplane.backends.sightings import FailureSighting, RestoreSighting
from controlplane.jobs.failures import (
    KEPT,
    TRACE_CHARACTERS,
    FailureNotes,
    fingerprint,
    prune,
    shortened,
)
from controlplane.jobs.models import Run, RunFailure
from controlplane.moments import moment

FIRST = FailureSighting(
    at_ms=1_000,
    name="FunctionError",
    sentence="row 7 of 'a.csv' has no column delay",
    task="daily → files (2/3) - execution #4",
    operator="daily",
    domain="user",
)


@pytest.fixture
def run(flights):
    return Run.objects.create(
        job=flights,
        version=flights.versions.get(),
        cluster=flights.cluster,
        engine_job_id="a" * 32,
        state_since=timezone.now(),
    )


def later(ms: int, **changes: object) -> FailureSighting:
    return replace(FIRST, at_ms=ms, **changes)


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"sentence": "row 19 of 'b.csv' has no column delay"}, True),
        ({"task": "daily → files (3/3) - execution #9"}, True),
        ({"trace": "another"}, True),
        ({"sentence": "row 7 of 'a.csv' has no column time"}, False),
        ({"operator": "weekly"}, False),
        ({"name": "WorkerLost"}, False),
        ({"domain": "external"}, False),
    ],
)
def test_failures_that_differ_in_values_only_are_the_same(changes, same):
    assert (fingerprint(FIRST) == fingerprint(replace(FIRST, **changes))) is same


def test_subtasks_of_an_engine_that_names_no_operator_fail_alike():
    one = replace(FIRST, operator="")
    assert fingerprint(one) == fingerprint(replace(one, task="daily → files (1/3) - execution #0"))


def test_what_is_seen_again_is_written_once(run, django_assert_num_queries):
    notes = FailureNotes()
    notes.take_in(run, [FIRST], None)
    with django_assert_num_queries(0):
        notes.take_in(run, [FIRST], None)
    FailureNotes().take_in(run, [FIRST], None)
    assert RunFailure.objects.count() == 1


def test_an_echo_that_comes_later_is_added(run):
    notes = FailureNotes()
    notes.take_in(run, [FIRST], None)
    notes.take_in(run, [replace(FIRST, echoes=(later(1_005, sentence="peer is gone"),))], None)
    (echo,) = RunFailure.objects.get().echoes
    assert (echo["sentence"], echo["at_ms"]) == ("peer is gone", 1_005)


def test_a_restore_belongs_to_the_last_failure_before_it(run):
    failures = [later(9_000), later(5_000), FIRST]
    FailureNotes().take_in(run, failures, RestoreSighting(41, 5_800, False, "/ckpt/41"))
    found = RunFailure.objects.order_by("at").values_list("restored_checkpoint", "restarted_at")
    assert list(found) == [(None, None), (41, moment(5_800)), (None, None)]


def test_a_new_collector_takes_no_restore_away(run):
    FailureNotes().take_in(run, [FIRST], RestoreSighting(41, 1_800, True, "/sp"))
    FailureNotes().take_in(run, [later(5_000), FIRST], RestoreSighting(42, 5_500, False, ""))
    found = RunFailure.objects.order_by("at").values_list("restored_checkpoint", flat=True)
    assert list(found) == [41, 42]


def test_the_restore_of_the_start_follows_from_no_failure(run):
    FailureNotes().take_in(run, [later(5_000)], RestoreSighting(1, 2_000, True, "/sp"))
    assert RunFailure.objects.get().restarted_at is None


def test_a_long_trace_keeps_both_ends():
    trace = "begin" + "x" * 3 * TRACE_CHARACTERS + "end"
    kept = shortened(trace)
    assert kept.startswith("begin")
    assert kept.endswith("end")
    assert "32,008 characters are left out" in kept
    assert shortened("x" * TRACE_CHARACTERS) == "x" * TRACE_CHARACTERS


def test_text_that_no_database_keeps_is_kept_as_far_as_it_goes(run):
    FailureNotes().take_in(run, [replace(FIRST, sentence="a\0b\ud800c", name="n" * 900)], None)
    row = RunFailure.objects.get()
    assert row.sentence == "a�b?c"
    assert row.name == "n" * 200


def test_the_oldest_beyond_what_is_kept_are_dropped(run):
    rows = [
        RunFailure(run=run, at=moment(at_ms), name="E", sentence="s", fingerprint="f")
        for at_ms in range(KEPT + 3)
    ]
    RunFailure.objects.bulk_create(rows)
    prune(run)
    assert RunFailure.objects.count() == KEPT
    assert RunFailure.objects.order_by("at").values_list("at", flat=True)[0] == moment(3)
