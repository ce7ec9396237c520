"""What a worker reports of a subtask."""

from __future__ import annotations

import polars as pl
import pytest

from engine.elements import Batch, Micros, Watermark
from engine.rest.model.metrics import METRICS, Scope
from engine.runtime.metrics import Queues
from engine.runtime.task import Task
from engine.runtime.wiring import wire
from engine.runtime.worker_metrics import MetricReader
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


def test_what_waits_is_counted_in_elements_and_bytes():
    batch = Batch(pl.DataFrame({"n": pl.Series([1, 2], dtype=pl.Int64)}))
    queues = Queues.of([batch, Watermark(Micros(1)), batch], [batch])
    assert queues == Queues(3, 32, 1, 16)
