"""A worker that is killed, at every point of every kind of operation: the end is the same.

undisturbed   →  rows and engine
killed at n   →  the lease runs out, another worker goes on  →  the same rows, the same engine
"""

from __future__ import annotations

import itertools
from copy import deepcopy

import pytest
from django.db import transaction
from django.utils import timezone

from controlplane.backends import fake
from controlplane.jobs import actions as jobs
from controlplane.jobs.models import Job, Run
from controlplane.operations import runner, tasks
from controlplane.operations.kinds import kinds
from controlplane.operations.kinds.upgrade import Upgrade
from controlplane.operations.models import Operation
from controlplane.replay.models import Replay
from controlplane.snapshots.models import Savepoint
from operation_cases import CASES

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
        "clusters": sorted(Job.objects.values_list("cluster__name")),
        "jobs": jobs_of(engine),
        "jobs of the other": jobs_of(fake.engine("lab-2")),
        "saved": len(engine.savepoints),
    }


def jobs_of(engine):
    return sorted((job.status.name, job.status.state) for job in engine.jobs.values())


@pytest.fixture
def case(name):
    return CASES[name]


@pytest.fixture
def begin(case, flights, alice, engine, drive):
    """What starts the operation; all that it needs is there."""
    return case.begin(flights, alice, engine, drive)


def killed_at(number, begin, engine, drive, clock):
    """The end of an operation that is killed there, and whether it was; then all is undone."""
    clock.now = timezone.now()
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


def points_of(begin, engine, drive, clock):
    """Every point that an undisturbed operation passes, in order."""
    passed = []
    with transaction.atomic():
        mark, saved = transaction.savepoint(), deepcopy(vars(engine))
        drive(begin(), passed.append)
        transaction.savepoint_rollback(mark)
        vars(engine).update(saved)
    return passed


@pytest.mark.parametrize("name", CASES)
def test_a_kill_in_any_step_changes_nothing(name, case, begin, engine, drive, clock):
    wanted, *end, _ = killed_at(None, begin, engine, drive, clock)
    assert end == [case.state, case.error]
    passed = points_of(begin, engine, drive, clock)
    # Asked and not noted; noted and not committed: at the end of each step. What a worker does at
    # other points is the same for every kind: one of them is killed everywhere.
    ends = [number for number, point in enumerate(passed) if point == "recording"]
    chosen = sorted({*ends, *(number - 1 for number in ends)})
    for number in range(len(passed)) if name == "stop" else chosen:
        found, *end, hit = killed_at(number, begin, engine, drive, clock)
        assert (hit, found, *end) == (True, wanted, case.state, case.error), passed[number]
    assert len(ends) >= 2


def test_every_step_of_every_kind_has_a_case(flights, alice, engine, drive):
    reached = set()
    for case in CASES.values():
        with transaction.atomic():
            mark, saved = transaction.savepoint(), deepcopy(vars(engine))
            operation = case.begin(flights, alice, engine, drive)()
            assert operation.kind == case.kind
            drive(operation)
            steps = operation.events.values_list("step", flat=True)
            reached |= {(case.kind, step) for step in steps} | {(case.kind, "")}
            transaction.savepoint_rollback(mark)
            vars(engine).update(saved)

    steps = {(kind.name, step.name) for kind in kinds() for step in (*kind.steps, *kind.recovery)}
    first = {(kind.name, kind.steps[0].name) for kind in kinds()}
    missing = sorted((steps - first | {(kind.name, "") for kind in kinds()}) - reached - SAME)
    assert not missing, f"add cases to tests/operation_cases.py that pass through {missing}"


SAME = {
    (kind.name, step.name)
    for kind in kinds()
    if kind.name in {"rollback", "rescale"}
    for step in Upgrade.recovery
} | {("rollback", step.name) for step in Upgrade.steps}
"""Steps that are those of an upgrade, and killed there."""


LOSABLE = {
    *("upload", "start", "trigger_savepoint", "stop", "cancel", "rescale", "verify", "dispose"),
}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.error])
def test_a_lost_answer_changes_nothing(begin, engine, drive):
    calls, wanted = without_the_answer("", begin, engine, drive)
    for call in sorted(LOSABLE.intersection(calls)):
        _, found = without_the_answer(call, begin, engine, drive)
        assert found == wanted, call


def without_the_answer(call, begin, engine, drive):
    """What was asked of the engine, and the end; then all is undone."""
    with transaction.atomic():
        mark, saved = transaction.savepoint(), deepcopy(vars(engine))
        operation = begin()
        before = len(engine.calls)
        engine.drop_answer(call)
        ended = drive(operation)
        found = engine.calls[before:], (picture(engine), ended.state, ended.error)
        transaction.savepoint_rollback(mark)
        vars(engine).update(saved)
    return found


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
