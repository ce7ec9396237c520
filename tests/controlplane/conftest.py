"""People, a fake engine and a job; and a way to bring operations to their end without a worker."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from controlplane.access.models import Membership, Role, Team
from controlplane.backends import fake
from controlplane.backends.fake import FakeEngine
from controlplane.backends.models import Cluster
from controlplane.jobs import actions
from controlplane.jobs.models import Job
from controlplane.operations import runner
from controlplane.operations.models import Operation

JOB_FILE = b"import engine as hw\n\nenv = hw.Environment('flights')\nenv.execute()\n"


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
def team(db: None) -> Team:
    return Team.objects.create(name="payments")


@pytest.fixture
def alice(team: Team) -> User:
    """She owns the jobs."""
    return _member("alice", team, Role.ADMIN)


@pytest.fixture
def bob(team: Team) -> User:
    """He is in her team and may look."""
    return _member("bob", team, Role.VIEWER)


@pytest.fixture
def mallory(db: None) -> User:
    """Nobody's team mate."""
    return User.objects.create_user("mallory")


def _member(name: str, team: Team, role: Role) -> User:
    user = User.objects.create_user(name)
    Membership.objects.create(user=user, team=team, role=role)
    return user


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    """The engine of the cluster `lab`."""
    yield fake.engine("lab")
    fake.forget("lab")


@pytest.fixture
def lab(db: None, engine: FakeEngine) -> Cluster:
    return Cluster.objects.create(name="lab", url="fake://lab")


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
