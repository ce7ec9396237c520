"""Replays: started beside the live job, followed, abandoned."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.access.errors import Refused
from controlplane.backends.errors import EngineRefused
from controlplane.jobs import actions as jobs
from controlplane.jobs import lifecycle as runs
from controlplane.jobs.models import Run, RunState
from controlplane.live import topics
from controlplane.live.queries import latest
from controlplane.operations import runner
from controlplane.operations.models import Operation
from controlplane.replay.actions import (
    abandon_replay,
    promote_replay,
    start_replay,
)
from controlplane.replay.limits import Limit
from controlplane.replay.models import Replay
from controlplane.replay.preflight import preflight
from controlplane.replay.sampling import record_sample
from controlplane.replay.stalls import Seen
from controlplane.snapshots.actions import request_savepoint
from controlplane.snapshots.models import Savepoint


@pytest.fixture
def savepoint(running, alice, drive):
    drive(request_savepoint(running, alice))
    return Savepoint.objects.get()


@pytest.fixture
def version_2(running, alice):
    return jobs.add_version(running, alice, "flights_v2.py", b"import engine as hw\n")


@pytest.fixture
def replay(savepoint, version_2, alice, drive):
    started, operation = start_replay(savepoint, version_2, alice, 2)
    assert drive(operation).error == ""
    started.refresh_from_db()
    return started


def test_it_runs_beside_the_live_job_with_shadow_sinks(replay, running, engine, savepoint):
    request = engine.jobs[replay.run.engine_job_id].request
    assert request.settings["headwater.sinks.shadow"] == "r-1"
    assert request.settings["pipeline.name"] == "flights@r-1"
    assert request.savepoint_path == savepoint.location
    assert request.parallelism == 2
    live = running.runs.get(purpose=Run.Purpose.LIVE)
    assert live.state == RunState.RUNNING
    assert "headwater.sinks.shadow" not in engine.jobs[live.engine_job_id].request.settings


def test_it_begins_at_the_savepoints_position(replay, savepoint):
    assert replay.status == Replay.Status.REPLAYING
    assert replay.event_time_start == savepoint.event_time
    assert replay.started_at is not None


def test_replays_are_numbered_over_all_jobs(replay, savepoint, version_2, alice):
    second, _ = start_replay(savepoint, version_2, alice, 1)

    assert (replay.name, second.name, str(second)) == ("r-1", "r-2", "flights@r-2")


def test_the_same_key_is_the_same_replay(savepoint, version_2, alice):
    first = start_replay(savepoint, version_2, alice, 1, "click")
    again = start_replay(savepoint, version_2, alice, 1, "click")

    assert first == again
    assert Replay.objects.count() == 1


def test_one_that_does_not_fit_fails_with_the_reason_and_leaves_nothing(
    savepoint, version_2, alice, engine, drive
):
    engine.refuses_restore = "operator daily-2 is not in the savepoint"
    replay, operation = start_replay(savepoint, version_2, alice, 1)
    drive(operation)

    replay.refresh_from_db()
    assert (replay.status, replay.failure) == (Replay.Status.FAILED, engine.refuses_restore)
    assert replay.run.state == RunState.FAILED
    assert len(engine.jobs) == 1


def test_one_that_finds_no_slots_is_taken_back(savepoint, version_2, alice, engine, drive):
    engine.slots = 2
    replay, operation = start_replay(savepoint, version_2, alice, 4)
    ended = drive(operation)

    replay.refresh_from_db()
    assert ended.error == "gave up after 120 s: job flights@r-1 waits for 4 slots, 1 free"
    assert replay.status == Replay.Status.FAILED
    assert engine.jobs[replay.run.engine_job_id].status.state == "CANCELED"


def test_abandoning_ends_the_replay_and_not_the_job(replay, alice, drive, running, engine):
    operation = drive(abandon_replay(replay, alice))

    replay.refresh_from_db()
    assert operation.text == "flights@r-1 is abandoned"
    assert replay.status == Replay.Status.ABANDONED
    assert replay.run.state == RunState.CANCELED
    assert running.runs.get(purpose="live").state == RunState.RUNNING
    with pytest.raises(Refused, match="has ended already"):
        abandon_replay(replay, alice)


@pytest.mark.parametrize("turns", [0, 1])
def test_a_replay_can_be_abandoned_while_it_starts(
    savepoint, version_2, alice, engine, drive, clock, turns
):
    engine.slots = 0
    replay, starting = start_replay(savepoint, version_2, alice, 1)
    for _ in range(turns):
        runner.advance(starting.pk, clock)
    drive(abandon_replay(replay, alice))

    replay.refresh_from_db()
    starting.refresh_from_db()
    assert replay.status == Replay.Status.ABANDONED
    assert starting.state == Operation.State.CANCELLED
    assert all(
        job.status.has_ended for job in engine.jobs.values() if job.status.name == "flights@r-1"
    )


def test_samples_become_speed_eta_and_a_line_of_the_chart(replay, clock):
    live = replay.event_time_start + timedelta(days=10)
    for second in range(5):
        at = replay.event_time_start + timedelta(hours=second)
        record_sample(
            replay, clock(), at, live + timedelta(seconds=second), Seen(pending_rows=1_000)
        )
        clock.advance(1)

    replay.refresh_from_db()
    assert replay.speed == pytest.approx(3_600)
    assert replay.event_time_now == replay.event_time_start + timedelta(hours=4)
    assert replay.eta_low <= replay.eta_high
    assert replay.eta_low == pytest.approx(
        clock.now + timedelta(seconds=236 * 3_600 / 3_599 - 1), abs=timedelta(seconds=1)
    )
    assert len(replay.history) == 5


def test_a_replay_that_is_ahead_is_not_behind(replay, clock, django_capture_on_commit_callbacks):
    ahead = replay.event_time_start + timedelta(hours=2)
    with django_capture_on_commit_callbacks(execute=True):
        record_sample(replay, clock(), ahead, replay.event_time_start, Seen(pending_rows=0))

    assert latest(topics.replay(replay.pk))["delay_ms"] == 0


def level_for(replay, clock, seconds, behind_s=0, **seen):
    """So many samples, one a second."""
    live = replay.event_time_start + timedelta(days=1)
    for _ in range(seconds):
        record_sample(replay, clock(), live - timedelta(seconds=behind_s), live, Seen(**seen))
        clock.advance(1)
    replay.refresh_from_db()


def test_it_has_caught_up_when_it_was_level_for_long_enough(replay, clock):
    level_for(replay, clock, 3, pending_rows=0)
    level_for(replay, clock, 1, behind_s=9, pending_rows=1)
    assert replay.level_since is None
    since = clock() + timedelta(seconds=2)
    level_for(replay, clock, 7, pending_rows=0)
    assert (replay.status, replay.level_since) == (Replay.Status.REPLAYING, since)
    level_for(replay, clock, 1, pending_rows=0)
    assert replay.status == Replay.Status.CAUGHT_UP
    assert replay.caught_up_at - since == timedelta(seconds=5)


def test_time_that_nobody_saw_does_not_count_as_level(replay, clock):
    level_for(replay, clock, 4, pending_rows=0)
    clock.advance(60)
    level_for(replay, clock, 3, pending_rows=0)
    assert replay.status == Replay.Status.REPLAYING


def test_what_breaks_it_is_kept_and_it_stays_caught_up(replay, clock):
    Replay.objects.update(level_within_s=60.0, level_for_s=0.0)
    level_for(replay, clock, 4, behind_s=60)
    assert replay.status == Replay.Status.CAUGHT_UP
    broken = clock() + timedelta(seconds=2)
    level_for(replay, clock, 9, behind_s=7_200, busiest="daily", measured=True)
    assert replay.status == Replay.Status.CAUGHT_UP
    assert (replay.fell_behind_at, replay.level_since) == (broken, None)
    assert replay.fell_behind == (
        "2 h behind the live job; daily is busy most of the time and waits for nobody"
    )
    level_for(replay, clock, 3, behind_s=1)
    assert (replay.fell_behind_at, replay.level_since) == (broken, clock() - timedelta(seconds=1))


def test_a_slow_replay_says_that_it_does_not_catch_up(replay, clock):
    start = replay.event_time_start
    for second in range(5):
        live = start + timedelta(days=9, seconds=2 * second)
        record_sample(
            replay, clock(), start + timedelta(seconds=second), live, Seen(pending_rows=5)
        )
        clock.advance(1)

    replay.refresh_from_db()
    assert replay.note == (
        "not catching up: it plays 1.0× real time, the live job 2.0×; why is not known: "
        "the engine does not say how busy its operators are"
    )
    assert (replay.eta_low, replay.eta_high) == (None, None)


@pytest.mark.parametrize(
    ("state", "status"),
    [("FAILED", "failed"), ("LOST", "failed"), ("FINISHED", "finished"), ("CANCELED", "abandoned")],
)
def test_a_replay_follows_the_end_of_its_run(replay, clock, state, status):
    runs.observe(replay.run, state, clock(), failure="division by zero in daily")

    replay.refresh_from_db()
    assert replay.status == status
    if status == "failed":
        assert replay.failure == "division by zero in daily"


def test_it_starts_without_the_state_that_was_agreed_to_and_reads_at_its_pace(
    savepoint, version_2, alice, drive, engine
):
    replay, operation = start_replay(
        savepoint, version_2, alice, 2, limit=Limit(5000.0), drop=["late", "late"]
    )
    assert drive(operation).error == ""
    replay.refresh_from_db()
    started = engine.jobs[replay.run.engine_job_id].request
    assert (started.allow_non_restored, replay.run.dropped) == (frozenset({"late"}), ["late"])
    assert (engine.limits[replay.run.engine_job_id], replay.read_limit) == (5000.0, 5000.0)
    with pytest.raises(Refused, match="read limit must be rows per second, more than 0: got -1"):
        start_replay(savepoint, version_2, alice, 2, limit=Limit(-1.0))


def test_the_preflight_shows_each_operator(savepoint, version_2, engine):
    found = preflight(savepoint, version_2, 2)
    assert found.ok
    assert [(row.uid, row.outcome) for row in found.rows] == [("daily", "restored")]

    engine.refuses_restore = "state panes: stored int, wanted text"
    found = preflight(savepoint, version_2, 2)
    assert not found.ok
    assert found.refusals == ["state panes: stored int, wanted text"]


def test_a_preflight_of_a_file_that_builds_no_graph_says_why(savepoint, version_2, engine):
    engine.fail("preflight", EngineRefused("column delay is missing"))
    with pytest.raises(Refused, match="column delay is missing"):
        preflight(savepoint, version_2, 1)


def test_a_savepoint_that_is_not_complete_cannot_be_replayed(savepoint, version_2, alice):
    Savepoint.objects.update(status="creating")
    savepoint.refresh_from_db()

    with pytest.raises(Refused, match="it is being taken; choose a complete one"):
        start_replay(savepoint, version_2, alice, 1)


def test_viewers_and_strangers_start_and_end_no_replay(replay, savepoint, version_2, bob, mallory):
    for person in (bob, mallory):
        with pytest.raises(Refused, match="needs the operator role"):
            start_replay(savepoint, version_2, person, 1)
        with pytest.raises(Refused, match="needs the operator role"):
            abandon_replay(replay, person)


def test_a_bounded_dry_run_says_so_to_the_engine_and_cannot_be_promoted(
    savepoint, version_2, alice, drive, engine
):
    until = savepoint.event_time + timedelta(days=30)
    replay, operation = start_replay(savepoint, version_2, alice, 1, until=until, discards=True)
    drive(operation)
    replay.refresh_from_db()
    settings = engine.jobs[replay.run.engine_job_id].request.settings
    assert settings["headwater.event-time.until"] == until.isoformat()
    assert settings["headwater.sinks.discard"] == "true"
    with pytest.raises(Refused, match="it ends by itself"):
        promote_replay(replay, alice)


def test_a_bounded_replay_does_not_catch_up_but_ends(savepoint, version_2, alice, drive, engine):
    until = savepoint.event_time + timedelta(days=30)
    replay, operation = start_replay(savepoint, version_2, alice, 1, until=until)
    drive(operation)
    for second in range(5):
        wall = replay.created_at + timedelta(seconds=second)
        record_sample(replay, wall, until, until + timedelta(days=90), Seen(pending_rows=0))
    replay.refresh_from_db()
    assert (replay.status, replay.live_event_time) == (Replay.Status.REPLAYING, until)
    runs.observe(replay.run, RunState.FINISHED, replay.created_at)
    replay.refresh_from_db()
    assert replay.status == Replay.Status.FINISHED


def test_an_end_before_the_savepoint_is_refused(savepoint, version_2, alice):
    with pytest.raises(Refused, match=r"cannot end at 2013-03-01 00:00 UTC: .* give a later time"):
        start_replay(savepoint, version_2, alice, 1, until=savepoint.event_time)
