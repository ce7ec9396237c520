"""Requests on a real event loop: beside a thread, and beside the subtask that makes them."""

from __future__ import annotations

import asyncio
import queue
import threading

import polars as pl
import pytest

from engine.graph.jobgraph import (
    ChainedOperator,
    JobEdge,
    JobGraph,
    JobVertex,
    Partitioning,
    TaskId,
)
from engine.operators.asking.map_async import Asking, MapAsync
from engine.operators.asking.requests import Request
from engine.operators.sink import SinkOperator
from engine.operators.sources.source import SourceOperator
from engine.runtime.channels import Endpoint, LocalChannel
from engine.runtime.wiring import wire
from engine.runtime.worker_exchange import Ports
from engine.runtime.worker_requests import RequestLoop
from engine.runtime.worker_subtask import Subtask
from engine.testing.cluster import PATIENCE_S
from engine.testing.memory import MemorySource, OutputTables


class Asked:
    """A loop, and the answers that it gives."""

    def __init__(self):
        self._news: queue.Queue = queue.Queue()
        self.loop = RequestLoop(lambda: self._news.put(None), "requests")

    def answers(self, count):
        found = []
        while len(found) < count:
            self._news.get(timeout=PATIENCE_S)
            found += self.loop.take()
        return {answer.number: answer for answer in found}


@pytest.fixture
def asked():
    asked = Asked()
    yield asked
    asked.loop.close()


async def seven():
    await asyncio.sleep(0)
    return 7


async def forever():
    await asyncio.Event().wait()


async def broken():
    raise ValueError("no")


async def leaving():
    raise SystemExit(5)


async def cancelled():
    raise asyncio.CancelledError


class Panic(BaseException):
    """What libraries in other languages raise: no Exception."""


async def panicking():
    raise Panic


async def interrupted():
    raise KeyboardInterrupt


@pytest.mark.parametrize("error", [broken, leaving, cancelled, panicking, interrupted])
def test_whatever_a_coroutine_raises_is_an_answer_and_the_loop_goes_on(asked, error):
    asked.loop.start([Request(1, error), Request(2, seven)])
    found = asked.answers(2)
    assert found[1].error is not None
    assert not found[1].timed_out
    assert found[2].value == 7


def test_a_coroutine_that_takes_too_long_is_cancelled_and_said_to_be_late(asked):
    asked.loop.start([Request(1, forever, timeout=1_000)])
    assert asked.answers(1)[1].timed_out


def test_a_coroutine_that_will_not_be_cancelled_is_answered_for_all_the_same(asked):
    let_go = threading.Event()

    async def stubborn():
        while not let_go.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    asked.loop.start([Request(1, stubborn, timeout=1_000), Request(2, seven, None)])
    answers = asked.answers(2)
    let_go.set()
    assert answers[1].timed_out
    assert answers[2].value == 7


def test_what_runs_is_cancelled_at_the_end():
    ended = threading.Event()

    async def waits():
        try:
            await forever()
        finally:
            ended.set()

    asked = Asked()
    asked.loop.start([Request(1, waits), Request(2, seven)])
    asked.answers(1)
    asked.loop.close()
    assert ended.is_set()


class Heard:
    """The end of the input, or the failure, of each task."""

    def __init__(self):
        self.ends: queue.Queue = queue.Queue()

    def snapshot_taken(self, snapshot, sync_ms):
        pass

    def input_ended(self, task):
        self.ends.put(task)

    def finished(self, task):
        pass

    def failed(self, spec, operator, error):
        self.ends.put((operator, error))


ROWS = pl.DataFrame({"n": range(50)})
SCHEMA = {"n": pl.Int64()}


async def negated(row):
    await asyncio.sleep(0.001 * (row["n"] % 3))
    return {"n": -row["n"]}


async def raising(row):
    raise ValueError("never")


def run(function, **asking):
    """A source, an asynchronous function and a sink on threads of their own."""
    heard, output = Heard(), OutputTables()
    operators = [
        SourceOperator(MemorySource({"all": ROWS})),
        MapAsync(function, "f", SCHEMA, SCHEMA, Asking(**asking)),
        SinkOperator(output.sink("out")),
    ]
    vertices = [
        JobVertex(str(number), str(number), 1, (ChainedOperator(str(number), "", operator),))
        for number, operator in enumerate(operators)
    ]
    edges = [JobEdge(str(at), 0, str(at + 1), Partitioning.FORWARD) for at in range(2)]
    specs = wire(JobGraph("async", 128, tuple(vertices), tuple(edges)), "job", "attempt").specs
    tasks = [Subtask(specs[TaskId(str(at), 0)], heard, 7) for at in range(3)]
    channels = [
        LocalChannel(Endpoint(tasks[at].mailbox, 0), Endpoint(tasks[at + 1].mailbox, 0))
        for at in range(2)
    ]
    for task in tasks:
        task.start(None)
        assert task.ready.wait(PATIENCE_S)
    tasks[0].run(Ports(outputs={0: channels[0]}))
    tasks[1].run(Ports(inputs={0: channels[0]}, outputs={0: channels[1]}))
    tasks[2].run(Ports(inputs={0: channels[1]}))
    try:
        ends = [heard.ends.get(timeout=PATIENCE_S)]
        while isinstance(ends[-1], TaskId) and len(ends) < 3:
            ends.append(heard.ends.get(timeout=PATIENCE_S))
        return ends, tasks[2]._task
    finally:
        for task in tasks:
            task.stop()
            task.join(PATIENCE_S)


@pytest.mark.parametrize("ordered", [True, False])
def test_a_subtask_asks_beside_its_thread_and_ends_with_the_last_answer(ordered):
    ends, sink = run(negated, ordered=ordered, capacity=8)
    assert [end.vertex for end in ends] == ["0", "1", "2"]
    assert sink.metrics.operators[0].rows_in == 50


def test_a_function_that_raises_fails_its_operator_with_its_traceback():
    ends, _ = run(raising)
    operator, error = ends[-1]
    assert operator == "1"
    assert "map_async 'f' raised ValueError: never" in str(error)
    assert error.__cause__.__traceback__ is not None
