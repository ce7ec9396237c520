"""Deletion in two phases: marked, undone, done; verification and import beside it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.access.errors import Refused
from controlplane.audit.models import AuditEntry
from controlplane.backends.errors import EngineAway
from controlplane.operations.models import Operation
from controlplane.snapshots import actions
from controlplane.snapshots.housekeeping import keep_house
from controlplane.snapshots.models import Savepoint
from controlplane.snapshots.policy_actions import PolicyWish, set_policy

HOUR = 3_600


@pytest.fixture
def old(make):
    """An old one, and two that are newer."""
    make(0), make(1)
    return make(9)


@pytest.fixture
def settle(clock, drive):
    """Let so many hours pass, and do what is due then."""

    def until(hours: float) -> None:
        clock.advance(hours * HOUR)
        keep_house(clock())
        for operation in Operation.objects.filter(state__in=["pending", "running"]):
            drive(operation)

    return until


def test_a_marked_one_is_deleted_when_its_grace_is_over(old, alice, clock, settle, engine):
    actions.mark_savepoint(old, alice, "no use any more", now=clock())
    settle(23.9)
    old.refresh_from_db()
    assert (old.status, old.delete_reason) == (Savepoint.Status.MARKED, "no use any more")

    settle(0.2)
    old.refresh_from_db()
    assert old.status == Savepoint.Status.DELETED
    assert old.location not in engine.savepoints
    assert AuditEntry.objects.filter(action="dispose.request", actor=alice).exists()


def test_a_pin_undoes_the_mark_for_good(old, alice, clock, settle, engine, running):
    set_policy(running, alice, PolicyWish(keep_last=2))
    settle(0)
    old.refresh_from_db()
    assert (old.status, old.marked_by) == (Savepoint.Status.MARKED, None)

    actions.set_pinned(old, alice, pinned=True)
    settle(48)
    old.refresh_from_db()
    assert (old.status, old.delete_at) == (Savepoint.Status.COMPLETED, None)


def test_a_rule_that_thinks_better_of_it_takes_its_mark_back(old, alice, settle, running):
    set_policy(running, alice, PolicyWish(keep_last=2))
    settle(0)
    set_policy(running, alice, PolicyWish(keep_last=3))
    settle(0)
    old.refresh_from_db()
    assert old.status == Savepoint.Status.COMPLETED


def test_what_a_person_marked_no_rule_takes_back(old, alice, clock, settle, running):
    set_policy(running, alice, PolicyWish(keep_last=9, grace_hours=2))
    actions.mark_savepoint(old, alice, now=clock())
    settle(1)
    old.refresh_from_db()
    assert old.status == Savepoint.Status.MARKED
    assert old.delete_at == clock() + timedelta(hours=1)


def test_what_has_come_to_be_needed_is_not_deleted(old, alice, clock, settle):
    actions.mark_savepoint(old, alice, now=clock())
    Savepoint.objects.filter(pk=old.pk).update(origin="upgrade")
    settle(48)
    old.refresh_from_db()
    assert old.status == Savepoint.Status.COMPLETED


def test_an_expired_one_is_deleted_without_any_rule(old, alice, clock, settle):
    actions.set_expiry(old, alice, clock() + timedelta(hours=1), clock())
    settle(2)
    settle(25)
    old.refresh_from_db()
    assert (old.status, old.delete_reason[:7]) == (Savepoint.Status.DELETED, "expired")


def test_what_the_engine_would_restart_from_stays_and_is_tried_again(
    old, alice, clock, settle, engine
):
    engine.needed[old.location] = "savepoint is needed by job a1: wait for its next checkpoint"
    actions.mark_savepoint(old, alice, at_once=True, now=clock())
    settle(0)
    old.refresh_from_db()
    assert old.status == Savepoint.Status.MARKED
    assert "needed by job a1" in old.delete_failure
    assert (old.delete_tries, old.delete_at > clock()) == (1, True)

    engine.needed.clear()
    settle(1)
    old.refresh_from_db()
    assert old.status == Savepoint.Status.DELETED


def test_files_that_are_gone_already_end_the_record(old, alice, clock, settle, engine):
    actions.mark_savepoint(old, alice, at_once=True, now=clock())
    engine.lose(old.location)
    settle(0)
    old.refresh_from_db()
    assert old.status == Savepoint.Status.DELETED
    assert "dispose" not in engine.calls


def test_an_engine_that_forgets_the_deletion_is_asked_again(old, alice, clock, drive, engine):
    actions.mark_savepoint(old, alice, at_once=True, now=clock())
    keep_house(clock())
    operation = Operation.objects.get(kind="dispose")
    forgotten = []

    def forget(point: str) -> None:
        operation.refresh_from_db()
        if operation.step == "gone" and not forgotten:
            engine.forget_triggers()
            forgotten.append(point)

    assert drive(operation, forget).state == Operation.State.SUCCEEDED
    assert forgotten
    assert old.location not in engine.savepoints


def test_a_detached_one_leaves_its_files_and_can_come_back(old, alice, running, drive, engine):
    actions.detach_savepoint(old, alice, "moves to another place")
    assert old.location in engine.savepoints

    drive(actions.import_savepoint(running, alice, old.location))
    again = running.savepoints.get(location=old.location, status="completed")
    assert (again.origin, again.verdict) == ("imported", "whole")


@pytest.mark.parametrize(
    ("damage", "verdict"), [([], "whole"), (["file panes-0.parquet is torn"], "damaged")]
)
def test_a_verification_says_what_was_read(damage, verdict, old, alice, drive, engine, clock):
    engine.damage[old.location] = damage
    operation = drive(actions.verify_savepoint(old, alice))
    old.refresh_from_db()
    assert operation.state == Operation.State.SUCCEEDED
    assert (old.verdict, old.problems) == (verdict, damage)
    assert old.verified_at is not None


def test_one_without_a_manifest_cannot_be_read(old, alice, drive, engine):
    engine.lose(old.location)
    engine.leave(old.location)
    drive(actions.verify_savepoint(old, alice))
    old.refresh_from_db()
    assert old.verdict == "unreadable"
    assert "it has no _metadata" in old.problems[0]


def test_storage_that_fails_gives_no_verdict(old, alice, drive, engine):
    engine.storage = lambda: "disk does not answer"
    operation = drive(actions.verify_savepoint(old, alice))
    old.refresh_from_db()
    assert (operation.error, old.verdict) == ("disk does not answer", "")


def test_an_engine_that_is_away_is_waited_for(old, alice, drive, engine):
    operation = actions.verify_savepoint(old, alice)
    engine.fail("verify", EngineAway("nobody answers"))
    assert drive(operation).state == Operation.State.SUCCEEDED


def test_the_policy_verifies_what_was_not_verified_for_too_long(
    old, alice, running, settle, clock, drive
):
    set_policy(running, alice, PolicyWish(verify_days=7))
    for _ in range(4):
        settle(0)
    assert set(running.savepoints.values_list("verdict", flat=True)) == {"whole"}
    verified = Operation.objects.filter(kind="verify").count()
    settle(24 * 6)
    assert Operation.objects.filter(kind="verify").count() == verified == 3


@pytest.mark.parametrize("path", ["../secrets", "", "relative/path", "/a\0b"])
def test_only_an_absolute_path_is_imported(path, running, alice):
    with pytest.raises(Refused, match="savepoint path must be absolute"):
        actions.import_savepoint(running, alice, path)


def test_a_folder_that_is_no_savepoint_is_not_imported(running, alice, drive, engine):
    missing = drive(actions.import_savepoint(running, alice, "/data/nothing"))
    engine.leave("/data/torn")
    torn = drive(actions.import_savepoint(running, alice, "/data/torn"))

    assert missing.error == "snapshot is not there: no folder /data/nothing; check the path"
    assert "it has no _metadata" in torn.error
    assert not Savepoint.objects.exists()


def test_a_damaged_one_is_not_imported(running, alice, drive, engine, old):
    engine.damage[old.location] = ["file panes-0.parquet is torn"]
    Savepoint.objects.all().delete()
    operation = drive(actions.import_savepoint(running, alice, old.location))
    assert operation.error.endswith("is not imported: file panes-0.parquet is torn")
    assert not Savepoint.objects.exists()


def test_a_savepoint_that_lies_somewhere_is_imported_once(running, alice, drive, engine, old):
    with pytest.raises(Refused, match="is in the catalogue of flights already"):
        actions.import_savepoint(running, alice, f"{old.location}/")

    Savepoint.objects.all().delete()
    drive(actions.import_savepoint(running, alice, f"{old.location}/", label="from elsewhere"))
    imported = Savepoint.objects.get()
    assert (imported.origin, imported.label) == ("imported", "from elsewhere")
    assert imported.contents["operators"][0]["uid"] == "daily"


@pytest.mark.parametrize(
    "act",
    [
        actions.mark_savepoint,
        actions.detach_savepoint,
        actions.verify_savepoint,
        lambda one, who: actions.set_label(one, who, "mine"),
        lambda one, who: actions.set_pinned(one, who, pinned=True),
        lambda one, who: actions.set_expiry(one, who, None),
    ],
)
def test_viewers_and_strangers_change_no_savepoint(act, old, bob, mallory):
    for person in (bob, mallory):
        with pytest.raises(Refused, match="needs the operator role"):
            act(old, person)


def test_every_change_is_in_the_audit_log_with_before_and_after(old, alice):
    actions.set_label(old, alice, "before the storm")
    entry = AuditEntry.objects.filter(action="savepoint.change").get()
    assert (entry.before, entry.after) == ({"label": ""}, {"label": "before the storm"})
