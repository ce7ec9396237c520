"""Checks of runs against sums per slice and key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from random import Random
from typing import cast

import polars as pl

from engine.elements import KEY_GROUP, Micros
from engine.state.contract import SLICE_END, StateDescriptor, StateKind
from engine.state.handles import RunsHandle
from engine.state.schema import table_schema
from engine.testing.state_checks.shared import ALL, GROUPS, STEPS, Make, assert_equal, check_halves

_RUNS = StateDescriptor("runs", StateKind.RUNS, {"id": pl.Int64()}, {"n": pl.Int64()})

Slices = Counter[tuple[int, int]]
"""(slice end, id) -> the sum of what was added."""


def check_runs(make: Make, restore_with: Make, random: Random) -> None:
    """A slice gives each key once, with the sum of all its runs."""

    def merge(run: pl.DataFrame, within: Iterable[str], same: Iterable[str]) -> pl.DataFrame:
        firsts = [pl.col(name).first() for name in same]
        return run.group_by(list(within)).agg(*firsts, pl.col("n").sum())

    model: Slices = Counter()
    with closing(make(ALL)) as backend:
        handle = cast("RunsHandle", backend.state(_RUNS))
        handle.merge_with(merge)
        for step in range(3 * STEPS):
            rows = [(10 * random.randrange(5), random.randrange(40)) for _ in range(step % 20)]
            handle.append(_run_of(Counter(rows)))
            model.update(rows)
            if random.random() < 0.2:
                _use_runs(handle, model, random)
            ends = sorted({end for end, _ in model})
            assert list(handle.slice_ends()) == ends, f"slices {handle.slice_ends()}, not {ends}"
            if step == STEPS:
                frozen, again, before = *backend.freeze(), *backend.freeze(), Counter(model)
        _take_runs(handle, model, 100)
        assert handle.take_until(Micros(100)) is None, "slices left twice"
    wanted = _run_of(before).sort(KEY_GROUP, "id", SLICE_END)
    assert_equal(frozen.table(), wanted, "frozen runs")
    assert_equal(pl.concat(again.tables()), wanted, "frozen runs in parts")
    check_halves(restore_with, _RUNS, wanted)


def _use_runs(handle: RunsHandle, model: Slices, random: Random) -> None:
    """Read, drop or take some slices."""
    after, until = sorted(random.choices(range(-1, 45), k=2))
    read = handle.read(after, until)
    wanted = Counter({at: n for at, n in model.items() if after < at[0] <= until})
    assert _sums(read) == wanted, f"runs of slices after {after} up to {until} are not all there"
    if random.random() < 0.5:
        _take_runs(handle, model, after)
    else:
        handle.drop_until(after)
        _forget(model, after)


def _take_runs(handle: RunsHandle, model: Slices, time: int) -> None:
    parts = list(handle.take_parts(Micros(time)))
    rows = [row for part in parts for row in part.select(SLICE_END, "id").rows()]
    assert len(rows) == len(set(rows)), "a key came twice from one slice"
    firsts = [min(part.get_column(SLICE_END).to_list()) for part in parts]
    assert firsts == sorted(firsts), "slices came out of order"
    wanted = Counter({at: n for at, n in model.items() if at[0] <= time})
    assert _sums(parts) == wanted, f"slices up to {time} gave other sums"
    _forget(model, time)


def _forget(model: Slices, time: int) -> None:
    for at in [at for at in model if at[0] <= time]:
        del model[at]


def _run_of(sums: Slices) -> pl.DataFrame:
    rows = [(id_ % GROUPS, id_, end, n) for (end, id_), n in sums.items()]
    return pl.DataFrame(rows, schema=table_schema(_RUNS), orient="row")


def _sums(runs: Iterable[pl.DataFrame]) -> Slices:
    sums: Slices = Counter()
    for run in runs:
        for end, id_, n in run.select(SLICE_END, "id", "n").iter_rows():
            sums[end, id_] += n
    return sums
