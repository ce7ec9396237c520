"""The people of the tests, and the engine that their jobs run on.

alice   owns the jobs            bob       is in her team, and may look
engine  a fake one, "lab"        mallory   is nobody's team mate
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from controlplane.access.models import Membership, Role, Team
from controlplane.backends import fake
from controlplane.backends.fake import FakeEngine
from controlplane.backends.models import Cluster

JOB_FILE = b"import engine as hw\n\nenv = hw.Environment('flights')\nenv.execute()\n"


def jar_file(main: str = "Flights") -> bytes:
    """A jar without a class."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", f"Main-Class: {main}\n")
    return content.getvalue()


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(name="payments")


@pytest.fixture
def alice(team: Team) -> User:
    return _member("alice", team, Role.ADMIN)


@pytest.fixture
def bob(team: Team) -> User:
    return _member("bob", team, Role.VIEWER)


@pytest.fixture
def mallory(db: None) -> User:
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
