"""Months of flights replayed with corrected code on a real engine: compared, promoted, rolled back.

version 1 live ── savepoint in March ── version 2 from there ── compare ── promote ── roll back
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from django.utils import timezone
from polars.testing import assert_frame_equal

from controlplane.backends.models import Cluster
from controlplane.backends.registry import client_for
from controlplane.jobs import actions
from controlplane.jobs.models import Run
from controlplane.replay import lifecycle
from controlplane.replay.actions import (
    accept_difference,
    promote_replay,
    rollback_replay,
    start_replay,
)
from controlplane.replay.comparison.found import Verdict
from controlplane.replay.comparison.keeping import count
from controlplane.replay.comparison.looking import AT_LEAST, look_at_all
from controlplane.replay.models import Difference, Replay, ReplayOutput
from controlplane.snapshots.actions import request_savepoint
from controlplane.snapshots.models import Savepoint
from engine.testing.cluster import LocalCluster
from examples.flights_job import cut_of
from examples.truth import KEYS, read_output, truth, truth_from, v1, v2
from on_a_real_engine import last_window, succeed, wait
from recorded_flights import RecordedFlights

pytestmark = pytest.mark.integration


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


@pytest.fixture
def recording(tmp_path):
    return RecordedFlights(tmp_path)


@pytest.fixture
def flights(team, alice, tmp_path, output, settings, recording):
    settings.HEADWATER_SAVEPOINTS = tmp_path / "savepoints"
    with LocalCluster(tmp_path / "engine", task_managers=2, slots=2) as cluster:
        embedded = Cluster.objects.create(name="embedded", url=cluster.url)
        chosen = {
            "parallelism": 1,
            "checkpoint_interval_ms": 500,
            "arguments": ["--no-points", "--output", str(output)],
        }
        code = recording.code("flights.py")
        yield actions.create_job(
            "flights", team, alice, "flights.py", code, chosen, cluster=embedded
        )


def expected_after(savepoint: Savepoint) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The year as version 1 has it, and as it must be with version 2 from the savepoint on."""
    cut, old = cut_of(Path(savepoint.location)), truth(v1)
    corrected = truth_from(v1, v2, cut)
    both = pl.concat([old.filter(pl.col("window_end") <= cut.watermark), corrected])
    return old, both.sort("window_start", *KEYS)


def assert_written(folder: Path, expected: pl.DataFrame) -> None:
    """Every closed window, each once."""
    written = read_output(folder).with_columns(
        pl.col("window_start", "window_end").cast(expected.schema["window_end"])
    )
    closed = pl.col("window_end") <= written["window_end"].max() - timedelta(days=1)
    assert_frame_equal(
        written.filter(closed), expected.select(written.columns).filter(closed), check_exact=True
    )


def test_the_output_is_that_of_the_version_that_counts(flights, alice, output, recording):
    # Version 1 runs, and a savepoint is taken in March.
    succeed(actions.deploy(flights, alice))
    reached = recording.up_to(4)
    wait(lambda: last_window(output) >= reached, "version 1 is in March")
    savepoint = Savepoint.objects.get(
        pk=succeed(request_savepoint(flights, alice)).result["savepoint"]
    )
    assert savepoint.event_time.month == 3

    # Version 2 is replayed from there to December.
    code = recording.code("flights_v2.py")
    version = actions.add_version(flights, alice, "flights_v2.py", code)
    replay, starting = start_replay(savepoint, version, alice, 1)
    succeed(starting)
    december = recording.up_to(13)
    for folder in (output, output.with_name("output@r-1")):
        wait(lambda folder=folder: last_window(folder) >= december, f"{folder} is in December")
    replay.refresh_from_db()
    lifecycle.caught_up(replay, timezone.now())

    # Compared: exactly the rows that the bug affected.
    old, corrected = expected_after(savepoint)
    compare(replay)
    compared = ReplayOutput.objects.get()
    assert (compared.why_not, compared.trouble) == ("", "")
    wanted = differing(old, corrected, compared)
    assert count(compared, Verdict.CHANGED) == wanted.height > 1_000
    assert count(compared, Verdict.ONLY_OLD) == count(compared, Verdict.ONLY_NEW) == 0
    by_fields = wanted.group_by("fields").len()
    told = {tuple(one.fields): one.rows for one in Difference.objects.all()}
    assert told == {tuple(fields.split(",")): rows for fields, rows in by_fields.iter_rows()}

    # A bounded one ends by itself, with every window up to its end.
    july = datetime(2013, 7, 1, tzinfo=UTC)
    bounded, starting = start_replay(savepoint, version, alice, 1, until=july)
    succeed(starting)
    bounded.refresh_from_db()
    engine = client_for(flights.cluster)
    wait(lambda: engine.job(bounded.run.engine_job_id).state == "FINISHED", "it ends by itself")
    between = (pl.col("window_end") > cut_of(Path(savepoint.location)).watermark) & (
        pl.col("window_end") <= july
    )
    expected = corrected.filter(between)
    found = read_output(output.with_name("output@r-2")).cast(dict(expected.schema))
    assert_frame_equal(found.select(expected.columns), expected, check_exact=True)

    # Promoted: each window once, from the version that counts.
    for difference in Difference.objects.all():
        accept_difference(difference, alice)
    promoted = succeed(promote_replay(replay, alice))
    assert "no version ran for" in promoted.text
    assert_written(output, corrected)
    live = flights.runs.filter(purpose=Run.Purpose.LIVE).first()
    assert live.version == version
    assert client_for(flights.cluster).job(live.engine_job_id).is_up

    # Rolled back: version 1's, as if nothing had been.
    replay.refresh_from_db()
    succeed(rollback_replay(replay, alice))
    assert_written(output, old)
    assert flights.runs.filter(purpose=Run.Purpose.LIVE).first().version.number == 1
    replay.refresh_from_db()
    assert replay.status == Replay.Status.ROLLED_BACK
    succeed(actions.cancel(flights, alice))


def compare(replay: Replay) -> None:
    """Three looks, as the worker has them."""
    for number in range(3):
        look_at_all(timezone.now() + number * AT_LEAST)
        time.sleep(0.5)


def differing(old: pl.DataFrame, new: pl.DataFrame, compared: ReplayOutput) -> pl.DataFrame:
    """The windows that were compared and differ, each with the names of the fields that do."""
    values = ["flights", "cancelled", "mean_delay", "max_delay"]
    since = compared.replay.event_time_start
    until = compared.compared_to
    both = old.join(new, on=["window_start", "window_end", *KEYS], suffix="_new", nulls_equal=True)
    names = [
        pl.when(pl.col(name).ne_missing(pl.col(f"{name}_new"))).then(pl.lit(name))
        for name in values
    ]
    return (
        both.with_columns(pl.concat_str(names, separator=",", ignore_nulls=True).alias("fields"))
        .filter(pl.col("fields") != "")
        .filter((pl.col("window_end") > since) & (pl.col("window_end") <= until))
    )
