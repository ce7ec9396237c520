"""A real Celery worker is killed in the middle of an upgrade, over and over: it ends once."""

from __future__ import annotations

import sys
import time

import pytest

from controlplane.supervisor.redis_server import redis_binary
from engine.testing.cluster import PATIENCE_S
from engine.testing.fake_service import FakeService
from loopback_engine import served
from process_home import ProcessHome

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(redis_binary() is None, reason="no Redis server for this platform"),
]

BEGIN = """
import sys
import django
django.setup()
from django.contrib.auth.models import User
from controlplane.access.models import Team
from controlplane.backends.models import Cluster
from controlplane.jobs import actions
alice = User.objects.create_superuser("alice")
team = Team.objects.create(name="payments")
Cluster.objects.create(name="lab", url=sys.argv[1])
job = actions.create_job("flights", team, alice, "flights.py", b"import engine")
actions.deploy(job, alice)
"""
UPGRADE = """
import django
django.setup()
from django.contrib.auth.models import User
from controlplane.jobs import actions
from controlplane.jobs.models import Job
job, alice = Job.objects.get(), User.objects.get()
version = actions.add_version(job, alice, "flights_v2.py", b"import engine as hw")
actions.upgrade(job, alice, version)
"""


class Platform(ProcessHome):
    """One worker at a time."""

    def __init__(self, home, engine_url):
        self.kills = home / "kills"
        self.deaths = 0
        self._worker = None
        super().__init__(home, MORTAL_WORKER=str(self.kills), ENGINE=engine_url)

    def __enter__(self):
        self.kills.write_text("")
        return super().__enter__()

    def drive(self, kind):
        """Keep a worker running until the newest operation of that kind has ended."""
        until = time.monotonic() + PATIENCE_S
        while (ended := self.state_of(kind))[0] in {"pending", "running"}:
            assert time.monotonic() < until, ended
            self._keep_a_worker()
            time.sleep(0.1)
        return ended

    def _keep_a_worker(self):
        if self._worker is not None and self._worker.poll() is not None:
            self.deaths += 1
            self._worker = None
        if self._worker is None:
            command = [sys.executable, "-m", "celery", "-A", "mortal_worker", "worker"]
            self._worker = self.begin(*command, "--pool=solo", "--loglevel=warning")

    def state_of(self, kind):
        return self.rows(f"SELECT state, error FROM operations_operation WHERE kind='{kind}'")[-1]


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def platform(tmp_path, service):
    with served(service) as url, Platform(tmp_path, url) as running:
        yield running


def test_an_upgrade_whose_workers_are_killed_ends_once(platform, service):
    platform.run("-c", BEGIN, platform.environment["ENGINE"])
    assert platform.drive("deploy") == ("succeeded", "")

    platform.kills.write_text("trigger acted\nend recording\nstart acted\n")
    platform.run("-c", UPGRADE)
    assert platform.drive("upgrade") == ("succeeded", "")

    assert (platform.deaths, platform.kills.read_text()) == (3, "")
    runs = platform.rows("SELECT state, restored_from_id FROM jobs_run ORDER BY id")
    assert [state for state, _ in runs] == ["FINISHED", "RUNNING"]
    (savepoint,) = platform.rows("SELECT id, status FROM snapshots_savepoint")
    assert savepoint == (runs[1][1], "completed")
    assert len(service.requests) == 2  # asked for again after its worker's death, started once
