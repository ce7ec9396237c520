"""A worker that is killed, at every point of every kind of operation: the end is the same.

undisturbed   →  rows and engine
killed at n   →  the lease runs out, another worker goes on  →  the same rows, the same engine
"""

from __future__ import annotations

import itertools
from copy import deepcopy

import pytest
from django.db import transaction

from controlplane.jobs import actions as jobs
from controlplane.jobs.models import Run
from controlplane.operations import runner, tasks
from controlplane.operations.models import Operation
from controlplane.operations.start import start_operation
from controlplane.replay.actions import abandon_replay, start_replay
from controlplane.replay.models import Replay
from controlplane.snapshots.actions import (
    detach_savepoint,
    import_savepoint,
    mark_savepoint,
    request_savepoint,
    verify_savepoint,
)
from controlplane.snapshots.models import ENDED, Savepoint

LEASE_OVER_S = 61


class Killed(BaseException):
    """The worker is gone, with whatever it held in memory."""


def kill_at(number: int) -> runner.Probe:
    """A probe that ends the worker at the point of that number."""
    count = itertools.count()

    def probe(point: str) -> None:
        if next(count) == number:
            raise Killed(point)

    return probe


def drive_to_a_kill(operation, clock, number: int) -> bool:
    """Bring it on until it is killed at that point; False when it ended before."""
    probe = kill_at(number)
    while True:
        try:
            again_s = runner.advance(operation.pk, clock, probe)
        except Killed:
            return True
        if again_s is None:
            return False
        clock.advance(again_s)


def picture(engine) -> dict[str, object]:
    """What matters at the end: how every row and every job of the engine stands."""
    return {
        "operations": sorted(Operation.objects.values_list("kind", "state", "error")),
        "runs": sorted(Run.objects.values_list("purpose", "state", "version__number")),
        "savepoints": sorted(Savepoint.objects.values_list("origin", "status", "verdict")),
        "replays": sorted(Replay.objects.values_list("status")),
        "jobs": sorted((job.status.name, job.status.state) for job in engine.jobs.values()),
        "saved": len(engine.savepoints),
    }


KINDS = [
    *("deploy", "stop", "cancel", "savepoint", "upgrade", "start_replay", "abandon_replay"),
    *("verify", "dispose", "import"),
]
GOES_BACK = "upgrade that goes back"


@pytest.fixture
def begin(kind, flights, alice, engine, drive):
    """What starts an operation of that kind; all that it needs is there."""
    if kind == "deploy":
        return lambda: jobs.deploy(flights, alice)
    drive(jobs.deploy(flights, alice))
    if kind in {"upgrade", GOES_BACK}:
        engine.refuses_artifact = ("v2", "no uid") if kind == GOES_BACK else ("", "")
        version = jobs.add_version(flights, alice, "flights_v2.py", b"import engine\n")
        return lambda: jobs.upgrade(flights, alice, version)
    if kind in {"start_replay", "abandon_replay"}:
        drive(request_savepoint(flights, alice))
        chosen = Savepoint.objects.get(), flights.versions.get(), alice, 1
        if kind == "start_replay":
            return lambda: start_replay(*chosen)[1]
        replay, starting = start_replay(*chosen)
        drive(starting)
        return lambda: abandon_replay(replay, alice)
    if kind in {"verify", "dispose", "import"}:
        return about_a_savepoint(kind, flights, alice, drive)
    action = {"stop": jobs.stop, "cancel": jobs.cancel, "savepoint": request_savepoint}[kind]
    return lambda: action(flights, alice)


def about_a_savepoint(kind, flights, alice, drive):
    """What starts an operation on the older of two savepoints."""
    for _ in range(2):
        drive(request_savepoint(flights, alice))
    old = Savepoint.objects.order_by("pk").first()
    if kind == "verify":
        return lambda: verify_savepoint(old, alice)
    if kind == "dispose":
        mark_savepoint(old, alice, at_once=True)
        return lambda: start_operation("dispose", flights, alice, {"savepoint": old.pk})
    detach_savepoint(old, alice)
    return lambda: import_savepoint(flights, alice, old.location)


def killed_at(number, begin, engine, drive, clock):
    """The end of an operation that is killed there, and whether it was; then all is undone."""
    with transaction.atomic():
        mark, saved = transaction.savepoint(), deepcopy(vars(engine))
        operation = begin()
        hit = number is not None and drive_to_a_kill(operation, clock, number)
        clock.advance(LEASE_OVER_S)
        ended = drive(operation)
        found = picture(engine), ended.state, ended.error, hit
        transaction.savepoint_rollback(mark)
        vars(engine).update(saved)
    return found


@pytest.mark.parametrize("kind", [*KINDS, GOES_BACK])
def test_a_kill_at_any_point_changes_nothing(kind, begin, engine, drive, clock):
    wanted, state, error, _ = killed_at(None, begin, engine, drive, clock)
    assert (state, error) == (("failed", "no uid") if kind == GOES_BACK else ("succeeded", ""))
    for number in itertools.count():
        found, *end, hit = killed_at(number, begin, engine, drive, clock)
        assert (found, *end) == (wanted, state, error), number
        if not hit:
            break
    assert number >= 9  # three steps of at least three points: the kills did happen


@pytest.mark.parametrize(
    "call", ["upload", "start", "trigger_savepoint", "stop", "cancel", "verify", "dispose"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_answer_changes_nothing(begin, call, engine, drive):
    operation = begin()
    engine.drop_answer(call)
    ended = drive(operation)

    assert ended.state == Operation.State.SUCCEEDED, ended.error
    names = [found.request.engine_job_id for found in engine.jobs.values()]
    assert len(names) == len(set(names)) == Run.objects.count()
    assert len(engine.savepoints) == Savepoint.objects.exclude(status__in=ENDED).count()


def test_a_worker_respects_the_lease_of_another(flights, alice, clock):
    operation = jobs.deploy(flights, alice)
    assert drive_to_a_kill(operation, clock, 0)

    assert runner.advance(operation.pk, clock) is None
    clock.advance(LEASE_OVER_S)
    assert runner.advance(operation.pk, clock) is not None


def test_the_sweep_finds_what_nobody_brings_on(flights, alice, clock):
    operation = jobs.deploy(flights, alice)
    assert tasks.forgotten(clock()) == []  # just begun: its own task is on the way

    clock.advance(10)
    assert tasks.forgotten(clock()) == [operation.pk]

    drive_to_a_kill(operation, clock, 0)
    assert tasks.forgotten(clock()) == []  # a worker has it, as far as anybody knows
    clock.advance(LEASE_OVER_S)
    assert tasks.forgotten(clock()) == [operation.pk]


def test_a_fault_of_ours_is_tried_again_and_then_reported(flights, alice, clock):
    operation = jobs.deploy(flights, alice)
    runner.stumble(operation.pk, KeyError("artifact"), clock())
    operation.refresh_from_db()
    assert (operation.state, operation.lease_until) == (Operation.State.RUNNING, None)

    clock.advance(61)
    runner.stumble(operation.pk, KeyError("artifact"), clock())
    operation.refresh_from_db()
    assert operation.state == Operation.State.FAILED
    assert operation.error == "fault in step upload: KeyError: 'artifact'"
