"""Savepoints every so many minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.access.errors import Refused
from controlplane.backends.errors import EngineRefused
from controlplane.jobs import actions as jobs
from controlplane.live import topics
from controlplane.live.publish import publish
from controlplane.moments import epoch_ms
from controlplane.operations.models import Operation
from controlplane.snapshots import schedule_actions as actions
from controlplane.snapshots import schedules
from controlplane.snapshots.models import Checkpoint, Savepoint, SavepointSchedule
from controlplane.snapshots.schedule_options import ScheduleOptions, timing_of


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


def options(**values):
    return ScheduleOptions(**values)


def test_a_cron_line_says_when(running, alice):
    noon = datetime(2026, 11, 1, 12, tzinfo=UTC)
    asked = options(cron="0 2 * * *", zone="Europe/Berlin")
    schedule = actions.add_schedule(running, alice, now=noon, options=asked)

    assert schedule.words == "at 0 2 * * * Europe/Berlin"
    assert schedule.next_run_at == datetime(2026, 11, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "field", "sentence"),
    [
        (options(cron="0 2 * *"), "cron", "cron line must have five fields: got '0 2 \\* \\*'"),
        (options(cron="0 2 30 2 *"), "cron", "cron line cannot be read: bad day-of-month"),
        (options(cron="0 2 * * *", zone="Mars"), "zone", "time zone is not known: got 'Mars'"),
        (
            options(cron="0 2 * * *", blackouts="night"),
            "blackouts",
            "got 'night'; e.g. mon-fri",
        ),
        (options(cron="0 2 * * *", blackouts="foo 1:00-2:00"), "blackouts", "got 'foo 1:00-2:00'"),
        (options(cron="0 2 * * *", blackouts="01:00-03:00"), "blackouts", "would never run"),
        (
            options(cron="0 2 * * *", jitter_s=-1),
            "jitter_s",
            "between 0 and 86,400 seconds",
        ),
        (options(), "every_minutes", "needs an interval or a cron line"),
    ],
)
def test_what_cannot_be_meant_is_refused_beside_its_field(asked, field, sentence, running, alice):
    with pytest.raises(Refused, match=sentence) as refused:
        actions.add_schedule(running, alice, options=asked)
    assert field in refused.value.fields
    assert not SavepointSchedule.objects.exists()


@pytest.mark.parametrize(("late", "result"), [("once", "started"), ("skip", "skipped")])
def test_what_was_missed_runs_once_or_not_at_all(late, result, running, alice, clock):
    actions.add_schedule(running, alice, 5, clock(), options(late=late))
    began = clock()
    clock.advance(3_661)
    schedules.run_due(clock())

    schedule = SavepointSchedule.objects.get()
    assert schedule.result == result
    assert schedule.next_run_at == began + minutes(65)
    assert Savepoint.objects.count() == (late == "once")
    if late == "skip":
        assert schedule.reason == "the platform was not there when it was due, 56 min ago"


def test_an_unhealthy_job_is_skipped_when_that_is_asked_for(running, alice, clock):
    actions.add_schedule(running, alice, 5, clock(), options(skip_unhealthy=True))
    for number, status in enumerate(("failed", "completed")):
        Checkpoint.objects.create(
            run=running.runs.get(),
            engine_checkpoint_id=number,
            status=status,
            trigger_at=clock() + minutes(number),
            failure="checkpoint 0 expired" if status == "failed" else "",
        )
        clock.advance(300)
        schedules.run_due(clock())
        found = SavepointSchedule.objects.get()
        assert found.result == ("skipped" if status == "failed" else "started")
        if status == "failed":
            assert found.reason == "flights is unhealthy: checkpoint 0 expired"


def test_a_job_that_has_not_moved_is_skipped_when_that_is_asked_for(
    running, alice, clock, drive, engine
):
    schedule = actions.add_schedule(running, alice, 5, clock(), options(skip_unchanged=True))
    position = epoch_ms(engine.event_time)
    for moved_ms, result in ((0, "started"), (0, "skipped"), (1_000, "started")):
        publish(topics.job(running.pk), {"event_ms": float(position + moved_ms)})
        clock.advance(300)
        schedules.run_due(clock())
        schedule.refresh_from_db()
        assert schedule.result == result, schedule.reason
        if schedule.last_operation:
            drive(schedule.last_operation)


def test_jitter_is_the_same_for_the_same_time_and_bounded(running, alice, clock):
    schedule = actions.add_schedule(running, alice, 5, clock(), options(jitter_s=60))
    timing = timing_of(schedule)
    late = [timing.due(clock() + minutes(5 * n)) - (clock() + minutes(5 * n)) for n in range(1, 9)]

    assert late[0] == schedule.next_run_at - schedule.planned_at
    assert all(timedelta() <= one < timedelta(seconds=60) for one in late)
    assert len(set(late)) == 8


def test_a_beat_that_is_killed_before_it_commits_changes_nothing(schedule, clock, monkeypatch):
    clock.advance(300)
    monkeypatch.setattr(schedules, "_start", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        schedules.run_due(clock())
    monkeypatch.undo()

    assert schedules.run_due(clock()) == 1
    assert Savepoint.objects.count() == 1


def test_a_schedule_whose_time_zone_is_gone_rests(schedule, clock):
    SavepointSchedule.objects.update(zone="Mars/Olympus")
    clock.advance(300)
    schedules.run_due(clock())
    schedule.refresh_from_db()
    assert not schedule.enabled
