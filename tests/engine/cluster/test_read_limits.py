"""How fast the sources of a running job may read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.cluster.jobs.read_limits import READ_LIMIT, Limit, ReadLimits
from engine.errors import ConfigError, StorageError
from engine.runtime import control
from job_stage import PLAN, VERTEX, Stage, no_room


@pytest.fixture
async def stage(tmp_path: Path):
    stage = Stage(tmp_path)
    stage.master.start()
    yield stage
    stage.store.close()


async def test_a_read_limit_reaches_running_workers_and_those_of_every_later_attempt(
    stage: Stage,
) -> None:
    workers = await stage.running()
    stage.master.limit_reading("numbers", Limit(500))
    told = [control.ReadLimit(VERTEX, 500, 2)]
    assert [worker.of(control.ReadLimit) for worker in workers] == [told, told]
    workers[1].say(control.EndOfInputReached(VERTEX, 1))
    assert workers[0].of(control.ReadLimit)[1:] == [control.ReadLimit(VERTEX, 500, 1)]
    for worker in workers:
        stage.gone(worker)
    again = await stage.workers(attempt=2)
    assert [type(message) for message in again[0].got] == [control.Prepare, control.ReadLimit]
    stage.master.limit_reading(None, Limit())
    assert again[0].of(control.ReadLimit)[-1] == control.ReadLimit(VERTEX, None, 2)


async def test_a_read_limit_outlives_the_job_manager(stage: Stage) -> None:
    stage.master.limit_reading(None, Limit(2.5))
    (limit,) = stage.new_master().read_limits.limits()
    assert limit.rows_per_second == 2.5


@pytest.mark.parametrize("setting", ["fast", "-1", "inf", "control=5", "numbers=1=2=x", "0x", "x"])
def test_a_read_limit_that_is_none_is_refused_when_the_job_is_submitted(setting: str) -> None:
    with pytest.raises(ConfigError):
        ReadLimits(PLAN, {READ_LIMIT: setting})


def test_a_read_limit_of_one_source_or_of_each_may_be_a_setting() -> None:
    for setting in ("5", "numbers=5", " numbers = 5 ;"):
        (limit,) = ReadLimits(PLAN, {READ_LIMIT: setting}).limits()
        assert limit.rows_per_second == 5


def test_a_read_limit_may_be_a_multiple_of_real_time_where_there_is_event_time() -> None:
    with pytest.raises(ConfigError, match="the job's sources have no event time"):
        ReadLimits(PLAN, {READ_LIMIT: "60x"})
    (vertex,) = PLAN.vertices
    head = replace(vertex.operators[0], description={"watermarks": "monotonic"})
    timed = replace(PLAN, vertices=(replace(vertex, operators=(head,)),))
    (limit,) = ReadLimits(timed, {READ_LIMIT: "numbers=60x"}).limits()
    assert (limit.rows_per_second, limit.times_real_time) == (None, 60)


async def test_a_change_that_cannot_be_stored_is_refused_and_changes_nothing(stage: Stage) -> None:
    workers = await stage.running()
    with no_room(stage.store), pytest.raises(StorageError):
        stage.master.limit_reading("numbers", Limit(500))
    assert workers[0].of(control.ReadLimit) == []
    assert [limit.rows_per_second for limit in stage.master.read_limits.limits()] == [None]
