"""Who waits for a job file that hangs, and for how long: each gives up before the one above it."""

from __future__ import annotations

from controlplane import settings
from controlplane.backends.rest import QUICK_S
from controlplane.operations.contract import BUILD_LEASE_S, LEASE_S
from controlplane.operations.kinds import kinds
from controlplane.operations.runner import TURN
from engine.cluster.programs.artifacts import BUILD_TIMEOUT_S
from engine.rest.calls.call import BUILD_S


def test_the_engine_gives_up_first_and_no_task_is_killed_in_a_build():
    soft, hard = settings.CELERY_TASK_SOFT_TIME_LIMIT, settings.CELERY_TASK_TIME_LIMIT
    assert BUILD_TIMEOUT_S + 5 <= BUILD_S  # so that its sentence arrives
    assert BUILD_S + 5 <= BUILD_LEASE_S  # so that nobody else begins the step meanwhile
    assert TURN.total_seconds() + BUILD_S < soft < hard
    assert hard < settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"]
    assert QUICK_S < LEASE_S


def test_every_step_has_longer_than_one_try_of_it():
    short = [
        (kind.name, step.name)
        for kind in kinds()
        for step in (*kind.steps, *kind.recovery)
        if step.builds and step.timeout_s <= BUILD_S
    ]
    assert short == []


def test_no_step_has_more_time_than_all_of_its_operation():
    long = [
        (kind.name, step.name)
        for kind in kinds()
        for step in kind.steps
        if step.timeout_s > kind.timeout_s
    ]
    assert long == []
