"""Savepoints every so many minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.access.errors import Refused
from controlplane.backends.errors import EngineRefused
from controlplane.jobs import actions as jobs
from controlplane.operations.models import Operation
from controlplane.snapshots import actions, schedules
from controlplane.snapshots.models import Savepoint, SavepointSchedule
from controlplane.snapshots.schedules import next_after

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


@pytest.fixture
def schedule(running, alice, clock):
    return actions.add_schedule(running, alice, 5, now=clock())


def test_the_first_savepoint_comes_after_one_interval(schedule, clock):
    assert schedule.next_run_at == clock() + minutes(5)
    clock.advance(299)
    assert schedules.run_due(clock()) == 0
    clock.advance(1)
    assert schedules.run_due(clock()) == 1


def test_a_due_schedule_takes_a_savepoint_and_shows_when_the_next_comes(schedule, clock, drive):
    due = schedule.next_run_at
    clock.advance(303)
    schedules.run_due(clock())
    schedule.refresh_from_db()
    assert (schedule.result, schedule.last_run_at) == ("started", clock())
    assert schedule.next_run_at == due + minutes(5)

    drive(schedule.last_operation)
    schedule.refresh_from_db()
    savepoint = Savepoint.objects.get()
    assert schedule.result == "succeeded"
    assert (savepoint.origin, savepoint.label) == ("scheduled", "every 5 min")
    assert savepoint.created_by is None


def test_a_savepoint_that_fails_is_shown_with_its_reason(schedule, clock, drive, engine):
    engine.fail("trigger_savepoint", EngineRefused("disk is full"))
    clock.advance(300)
    schedules.run_due(clock())
    schedule.refresh_from_db()
    drive(schedule.last_operation)

    schedule.refresh_from_db()
    assert (schedule.result, schedule.reason) == ("failed", "disk is full")


def test_of_two_beats_one_gets_the_schedule(schedule, clock):
    clock.advance(300)
    stale = SavepointSchedule.objects.select_related("job__cluster").get()

    assert schedules.run_due(clock()) == 1
    assert not schedules._run(stale, clock())
    assert Operation.objects.filter(kind="savepoint").count() == 1


def test_one_that_comes_while_the_last_still_runs_is_skipped(schedule, clock):
    for _ in range(2):
        clock.advance(300)
        schedules.run_due(clock())

    schedule.refresh_from_db()
    assert schedule.result == "skipped"
    assert "flights is busy: savepoint is under way" in schedule.reason
    assert Savepoint.objects.count() == 1


def test_a_job_that_does_not_run_is_skipped_and_the_reason_is_shown(
    schedule, running, alice, clock, drive
):
    drive(jobs.cancel(running, alice))
    clock.advance(300)
    schedules.run_due(clock())

    schedule.refresh_from_db()
    assert schedule.result == "skipped"
    assert schedule.reason == "flights is not running: a savepoint needs a running job"


def test_a_schedule_that_rests_does_nothing_until_it_goes_on(schedule, alice, clock):
    actions.set_schedule_enabled(schedule, alice, enabled=False)
    clock.advance(3_000)
    assert schedules.run_due(clock()) == 0

    actions.set_schedule_enabled(schedule, alice, enabled=True, now=clock())
    assert schedule.next_run_at == clock() + minutes(5)


@pytest.mark.parametrize(
    ("late", "wanted"),
    [
        (timedelta(), 5),
        (minutes(4.99), 5),
        (minutes(5), 10),
        (minutes(61), 65),
    ],
)
def test_missed_runs_are_not_made_up_for_and_the_grid_stays(late, wanted):
    assert next_after(NOON, 5, NOON + late) == NOON + minutes(wanted)


@pytest.mark.parametrize("every", [0, 0.05, -1, float("nan"), float("inf"), 600_000])
def test_intervals_that_make_no_sense_are_refused(running, alice, every):
    with pytest.raises(Refused, match=r"interval must be between 0\.1 and 525,600 minutes"):
        actions.add_schedule(running, alice, every)


def test_a_job_has_a_limited_number_of_schedules(running, alice):
    for every in range(1, 21):
        actions.add_schedule(running, alice, every)
    with pytest.raises(Refused, match="has 20 schedules already"):
        actions.add_schedule(running, alice, 21)


def test_removing_a_schedule_keeps_its_savepoints(schedule, alice, clock, drive):
    clock.advance(300)
    schedules.run_due(clock())
    schedule.refresh_from_db()
    drive(schedule.last_operation)
    actions.remove_schedule(schedule, alice)

    assert not SavepointSchedule.objects.exists()
    assert Savepoint.objects.get().status == "completed"


def test_viewers_and_strangers_have_no_schedules(schedule, running, bob, mallory):
    for person in (bob, mallory):
        with pytest.raises(Refused, match="needs the operator role"):
            actions.add_schedule(running, person, 5)
        with pytest.raises(Refused, match="needs the operator role"):
            actions.remove_schedule(schedule, person)


def test_a_folder_that_is_no_savepoint_is_not_imported(running, alice):
    with pytest.raises(Refused, match="/data/nothing is no savepoint: it has no _metadata"):
        actions.import_savepoint(running, alice, "/data/nothing")
    with pytest.raises(Refused, match="savepoint path must be absolute"):
        actions.import_savepoint(running, alice, "../secrets")


def test_a_savepoint_that_lies_somewhere_is_imported_once(running, alice, drive, engine):
    drive(actions.request_savepoint(running, alice))
    (location,) = engine.savepoints
    with pytest.raises(Refused, match="is in the catalogue of flights already"):
        actions.import_savepoint(running, alice, location)

    Savepoint.objects.all().delete()
    imported = actions.import_savepoint(running, alice, f"{location}/", label="from the old place")
    assert (imported.origin, imported.location) == ("imported", location)
    assert imported.event_time == engine.event_time
