"""A job of which nothing fits into memory: windows, waiting rows, timers and values on disk."""

from __future__ import annotations

import functools
import tempfile

import polars as pl
import pytest

import engine as hw
from engine import agg, windows
from engine.stream.recording import recording
from engine.testing.memory import MemorySource
from engine.testing.scenarios import catalogue
from engine.testing.simulation import CALM, simulate

SPLITS = ("x", "y", "z")
TABLES = ("sums", "slid", "kept", "visits")
SECOND = 1_000_000

NO_MEMORY = {
    "state.backend": "rocksdb",
    "state.backend.rocksdb.memory.per-operator": "1mb",
    "state.backend.rocksdb.memory.write-buffer-ratio": "0.5",
    "state.backend.rocksdb.memory.block-cache-ratio": "0.499",
}


def rows(split):
    number = SPLITS.index(split)
    return pl.DataFrame(
        {
            "user": [(7 * n + number) % 11 for n in range(24)],
            "amount": [float(n % 13) + 0.1 for n in range(24)],
            "at": [max(0, n * 70_000 + number * 7 - (n % 4 == 3) * 300_000) for n in range(24)],
        }
    )


class Visits(hw.KeyedProcessFunction):
    """What a user spent, and how often how much, until nothing came for half a second."""

    spent = hw.ValueState(float, default=0.0)
    often = hw.MapState(int, int)
    times = hw.ListState(int, ttl="1s")

    def process(self, row, ctx):
        self.spent.set(self.spent.get() + row["amount"])
        self.often.put(int(row["amount"]), self.often.get(int(row["amount"]), 0) + 1)
        self.times.add(ctx.event_time)
        ctx.register_event_time_timer(ctx.event_time + SECOND // 2)

    def on_timer(self, time, ctx):
        often = " ".join(f"{amount}:{n}" for amount, n in self.often.items())
        recent = len(self.times.get())
        yield {"user": ctx.key[0], "spent": self.spent.get(), "often": often, "recent": recent}


def job(parallelism, output, settings):
    with recording(settings):
        env = hw.Environment("spending", checkpoint_interval=None)
    env.parallelism, env.max_parallelism = parallelism, 12
    source = MemorySource({split: rows(split) for split in SPLITS}, every=20_000)
    times = hw.bounded_out_of_orderness("200ms", column="at")
    by_user = env.source(source, uid="rows", watermarks=times).key_by("user")
    spent = {"spent": agg.sum("amount"), "n": agg.count(), "most": agg.max("amount")}
    sums = by_user.window(windows.tumbling("1s")).agg(**spent, uid="sums")
    sums.sink(output.sink("sums"), uid="out")
    sliding = by_user.window(windows.sliding("1s", "500ms"))
    slid = sliding.allowed_lateness("400ms", every="200ms").agg(**spent, uid="slid")
    slid.sink(output.sink("slid"), uid="slid-out")
    kept = by_user.window(windows.tumbling("1s")).apply(
        lambda rows, ctx: rows.select(last=pl.col("amount").max(), n=pl.len().cast(pl.Int64)),
        schema={"last": float, "n": int},
        uid="kept",
    )
    kept.sink(output.sink("kept"), uid="kept-out")
    schema = {"user": int, "spent": float, "often": str, "recent": int}
    visits = by_user.process(Visits(), schema=schema, uid="visits")
    visits.sink(output.sink("visits"), uid="visits-out")
    return env.graph()


def tables(history):
    return [history.output.table(name) for name in TABLES]


@functools.cache
def in_memory():
    return tables(simulate(functools.partial(job, settings={}), seed=0, chaos=CALM))


def test_there_is_something_to_compare():
    sums, slid, kept, visits = in_memory()
    assert kept.height == sums.height
    assert sums.height > 15
    assert slid.height > 30
    assert visits.height > 30


@pytest.mark.parametrize("seed", range(2))
def test_state_on_disk_gives_what_state_in_memory_gives(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = tables(simulate(functools.partial(job, settings=NO_MEMORY), seed))
    for table, wanted in zip(found, in_memory(), strict=True):
        assert table.equals(wanted), f"seed {seed} gave another output"


@pytest.mark.parametrize("name", ["joins", "sliding", "triggers"])
def test_scenarios_give_the_same_when_nothing_fits_into_memory(name, tmp_path, monkeypatch):
    scenario = catalogue()[name]
    assert all(table.height for table in scenario.undisturbed)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    settings = "; ".join(f"{key}={value}" for key, value in NO_MEMORY.items())
    monkeypatch.setenv("HEADWATER_SETTINGS", settings)
    # Built anew: settings are read when a job is built.
    assert scenario.differs(simulate(scenario.build, 1)) is None
