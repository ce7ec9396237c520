"""Retention under fire: 200 savepoints, three rules, pins, needs, storage that keeps failing."""

from __future__ import annotations

import random

from controlplane.jobs import actions as jobs
from controlplane.operations.models import UNFINISHED, Operation
from controlplane.snapshots import strays
from controlplane.snapshots.actions import set_pinned
from controlplane.snapshots.housekeeping import keep_house
from controlplane.snapshots.models import Savepoint, StrayFolder
from controlplane.snapshots.policy_actions import PolicyWish, set_policy

Status = Savepoint.Status


def test_nothing_needed_is_lost_and_no_orphan_stays(
    running, alice, make, engine, clock, drive, lab
):
    rng = random.Random(7)
    for hours in range(200):
        make((200 - hours) / 4, "upgrade" if hours == 20 else "scheduled")
    everything = list(Savepoint.objects.order_by("taken_at"))
    pins = rng.sample(everything[:150], 6)
    for savepoint in pins:
        set_pinned(savepoint, alice, pinned=True)
    drive(jobs.stop(running, alice))  # from now on a stopped job needs the one it stopped with
    engine.storage = lambda: "disk does not answer" if rng.random() < 0.3 else ""
    set_policy(running, alice, PolicyWish(keep_last=70, daily=45, weekly=8, grace_hours=1))
    needed = {
        *(savepoint.pk for savepoint in pins),
        *Savepoint.objects.filter(origin__in=["upgrade", "stop"]).values_list("pk", flat=True),
    }

    doomed = Savepoint.objects.filter(status__in=[Status.MARKED, Status.DELETING])
    keep_house(clock())
    assert doomed.count() > 60
    failures = 0
    while doomed.exists():
        keep_house(clock())
        for operation in Operation.objects.filter(state__in=UNFINISHED):
            failures += drive(operation).state == Operation.State.FAILED
        strays.scan(lab, clock())
        alive = Savepoint.objects.filter(pk__in=needed)
        assert {one.status for one in alive} == {Status.COMPLETED}
        assert all(one.location in engine.savepoints for one in alive)
        clock.advance(1_800)

    engine.storage = lambda: ""
    strays.scan(lab, clock())
    kept = set(Savepoint.objects.filter(status=Status.COMPLETED).values_list("location", flat=True))
    assert failures > 10  # storage did fail, again and again
    assert kept == set(engine.savepoints)  # no file without a row, no row without files
    assert not StrayFolder.objects.exists()
    assert not Savepoint.objects.filter(missing_since__isnull=False, status="completed").exists()
    assert 70 < len(kept) < 140
