"""Who uses savepoints, and what may not be deleted for it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.access.errors import Refused
from controlplane.jobs import actions as jobs
from controlplane.jobs.models import Run
from controlplane.replay.actions import start_replay
from controlplane.replay.models import Replay
from controlplane.snapshots import actions, uses
from controlplane.snapshots.models import Checkpoint, Savepoint
from controlplane.snapshots.uses import needs, uses_of


def why(savepoint: Savepoint) -> tuple[str, ...]:
    return needs(uses_of([savepoint.job]), savepoint.pk)


def test_one_that_nobody_uses_is_needed_by_nobody(make):
    assert why(make(3)) == ()


def test_a_stopped_job_needs_its_newest_and_the_one_it_stopped_with(running, alice, make, drive):
    old = make(3)
    drive(jobs.stop(running, alice))
    stopped = Savepoint.objects.get(origin="stop")
    newest = make(-1)
    imported = make(2, "imported")  # its state is older than its row

    assert why(old) == why(imported) == ()
    assert why(stopped) == why(newest) == ("flights is stopped and starts from it",)


def test_a_rollback_needs_the_newest_of_an_upgrade(make):
    before, after = make(5, "upgrade"), make(4, "upgrade")
    assert why(before) == ()
    assert why(after) == ("the last upgrade can be taken back to it",)


def test_a_replay_needs_it_until_it_is_over(alice, make, running):
    savepoint = make(3)
    replay, _ = start_replay(savepoint, running.versions.get(), alice, 1)
    assert "replay r-1 is not over and started from it" in why(savepoint)

    type(replay).objects.update(status="abandoned")
    type(replay.job.operations.first()).objects.update(state="cancelled")
    assert why(savepoint) == ()
    assert [use.name for use in uses_of([running])[savepoint.pk]] == ["r-1"]


def test_a_replay_that_can_be_rolled_back_needs_where_the_old_version_stopped(make, running):
    savepoint, old = make(3), make(2)
    version = running.versions.get()
    replay = Replay.objects.create(
        number=1, job=running, savepoint=savepoint, version=version, old_savepoint=old
    )
    Replay.objects.update(promoted_at=timezone.now())
    for status, needed in (("promoted", True), ("rolled_back", False)):
        Replay.objects.filter(pk=replay.pk).update(status=status)
        assert any("replay r-1 can be rolled back to it until" in one for one in why(old)) is needed
    Replay.objects.update(status="promoted", promoted_at=timezone.now() - timedelta(days=8))
    assert not why(old)


def test_whatever_else_refers_to_a_savepoint_needs_it(make, running, monkeypatch):
    savepoint = make(3)
    monkeypatch.setattr(uses, "KNOWN", frozenset())
    Run.objects.update(restored_from=savepoint)
    Replay.objects.create(
        number=1,
        job=running,
        savepoint=make(5),
        version=running.versions.get(),
        old_savepoint=savepoint,
        status="rolled_back",
    )
    assert {"a run refers to it", "a replay refers to it"} <= set(why(savepoint))


def test_a_run_needs_what_it_started_from(make, running):
    savepoint, run = make(3), running.runs.get()
    Run.objects.update(restored_from=savepoint)
    started = f"run {run.pk} started from it and has no checkpoint of its own yet"
    assert why(savepoint) == (started,)

    Checkpoint.objects.create(
        run=run, engine_checkpoint_id=1, status="completed", trigger_at=run.started_at
    )
    going_back = f"run {run.pk}, which runs now, started from it: going back needs it"
    assert why(savepoint) == (going_back,)


def test_an_operation_under_way_needs_it(alice, make):
    savepoint = make(3)
    actions.verify_savepoint(savepoint, alice)
    assert why(savepoint) == ("verify is under way and needs it",)


def test_a_folder_in_two_catalogues_is_needed_by_the_other(make, alice, team):
    mine = make(3)
    other = jobs.create_job("orders", team, alice, "job.py", b"pass")
    more = {"origin": "imported", "status": "completed", "location": mine.location}
    Savepoint.objects.create(job=other, **more)
    assert why(mine) == ("it is in the catalogue of orders too",)


def test_uses_take_as_many_queries_for_many_savepoints_as_for_few(
    make, running, django_assert_num_queries
):
    for count in (1, 12):
        for age in range(count):
            make(age)
        with django_assert_num_queries(6):
            uses_of([running])


@pytest.mark.parametrize("action", [actions.mark_savepoint, actions.detach_savepoint])
def test_what_is_needed_is_neither_deleted_nor_detached(action, make, alice, running):
    make(0)
    pinned, before = make(3, pinned=True), make(4, "upgrade")
    for savepoint, sentence in (
        (pinned, "it is pinned; take the pin away first"),
        (before, "the last upgrade can be taken back to it"),
        (running.savepoints.first(), "it is the last good one of flights"),
    ):
        with pytest.raises(Refused, match=sentence):
            action(savepoint, alice)
        savepoint.refresh_from_db()
        assert savepoint.status == Savepoint.Status.COMPLETED
