"""A replay cut over at an event time on a real engine, of which a worker is killed on the way.

version 1 live ── version 2 replayed ── cut at T ─┬─ version 1 up to T ─┤
                                                  └──────── version 2 from T on ──▶ roll back
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from django.utils import timezone
from polars.testing import assert_frame_equal

from controlplane.backends.models import Cluster
from controlplane.jobs import actions
from controlplane.jobs.models import Run
from controlplane.replay import lifecycle
from controlplane.replay.actions import promote_replay, rollback_replay, start_replay
from controlplane.replay.models import Replay
from controlplane.snapshots.actions import request_savepoint
from controlplane.snapshots.models import Savepoint
from engine.testing.cluster import LocalCluster
from examples.truth import read_output, truth, v1, v2
from on_a_real_engine import last_window, succeed, wait
from recorded_flights import RecordedFlights

pytestmark = pytest.mark.integration

T = datetime(2013, 5, 1, tzinfo=UTC)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


@pytest.fixture
def recording(tmp_path):
    return RecordedFlights(tmp_path)


@pytest.fixture
def cluster(tmp_path):
    with LocalCluster(tmp_path / "engine", task_managers=1, slots=3) as cluster:
        yield cluster


@pytest.fixture
def flights(team, alice, tmp_path, output, settings, cluster, recording):
    settings.HEADWATER_SAVEPOINTS = tmp_path / "savepoints"
    embedded = Cluster.objects.create(name="embedded", url=cluster.url)
    chosen = {"checkpoint_interval_ms": 500, "arguments": ["--no-points", "--output", str(output)]}
    return actions.create_job(
        "flights", team, alice, "flights.py", recording.code("flights.py"), chosen, cluster=embedded
    )


def assert_written(folder: Path, expected: pl.DataFrame, until: datetime) -> None:
    """Every closed window, each once."""
    closed = pl.col("window_end") <= until
    expected = expected.filter(closed)
    written = read_output(folder).cast(dict(expected.schema)).filter(closed)
    assert_frame_equal(written.select(expected.columns), expected, check_exact=True)


def cut(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """What one gives up to T, and the other from there on."""
    ends = pl.col("window_end")
    return pl.concat([old.filter(ends <= T), new.filter(ends > T)]).sort("window_start", *ORDER)


ORDER = ("carrier", "origin")


def test_each_window_is_written_by_one_version(flights, alice, output, recording, cluster):
    # Version 1 is in January, version 2 is replayed from there, and both get to February's end.
    succeed(actions.deploy(flights, alice))
    wait(lambda: last_window(output) >= datetime(2013, 1, 28, tzinfo=UTC), "version 1 is up")
    savepoint = succeed(request_savepoint(flights, alice)).result["savepoint"]
    version = actions.add_version(flights, alice, "flights_v2.py", recording.code("flights_v2.py"))
    replay, starting = start_replay(Savepoint.objects.get(pk=savepoint), version, alice, 1)
    succeed(starting)
    reached = recording.up_to(3)
    for folder in (output, output.with_name("output@r-1")):
        wait(lambda folder=folder: last_window(folder) >= reached, f"{folder} is there")
    Replay.objects.update(event_time_now=reached, live_event_time=reached)
    replay.refresh_from_db()
    lifecycle.caught_up(replay, timezone.now())

    # Cut at the end of April. When both run a worker is killed, and the input goes on to June.
    killed = []

    def kill(operation):
        if operation.step == "reach" and not killed:
            killed.append(cluster.kill_worker())
            recording.up_to(6)

    succeed(promote_replay(replay, alice, at=T), kill)
    assert killed
    wait(lambda: last_window(output) >= recording.up_to(6), "version 2 is in May")
    assert_written(output, cut(truth(v1), truth(v2)), recording.up_to(6))
    assert flights.runs.get(purpose=Run.Purpose.LIVE, state="RUNNING").version == version

    # Rolled back, version 1 writes those from T on.
    replay.refresh_from_db()
    succeed(rollback_replay(replay, alice))
    until = recording.up_to(7)
    wait(lambda: last_window(output) >= until, "version 1 is in June")
    assert_written(output, truth(v1), until)
    replay.refresh_from_db()
    assert replay.status == Replay.Status.ROLLED_BACK
    succeed(actions.cancel(flights, alice))
