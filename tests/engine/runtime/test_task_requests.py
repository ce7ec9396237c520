"""A subtask whose head waits for answers: what its barriers and watermarks do meanwhile."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest

from engine.elements import (
    MAX_TIME,
    AfterBarrier,
    Barrier,
    Batch,
    EndOfInput,
    Watermark,
)
from engine.graph.jobgraph import (
    ChainedOperator,
    JobEdge,
    JobGraph,
    JobVertex,
    Partitioning,
    TaskId,
)
from engine.operators.asking.map_async import Asking, MapAsync
from engine.operators.sink import SinkOperator
from engine.operators.sources.source import SourceOperator
from engine.runtime.task import Task
from engine.runtime.wiring import wire
from engine.testing.answers import answered
from engine.testing.memory import MemorySource, OutputTables

SCHEMA = {"n": pl.Int64()}


async def same(row):
    return row


@pytest.fixture
def task():
    rows = pl.DataFrame(schema=SCHEMA)
    source = ChainedOperator("source", "source", SourceOperator(MemorySource({"all": rows})))
    asking = Asking(capacity=2)
    waits = ChainedOperator("waits", "waits", MapAsync(same, "same", SCHEMA, SCHEMA, asking))
    sink = ChainedOperator("sink", "sink", SinkOperator(OutputTables().sink("out")))
    vertices = tuple(JobVertex(each.uid, each.uid, 1, (each,)) for each in (source, waits, sink))
    edges = tuple(
        JobEdge(before.id, 0, after.id, Partitioning.FORWARD)
        for before, after in pairwise(vertices)
    )
    specs = wire(JobGraph("waits", 128, vertices, edges), "job", "attempt").specs
    task = Task(specs[TaskId("waits", 0)])
    task.deliver(0, Batch(pl.DataFrame({"n": [1]}, SCHEMA)), now=0)
    return task


def answer(task):
    requests = list(task.requests)
    task.requests.clear()
    task.answer(answered(requests), now=0)


def left(task):
    """What left the task since the last look."""
    elements = [element for _, element in task.outbox]
    task.outbox.clear()
    return [
        element.frame["n"].to_list() if isinstance(element, Batch) else element
        for element in elements
    ]


def in_flight(task):
    (snapshot,) = task.snapshots
    return snapshot.operators[0].states[0].table()["n"].to_list()


def test_watermarks_and_the_end_wait_for_rows_but_barriers_do_not(task):
    task.deliver(0, Watermark(7), now=0)
    task.deliver(0, Barrier(1), now=0)
    assert left(task) == [Barrier(1)]
    assert in_flight(task) == [1]
    task.deliver(0, Watermark(MAX_TIME), now=0)
    task.deliver(0, EndOfInput(), now=0)
    assert not task.end_of_input
    answer(task)
    assert left(task) == [[1], Watermark(MAX_TIME), EndOfInput()]
    assert task.end_of_input


def test_no_row_leaves_behind_the_barrier_of_a_stop_unless_it_is_aborted(task):
    stop = Barrier(1, then=AfterBarrier.STOP)
    task.deliver(0, stop, now=0)
    answer(task)
    assert left(task) == [stop]
    assert in_flight(task) == [1]
    task.notify_aborted(1)
    assert left(task) == [[1]]


def test_the_barrier_of_a_drain_waits_for_every_row(task):
    drain = Barrier(1, then=AfterBarrier.DRAIN)
    task.deliver(0, Watermark(MAX_TIME), now=0)
    task.deliver(0, drain, now=0)
    assert not task.snapshots
    answer(task)
    assert left(task) == [[1], Watermark(MAX_TIME), drain]
    assert in_flight(task) == []


def test_a_drain_that_is_aborted_leaves_nothing_behind(task):
    task.deliver(0, Barrier(1, then=AfterBarrier.DRAIN), now=0)
    task.notify_aborted(1)
    answer(task)
    assert left(task) == [[1]]
    assert not task.snapshots


def test_no_row_is_taken_while_there_is_no_room(task):
    assert not task.blocked(0)
    task.deliver(0, Batch(pl.DataFrame({"n": [2]}, SCHEMA)), now=0)
    assert task.blocked(0)
    answer(task)
    assert not task.blocked(0)
