"""What a worker reports of a subtask."""

from __future__ import annotations

from collections import deque

import polars as pl
import pytest

from engine.elements import AfterBarrier, Barrier, Batch, Micros, Watermark
from engine.rest.model.metrics import METRICS, Scope
from engine.runtime.metrics import Queues
from engine.runtime.quantiles import histogram
from engine.runtime.task import Task
from engine.runtime.wiring import Wiring, wire
from engine.runtime.worker_metrics import MetricReader, latencies_of
from engine.runtime.worker_occupancy import Occupancy
from engine.stream import Environment
from engine.testing.memory import MemorySource, OutputTables
from engine.watermarks import monotonic


def read(now: int = 5_000_000) -> dict[str, float]:
    """The numbers of a source that has read three rows, two of them in the same chain's sink."""
    env = Environment("job", checkpoint_interval=None)
    frame = pl.DataFrame({"t": [1_000_000, 2_000_000, 3_000_000]})
    rows = env.source(MemorySource({"a": frame}), uid="rows", watermarks=monotonic("t"))
    rows.filter(pl.col("t") > 1_000_000, uid="late").sink(OutputTables().sink("x"), uid="out")
    (spec,) = wire(env.graph(), "j", "a").specs.values()
    task = Task(spec)
    task.poll(Micros(now), 10)
    reader = MetricReader(spec, Occupancy(0.0), 0.0)
    return reader.read(task.metrics, Queues(), now=2.0)


def test_every_number_is_a_metric_that_is_told_of_somewhere():
    for name in read():
        own = name.rpartition(".")[2]
        known = (Scope.TASK, name) in METRICS
        counted = (Scope.OPERATOR, own) in METRICS or own.endswith("PerSecond")
        assert known or counted, name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows.numRecordsOut", 3),
        ("late.numRecordsOut", 2),
        ("out.numRecordsIn", 2),
        ("rows.numRecordsOutPerSecond", 1.5),
        ("rows.currentFetchEventTimeLag", 2_000),
        ("rows.pendingRecords", 0),
        ("busyTimeMsPerSecond", 1000),
    ],
)
def test_numbers_have_flinks_names_and_units(name, value):
    assert read()[name] == value


def spread_job() -> Wiring:
    """A source in two subtasks, dealt out to two subtasks, and on to three."""
    env = Environment("job", checkpoint_interval=None)
    rows = env.source(MemorySource({"a": pl.DataFrame({"n": [1]})}), uid="rows", parallelism=2)
    middle = rows.rebalance().filter(pl.col("n") > 0, uid="middle", parallelism=2)
    middle.rebalance().sink(OutputTables().sink("x"), uid="end", parallelism=3)
    return wire(env.graph(), "j", "a")


def test_a_latency_marker_goes_along_one_channel_of_each_edge_and_leaves_its_age_behind():
    specs = {spec.vertex.operators[0].uid: spec for spec in spread_job().specs.values()}
    source, middle, end = (Task(specs[uid]) for uid in ("rows", "middle", "end"))
    source.mark(Micros(1_000_000), number=7)
    ((channel, marker),) = source.outbox
    assert channel == 7 % 2
    middle.deliver(0, marker, Micros(1_030_000))
    ((channel, marker),) = middle.outbox
    assert channel == 7 % 3
    end.deliver(0, marker, Micros(1_250_000))
    assert not end.outbox
    (latency,) = latencies_of(end.metrics).values()
    assert (latency["count"], latency["p99"], latency["stddev"]) == (1, 250, 0)
    assert middle.metrics.latencies == {source.spec.vertex.id: deque([30_000])}


def test_no_marker_follows_the_last_barrier():
    source = Task(next(iter(spread_job().specs.values())))
    source.trigger(Barrier(1, then=AfterBarrier.STOP), Micros(1))
    sent = len(source.outbox)
    source.mark(Micros(2), number=1)
    assert len(source.outbox) == sent


def test_a_histogram_is_flinks():
    found = histogram([10.0, 30.0, 20.0, 40.0])
    assert found["median"] == 25.0
    assert (found["p75"], found["p999"], found["mean"]) == (37.5, 40.0, 25.0)
    assert found["stddev"] == pytest.approx(12.909944)


def test_what_waits_is_counted_in_elements_and_bytes():
    batch = Batch(pl.DataFrame({"n": pl.Series([1, 2], dtype=pl.Int64)}))
    queues = Queues.of([batch, Watermark(Micros(1)), batch], [batch])
    assert queues == Queues(3, 32, 1, 16)
