"""Every checkpoint after each kind of restore is itself restorable, to the same output."""

from __future__ import annotations

from functools import cache

import polars as pl
import pytest

from engine.elements import AfterBarrier, SnapshotKind
from engine.rest.model.requests import ClaimMode
from restored_runs import Moment, Run, undisturbed

MODES = list(ClaimMode)


def same(found: list[pl.DataFrame]) -> bool:
    return all(map(pl.DataFrame.equals, found, undisturbed()))


@cache
def moments() -> list[Moment]:
    """Snapshots of a run: checkpoints, a savepoint in the midst of them, the final checkpoint."""
    run = Run()
    while len(run.moments) < 2:
        run.step()
    run.savepoint()
    run.to_its_end()
    assert same(run.output)
    assert [moment.is_recoverable for moment in run.moments].count(False) == 1
    assert any(len(layers) > 1 for layers in map(layers_of, run.moments))
    return run.moments


def layers_of(moment: Moment) -> set[int]:
    """The checkpoints that one builds on, and itself: numbers of its layers."""
    return {file.layer.number for file in moment.manifest.files if file.layer is not None}


def latest(found: list[Moment]) -> list[Moment]:
    """Those that no newer checkpoint had overtaken: its output would be written twice."""
    newest, kept = 0, []
    for moment in found:
        if moment.manifest.checkpoint_id > newest:
            kept.append(moment)
        if moment.is_recoverable:
            newest = max(newest, moment.manifest.checkpoint_id)
    return kept


@pytest.mark.parametrize("claim", MODES)
@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_every_snapshot_after_a_restore_from_any_snapshot_can_be_restored(
    claim: ClaimMode, parallelism: int
) -> None:
    tried = 0
    for start in latest(moments())[parallelism - 1 :: 2]:
        run = Run(parallelism, start, claim, seed=parallelism)
        if start.manifest.kind is SnapshotKind.SAVEPOINT:
            run.savepoint()
        assert same(run.to_its_end().output)
        for again in latest(run.moments)[:2]:
            tried += 1
            assert same(Run(4 - parallelism, again, claim).to_its_end().output)
    assert tried > 1


@pytest.mark.parametrize("claim", MODES)
@pytest.mark.parametrize("begun", [0, 1])
@pytest.mark.parametrize("steps", [0, 20])
def test_a_crash_before_the_first_checkpoint_goes_back_to_where_the_job_began(
    claim: ClaimMode, begun: int, steps: int
) -> None:
    for start in latest(moments())[1:3]:
        run = Run(2, start, claim)
        while run.world.logs[-1].history().counts.total < begun:
            run.step()
        for _ in range(steps):
            run.step()
        assert run.moments == []
        run.crash()
        assert same(run.to_its_end().output)


@pytest.mark.parametrize("claim", MODES)
def test_two_crashes_in_a_row_before_the_first_checkpoint_change_nothing(claim: ClaimMode) -> None:
    run = Run(3, latest(moments())[1], claim)
    for _ in range(2):
        for _ in range(20):
            run.step()
        run.crash()
    assert same(run.to_its_end().output)


def test_a_job_stopped_with_a_savepoint_goes_on_from_it_with_nothing_twice() -> None:
    run = Run(2)
    while len(run.moments) < 2:
        run.step()
    run.savepoint(AfterBarrier.STOP)
    run.to_its_end()
    stopped = run.moments[-1]
    assert stopped.is_recoverable
    assert same(Run(3, stopped).to_its_end().output)
