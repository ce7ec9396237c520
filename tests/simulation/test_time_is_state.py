"""Time is state: each split goes on in event time where it was, and a bounded source ends."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import polars as pl
import pytest

from engine.checkpoint.restoring.restore import assign
from engine.elements import MAX_TIME, Barrier, Micros
from engine.operators.sources.source import SplitState
from engine.rest.model.requests import ClaimMode
from engine.testing.attempt import Attempt
from restored_runs import Moment, Run, blueprint, undisturbed

PARALLELISMS = [1, 2, 3]


@cache
def run() -> Run:
    """A run to its end, with a savepoint once the shortest split has ended."""
    run = Run(seed=3)
    while not ended(run.moments, 1):
        run.step()
    run.savepoint()
    return run.to_its_end()


def splits(moment: Moment) -> dict[str, SplitState]:
    entry = moment.manifest.operator("readings")
    assert entry is not None
    return dict(entry.splits)


def ended(moments: list[Moment], count: int) -> list[Moment]:
    """Moments at which so many splits had ended."""
    return [
        moment
        for moment in moments
        if sum(split.finished for split in splits(moment).values()) == count
    ]


@pytest.mark.parametrize("parallelism", PARALLELISMS)
def test_each_split_begins_where_and_when_it_was(parallelism: int) -> None:
    stored = {
        "short": SplitState(6, MAX_TIME, finished=True),
        "long": SplitState(9, Micros(350_000)),
        "middling": SplitState(8, Micros(200_000), idle=True),
    }
    start = ended(run().moments, 1)[0]
    entries = [
        replace(entry, splits=stored) if entry.uid == "readings" else entry
        for entry in start.manifest.operators
    ]
    manifest = replace(start.manifest, operators=tuple(entries))
    again = Run(parallelism, start)
    plan = blueprint(parallelism).plan
    restore = assign(manifest, f"before/{start.folder.partition('/')[2]}", plan)
    attempt = Attempt(blueprint(parallelism), "other", again.world, restore)
    found: dict[str, SplitState] = {}
    for task in attempt.tasks.values():
        if task.is_source:
            task.trigger(Barrier(100), Micros(0))
            found |= task.snapshots[-1].operators[0].splits
    assert found == stored


@pytest.mark.parametrize(
    ("parallelism", "claim"),
    [(1, ClaimMode.NO_CLAIM), (2, ClaimMode.CLAIM), (3, ClaimMode.NO_CLAIM)],
)
@pytest.mark.parametrize("finished", [1, 2, 3])
def test_a_bounded_source_ends_after_a_restore_however_many_splits_had_ended(
    finished: int, parallelism: int, claim: ClaimMode
) -> None:
    start = ended(run().moments, finished)[-1]
    again = Run(parallelism, start, claim).to_its_end()
    assert again.attempt.input_ended
    assert all(map(pl.DataFrame.equals, again.output, undisturbed()))


@pytest.mark.parametrize("parallelism", PARALLELISMS)
def test_a_job_whose_input_had_ended_ends_again_and_writes_nothing(parallelism: int) -> None:
    final = run().moments[-1]
    assert all(split.finished for split in splits(final).values())
    again = Run(parallelism, final).to_its_end()
    written = len(final.committed) + len(final.staged)
    assert len(again.world.output.committed) == written
    assert all(map(pl.DataFrame.equals, again.output, undisturbed()))


def test_operators_go_on_in_event_time_where_they_were() -> None:
    for start in run().moments[:-1]:
        entry = start.manifest.operator("sums")
        assert entry is not None
        tasks = Run(2, start).attempt.tasks.values()
        heads = [task for task in tasks if not task.is_source]
        assert {task.watermark for task in heads} == {entry.watermark}
