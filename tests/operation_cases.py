"""Operations of every kind, each way through their steps: what begins one and how it ends.

Whoever adds a kind, or a step, adds a case: `test_kills.py` says what is missing, and kills the
worker at every point of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from django.utils import timezone

from controlplane.backends import fake
from controlplane.backends.models import Cluster
from controlplane.jobs import actions as jobs
from controlplane.jobs.moving import move_job
from controlplane.operations import runner
from controlplane.operations.actions import cancel_operation
from controlplane.operations.models import Operation
from controlplane.operations.start import start_operation
from controlplane.replay.actions import (
    abandon_replay,
    promote_replay,
    rollback_replay,
    start_replay,
)
from controlplane.replay.models import Replay
from controlplane.snapshots.actions import (
    detach_savepoint,
    import_savepoint,
    mark_savepoint,
    request_savepoint,
    verify_savepoint,
)
from controlplane.snapshots.models import Checkpoint, Savepoint

NOW = datetime(2013, 12, 1, tzinfo=UTC)
"""Event time that replay and live job have come to."""


@dataclass(frozen=True)
class Case:
    """What begins an operation of a kind, and how it ends when nobody disturbs it."""

    kind: str
    begin: Callable[..., Callable[[], Operation]]
    state: str = "succeeded"
    error: str = ""


def up(job, drive, alice, engine):
    """The job runs, and its engine has completed a checkpoint."""
    drive(jobs.deploy(job, alice))
    return job


def second_version(job, alice):
    return jobs.add_version(job, alice, "flights_v2.py", b"import engine\n")


def deploy(job, alice, engine, drive):
    return lambda: jobs.deploy(job, alice)


def deploy_cancelled(job, alice, engine, drive):
    engine.slots = 0  # it waits for them, for ever

    def begin():
        operation = jobs.deploy(job, alice)
        for _ in range(2):
            runner.advance(operation.pk, timezone.now)
        cancel_operation(operation, alice)
        return operation

    return begin


def a_stop(action):
    def case(job, alice, engine, drive):
        return lambda: action(up(job, drive, alice, engine), alice)

    return case


def an_upgrade(mode, *, comes_up=True):
    def case(job, alice, engine, drive):
        up(job, drive, alice, engine)
        engine.refuses_artifact = ("", "") if comes_up else ("v2", "no uid")
        version = second_version(job, alice)
        consent = mode == "stateless"
        return lambda: jobs.upgrade(job, alice, version, mode=mode, consent=consent)

    return case


def a_rollback(job, alice, engine, drive):
    up(job, drive, alice, engine)
    checkpointed(job)
    drive(jobs.upgrade(job, alice, second_version(job, alice)))
    return lambda: jobs.rollback(job, alice)


def checkpointed(job):
    """Its run has completed a checkpoint, as the collector would have written it down."""
    Checkpoint.objects.create(
        run=job.runs.first(),
        engine_checkpoint_id=1,
        status="completed",
        trigger_at=timezone.now() + timedelta(minutes=1),
    )


def a_rescale(*, in_place, comes_up=True):
    def case(job, alice, engine, drive):
        up(job, drive, alice, engine)
        engine.rescales = in_place
        engine.refuses_restore = "" if comes_up else "key groups do not fit"
        engine.compares = comes_up
        return lambda: jobs.rescale(job, alice, 2)

    return case


def a_move(*, fits=True, comes_up=True):
    """To a second cluster, which sees the same folder of savepoints."""

    def case(job, alice, engine, drive):
        drive(request_savepoint(up(job, drive, alice, engine), alice))
        cluster = Cluster.objects.create(name="lab-2", url="fake://lab-2")

        def begin():
            fake.forget("lab-2")
            other = fake.engine("lab-2")
            other.savepoints = engine.savepoints
            other.refuses_restore = "" if fits else "key groups do not fit"
            other.refuses_artifact = ("", "") if comes_up else ("flights", "no uid")
            return move_job(job, alice, cluster)

        return begin

    return case


def replay_of(job, alice, drive, engine):
    up(job, drive, alice, engine)
    drive(request_savepoint(job, alice))
    return start_replay(Savepoint.objects.get(), job.versions.get(), alice, 1)


def a_replay(job, alice, engine, drive):
    return lambda: replay_of(job, alice, drive, engine)[1]


def a_replay_that_fails(job, alice, engine, drive):
    engine.refuses_restore = "no uid"
    return lambda: replay_of(job, alice, drive, engine)[1]


def an_abandoned_replay(job, alice, engine, drive):
    replay, starting = replay_of(job, alice, drive, engine)
    drive(starting)
    return lambda: abandon_replay(replay, alice)


def caught_up(job, alice, engine, drive):
    """A replay of version 2 that has caught up with version 1."""
    up(job, drive, alice, engine)
    drive(request_savepoint(job, alice))
    replay, starting = start_replay(Savepoint.objects.get(), second_version(job, alice), alice, 1)
    drive(starting)
    Replay.objects.update(status=Replay.Status.CAUGHT_UP, event_time_now=NOW, live_event_time=NOW)
    replay.refresh_from_db()
    return replay


def a_promotion(*, comes_up=True):
    def case(job, alice, engine, drive):
        replay = caught_up(job, alice, engine, drive)
        engine.refuses_artifact = ("", "") if comes_up else ("v2", "no uid")
        return lambda: promote_replay(replay, alice)

    return case


def a_cut_over(*, comes_up=True):
    def case(job, alice, engine, drive):
        replay = caught_up(job, alice, engine, drive)
        engine.refuses_artifact = ("", "") if comes_up else ("v2", "no uid")
        return lambda: promote_replay(replay, alice, at=NOW + timedelta(days=30))

    return case


def a_cut_over_taken_back(job, alice, engine, drive):
    replay = caught_up(job, alice, engine, drive)
    drive(promote_replay(replay, alice, at=NOW + timedelta(days=30)))
    replay.refresh_from_db()
    return lambda: rollback_replay(replay, alice)


def an_undone_promotion(job, alice, engine, drive):
    replay = caught_up(job, alice, engine, drive)
    drive(promote_replay(replay, alice))
    replay.refresh_from_db()
    return lambda: rollback_replay(replay, alice)


def about_a_savepoint(action):
    """An operation on the older of two savepoints."""

    def case(job, alice, engine, drive):
        up(job, drive, alice, engine)
        for _ in range(2):
            drive(request_savepoint(job, alice))
        old = Savepoint.objects.order_by("pk").first()
        return action(job, old, alice)

    return case


def verifying(job, old, alice):
    return lambda: verify_savepoint(old, alice)


def deleting(job, old, alice):
    mark_savepoint(old, alice, at_once=True)
    return lambda: start_operation("dispose", job, alice, {"savepoint": old.pk})


def importing(job, old, alice):
    detach_savepoint(old, alice)
    return lambda: import_savepoint(job, alice, old.location)


def a_discard(job, alice, engine, drive):
    up(job, drive, alice, engine)

    def begin():
        operation = request_savepoint(job, alice)
        runner.advance(operation.pk, timezone.now)  # asked for, and not complete yet
        cancel_operation(operation, alice)
        drive(operation)
        return Operation.objects.get(kind="discard")

    return begin


CASES = {
    "deploy": Case("deploy", deploy),
    "deploy cancelled": Case("deploy", deploy_cancelled, "cancelled", "cancelled by alice"),
    "stop": Case("stop", a_stop(jobs.stop)),
    "drain": Case("drain", a_stop(partial(jobs.stop, drain=True))),
    "cancel": Case("cancel", a_stop(jobs.cancel)),
    "savepoint": Case("savepoint", a_stop(request_savepoint)),
    "upgrade": Case("upgrade", an_upgrade("savepoint")),
    "upgrade goes back": Case(
        "upgrade", an_upgrade("savepoint", comes_up=False), "failed", "no uid"
    ),
    "last state": Case("upgrade", an_upgrade("last_state")),
    "last state goes back": Case(
        "upgrade", an_upgrade("last_state", comes_up=False), "failed", "no uid"
    ),
    "stateless": Case("upgrade", an_upgrade("stateless")),
    "rollback": Case("rollback", a_rollback),
    "rescale": Case("rescale", a_rescale(in_place=True)),
    "rescale by restart": Case("rescale", a_rescale(in_place=False)),
    "move": Case("move", a_move()),
    "move that does not fit": Case("move", a_move(fits=False), "failed", "key groups do not fit"),
    "move goes back": Case("move", a_move(comes_up=False), "failed", "no uid"),
    "start_replay": Case("start_replay", a_replay),
    "start_replay fails": Case("start_replay", a_replay_that_fails, "failed", "no uid"),
    "abandon_replay": Case("abandon_replay", an_abandoned_replay),
    "promote_replay": Case("promote_replay", a_promotion()),
    "promote_replay goes back": Case(
        "promote_replay", a_promotion(comes_up=False), "failed", "no uid"
    ),
    "cut_over": Case("cut_over", a_cut_over()),
    "cut_over goes back": Case("cut_over", a_cut_over(comes_up=False), "failed", "no uid"),
    "cut_over taken back": Case("rollback_replay", a_cut_over_taken_back),
    "rollback_replay": Case("rollback_replay", an_undone_promotion),
    "discard": Case("discard", a_discard),
    "verify": Case("verify", about_a_savepoint(verifying)),
    "dispose": Case("dispose", about_a_savepoint(deleting)),
    "import": Case("import", about_a_savepoint(importing)),
}
