"""A function with timers on keys that lie in several splits: any history, the same output."""

from __future__ import annotations

import functools
import tempfile

import polars as pl
import pytest

import engine as hw
from engine.testing.memory import MemorySource
from engine.testing.simulation import CALM, simulate

SPLITS = ("x", "y", "z")
TABLES = ("visits", "long", "late")


def clicks(split):
    """Three streams with the same users, at times of their own: every row has another time."""
    number = SPLITS.index(split)
    rows = [(row * 90_000 + number * 7 - (row % 4 == 3) * 350_000, row) for row in range(40)]
    return pl.DataFrame(
        {
            "user": ["ann" if row % 3 else "bob" for _, row in rows],
            "page": [f"{split}{row % 5}" for _, row in rows],
            "at": [max(number, time) + (row > 20) * 3_000_000 for time, row in rows],
        }
    )


class Visits(hw.KeyedProcessFunction):
    """One row per visit, which ends when a user did nothing for a second."""

    side_outputs = {"long": {"user": str, "pages": int}}
    pages = hw.ListState(str)
    counts = hw.MapState(str, int, ttl="2s")
    last = hw.ValueState(int)

    def process(self, row, ctx):
        if self.last.get() is not None:
            ctx.delete_event_time_timer(self.last.get() + 1_000_000)
        self.last.set(ctx.event_time)
        ctx.register_event_time_timer(ctx.event_time + 1_000_000)
        self.pages.add(row["page"])
        self.counts.put(row["page"], self.counts.get(row["page"], 0) + 1)
        if len(self.pages.get()) > 20:
            ctx.emit({"user": row["user"], "pages": len(self.pages.get())}, to="long")

    def on_timer(self, time, ctx):
        pages = " ".join(self.pages.get())
        counts = " ".join(f"{page}:{count}" for page, count in self.counts.items())
        yield {"user": ctx.key[0], "pages": pages, "counts": counts}
        self.pages.clear()
        self.last.clear()


def job(parallelism, output, state_backend="memory"):
    env = hw.Environment(
        "clicks",
        parallelism=parallelism,
        max_parallelism=12,
        checkpoint_interval=None,
        state_backend=state_backend,
    )
    source = MemorySource({split: clicks(split) for split in SPLITS}, every=20_000)
    times = hw.bounded_out_of_orderness("200ms", column="at")
    visits = (
        env.source(source, uid="clicks", watermarks=times)
        .key_by("user")
        .process(Visits(), schema={"user": str, "pages": str, "counts": str}, uid="visits")
    )
    visits.sink(output.sink("visits"), uid="out")
    visits.side_output("long").sink(output.sink("long"), uid="long")
    visits.side_output("late").sink(output.sink("late"), uid="late")
    return env.graph()


@functools.cache
def undisturbed():
    return tables(simulate(job, seed=0, chaos=CALM))


def tables(history):
    return [history.output.table(name) for name in TABLES]


def test_the_undisturbed_run_gives_something_to_compare():
    visits, long, late = undisturbed()
    assert visits.height == 4
    assert long.height > 10
    assert late.height > 5


@pytest.mark.parametrize("seed", range(8))
def test_any_history_gives_the_same_output(seed):
    found = tables(simulate(job, seed))
    for table, wanted in zip(found, undisturbed(), strict=True):
        assert table.equals(wanted), f"seed {seed} gave another output"


@pytest.mark.parametrize("seed", range(2))
def test_state_on_disk_gives_the_same_output(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = tables(simulate(functools.partial(job, state_backend="rocksdb"), seed))
    for table, wanted in zip(found, undisturbed(), strict=True):
        assert table.equals(wanted), f"seed {seed} gave another output"
