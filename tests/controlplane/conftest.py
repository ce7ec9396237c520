"""People, a fake engine and a job; and a way to bring operations to their end without a worker."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from controlplane.access.models import Team
from controlplane.backends.models import Cluster
from controlplane.jobs import actions
from controlplane.jobs.models import Job
from controlplane.operations import runner
from controlplane.operations.models import Operation
from people import JOB_FILE, alice, bob, engine, lab, mallory, team

__all__ = ["alice", "bob", "engine", "lab", "mallory", "team"]


@dataclass
class ManualClock:
    """A clock that stands still unless it is moved; actions stamp rows with the real time, so it
    begins there."""

    now: datetime = field(default_factory=timezone.now)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def flights(team: Team, alice: User, lab: Cluster) -> Job:
    """A job of alice's with one version, never started."""
    return actions.create_job("flights", team, alice, "flights.py", JOB_FILE)


@pytest.fixture
def drive(clock: ManualClock) -> Callable[[Operation], Operation]:
    """Bring an operation to its end, as workers would, with the clock running as it asks."""

    def bring_to_its_end(operation: Operation, probe: runner.Probe = runner.no_probe) -> Operation:
        for _ in range(5_000):
            again_s = runner.advance(uuid.UUID(str(operation.pk)), clock, probe)
            if again_s is None:
                operation.refresh_from_db()
                return operation
            clock.advance(again_s)
        msg = f"{operation.kind} comes to no end: step {operation.step}"
        raise AssertionError(msg)

    return bring_to_its_end


@pytest.fixture
def running(flights: Job, alice: User, drive: Callable[[Operation], Operation]) -> Job:
    """Alice's job, up."""
    deployed = drive(actions.deploy(flights, alice))
    assert deployed.state == Operation.State.SUCCEEDED, deployed.error
    return flights
