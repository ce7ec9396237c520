"""A replay promoted and rolled back: who runs, who writes, and what is said when it fails."""

from __future__ import annotations

import pytest

from controlplane.access.errors import Refused
from controlplane.backends.contract import SETTING_SHADOW
from controlplane.backends.errors import EngineRefused
from controlplane.jobs import actions as jobs
from controlplane.jobs.models import Run
from controlplane.operations.models import Operation
from controlplane.replay.actions import (
    abandon_replay,
    accept_difference,
    limit_replay,
    pause_replay,
    promote_replay,
    rollback_replay,
)
from controlplane.replay.limits import Limit
from controlplane.replay.models import Difference, Replay, ReplayOutput
from operation_cases import caught_up


@pytest.fixture
def replay(flights, alice, engine, drive):
    return caught_up(flights, alice, engine, drive)


def writing(engine) -> list[str]:
    """The jobs of the engine that write to the real targets."""
    return [
        job.request.engine_job_id
        for job in engine.jobs.values()
        if not job.status.has_ended and SETTING_SHADOW not in job.request.settings
    ]


def live(job) -> Run:
    return job.runs.get(purpose=Run.Purpose.LIVE, state="RUNNING")


@pytest.mark.parametrize("comes_up", [True, False])
def test_at_no_moment_do_two_runs_write(replay, flights, alice, engine, drive, comes_up):
    engine.refuses_artifact = ("", "") if comes_up else ("v2", "no uid")
    most = 0

    def look(_point: str) -> None:
        nonlocal most
        most = max(most, len(writing(engine)))

    drive(promote_replay(replay, alice), look)
    if comes_up:
        replay.refresh_from_db()
        drive(rollback_replay(replay, alice), look)
    assert most == 1
    assert writing(engine) == [live(flights).engine_job_id]
    assert live(flights).version.number == 1


def test_the_new_version_goes_on_from_where_its_replay_stopped(replay, flights, alice, drive):
    drive(promote_replay(replay, alice))
    replay.refresh_from_db()
    run = live(flights)
    assert (replay.status, replay.new_run) == (Replay.Status.PROMOTED, run)
    assert run.version.number == 2
    assert run.restored_from.run == replay.run
    assert replay.old_savepoint.run == replay.old_run
    assert replay.stood_still_ms > 0


def test_rolling_back_starts_the_old_version_where_it_stopped(replay, flights, alice, drive):
    drive(promote_replay(replay, alice))
    replay.refresh_from_db()
    drive(rollback_replay(replay, alice))
    replay.refresh_from_db()
    assert replay.status == Replay.Status.ROLLED_BACK
    assert live(flights).restored_from == replay.old_savepoint


def test_one_that_does_not_come_up_leaves_the_old_version_running(
    replay, flights, alice, engine, drive
):
    engine.refuses_artifact = ("v2", "no uid")
    failed = drive(promote_replay(replay, alice))
    replay.refresh_from_db()
    assert (failed.state, failed.error) == (Operation.State.FAILED, "no uid")
    assert (replay.status, replay.failure) == (Replay.Status.FAILED, "no uid")
    assert live(flights).reason.endswith("no uid")


def test_while_the_old_version_cannot_stop_nothing_changes(replay, flights, alice, engine, drive):
    before = live(flights)

    def fail_savepoints(_point: str) -> None:
        engine.fail_savepoints("the disk is full")

    failed = drive(promote_replay(replay, alice), fail_savepoints)
    replay.refresh_from_db()
    assert "the disk is full" in failed.error
    assert live(flights) == before
    assert replay.status == Replay.Status.CAUGHT_UP
    assert "the disk is full" in replay.failure
    assert replay.run.state == "RUNNING"


def test_a_roll_back_that_fails_says_that_nothing_runs_and_what_to_do(
    replay, flights, alice, engine, drive
):
    drive(promote_replay(replay, alice))
    replay.refresh_from_db()
    engine.fail("start", EngineRefused("no slots"))
    failed = drive(rollback_replay(replay, alice))
    replay.refresh_from_db()
    assert failed.state == Operation.State.FAILED
    assert replay.failure == (
        "no version of flights runs: no slots; start version 1 from savepoint "
        f"{replay.old_savepoint_id}"
    )
    assert writing(engine) == []


def test_only_one_that_has_caught_up_is_promoted(replay, alice):
    Replay.objects.update(status=Replay.Status.REPLAYING)
    with pytest.raises(Refused, match="wait until it has caught up"):
        promote_replay(replay, alice)


def test_differences_have_to_be_accepted_first(
    replay, alice, bob, mallory, django_capture_on_commit_callbacks
):
    output = ReplayOutput.objects.create(replay=replay, uid="daily", name="daily", kind="parquet")
    difference = Difference.objects.create(
        output=output, verdict="changed", fields=["n"], rows=3, first_seen=replay.created_at
    )
    with pytest.raises(Refused, match="1 kind of differences is not accepted"):
        promote_replay(replay, alice)
    with pytest.raises(Refused):
        accept_difference(difference, mallory)
    with django_capture_on_commit_callbacks() as told:
        accept_difference(difference, alice)
    assert len(told) == 1  # pages that are open
    assert promote_replay(replay, alice).kind == "promote_replay"
    difference.refresh_from_db()
    assert difference.accepted_by == alice


def test_what_is_handed_over_is_neither_abandoned_nor_handed_over_again(replay, alice, drive):
    promotion = promote_replay(replay, alice)
    replay.refresh_from_db()
    with pytest.raises(Refused, match="cutting over"):
        abandon_replay(replay, alice)
    with pytest.raises(Refused):
        promote_replay(replay, alice)
    drive(promotion)


def test_a_job_that_was_started_again_since_is_not_rolled_back(replay, flights, alice, drive):
    drive(promote_replay(replay, alice))
    drive(jobs.stop(flights, alice))
    drive(jobs.deploy(flights, alice, flights.versions.get(number=2)))
    replay.refresh_from_db()
    with pytest.raises(Refused, match="was started again since"):
        rollback_replay(replay, alice)


def test_a_replay_is_throttled_paused_and_goes_on_at_its_limit(replay, alice, engine):
    limits, job = engine.limits, replay.run.engine_job_id
    limit_replay(replay, alice, Limit(500.0))
    pause_replay(replay, alice, paused=True)
    assert limits[job] == 0.0
    pause_replay(replay, alice, paused=False)
    assert limits[job] == 500.0
    limit_replay(replay, alice, Limit())
    assert limits[job] is None
    with pytest.raises(Refused, match="more than 0"):
        limit_replay(replay, alice, Limit(0.0))
    engine.away = True
    with pytest.raises(Refused, match="does not answer"):
        pause_replay(replay, alice, paused=True)
    replay.refresh_from_db()
    assert not replay.paused
