"""Subtasks on real threads: a source and a sink with one local channel between them."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import polars as pl
import pytest

from engine.clock import monotonic
from engine.connectors.contract import Polled, Sink, SinkWriter, Source, SplitReader
from engine.elements import AfterBarrier, Barrier, Micros
from engine.graph.jobgraph import (
    ChainedOperator,
    JobEdge,
    JobGraph,
    JobVertex,
    Partitioning,
    TaskId,
)
from engine.operators.sink import SinkOperator
from engine.operators.sources.source import SourceOperator
from engine.runtime.channels import CAPACITY, Endpoint, LocalChannel
from engine.runtime.wiring import wire
from engine.runtime.worker_exchange import Ports
from engine.runtime.worker_subtask import Subtask
from engine.testing.cluster import PATIENCE_S
from engine.watermarks import monotonic as in_order

SOURCE, SINK = TaskId("source", 0), TaskId("sink", 0)
MAX_ROWS = 10


class Numbers(Source):
    """0, 1, 2, … without end, as fast as they are wanted."""

    schema = {"n": pl.Int64()}

    def splits(self):
        return ["all"]

    def open(self, split, position):
        return NumbersReader(position or 0)


class NumbersReader(SplitReader):
    def __init__(self, position):
        self._next = position

    def poll(self, max_rows, now):
        first, self._next = self._next, self._next + max_rows
        return Polled(pl.DataFrame({"n": range(first, self._next)}))

    @property
    def position(self):
        return self._next


class Gate(Sink):
    """Takes rows only while the test lets it; raises what it is told to on the number 13."""

    def __init__(self, fails=None):
        self.opened = threading.Event()
        self.rows: list[int] = []
        self.commits: queue.Queue = queue.Queue()
        self.fails = fails

    def open(self, context):
        return GateWriter(self)

    def shadow(self, name):
        return self


class GateWriter(SinkWriter):
    def __init__(self, gate):
        self._gate = gate

    def write(self, frame):
        self._gate.opened.wait()
        if self._gate.fails and 13 in frame["n"]:
            raise self._gate.fails
        self._gate.rows.extend(frame["n"].to_list())

    def prepare(self, checkpoint_id):
        return len(self._gate.rows)

    def commit(self, committable):
        self._gate.commits.put(committable)


class Heard:
    """What the subtasks report."""

    def __init__(self):
        self.snapshots: queue.Queue = queue.Queue()
        self.ends: queue.Queue = queue.Queue()
        self.progress: queue.Queue = queue.Queue()

    def snapshot_taken(self, snapshot, sync_ms):
        self.snapshots.put(snapshot)

    def source_progressed(self, task, watermark):
        self.progress.put(watermark)

    def input_ended(self, task):
        self.ends.put(("input", task))

    def finished(self, task):
        self.ends.put(("finished", task))

    def failed(self, spec, operator, error):
        self.ends.put(("failed", spec.id, operator, str(error)))


class Pair:
    """Both subtasks, running."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.heard = Heard()
        specs = wire(graph(gate), "job", "attempt").specs
        self.source, self.sink = (
            Subtask(specs[task], self.heard, MAX_ROWS) for task in (SOURCE, SINK)
        )
        channel = LocalChannel(Endpoint(self.source.mailbox, 0), Endpoint(self.sink.mailbox, 0))
        for subtask in (self.source, self.sink):
            subtask.start(None)
            assert subtask.ready.wait(PATIENCE_S)
        self.source.run(Ports(outputs={0: channel}))
        self.sink.run(Ports(inputs={0: channel}))

    def close(self) -> None:
        self.gate.opened.set()
        for subtask in (self.source, self.sink):
            subtask.stop()
            subtask.join(PATIENCE_S)


def graph(gate: Gate) -> JobGraph:
    numbers = ChainedOperator("numbers", "numbers", SourceOperator(Numbers()))
    gated = ChainedOperator("gate", "gate", SinkOperator(gate))
    vertices = (JobVertex("source", "s", 1, (numbers,)), JobVertex("sink", "t", 1, (gated,)))
    return JobGraph("pair", 128, vertices, (JobEdge("source", 0, "sink", Partitioning.REBALANCE),))


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    pair = Pair(Gate(fails=getattr(request, "param", None)))
    yield pair
    pair.close()


def wait_for_backpressure(pair: Pair) -> None:
    pause, deadline = threading.Event(), monotonic() + PATIENCE_S
    before, _ = pair.source.occupancy.totals(monotonic())
    while pair.source.occupancy.totals(monotonic())[0] < before + 0.05:
        assert monotonic() < deadline
        pause.wait(0.005)


def test_a_sink_that_takes_nothing_stops_the_source_after_a_few_batches(pair: Pair) -> None:
    wait_for_backpressure(pair)
    metrics = pair.source.metrics
    assert metrics is not None
    # The credits of the channel, one batch in the outbox; the sink has given none back.
    assert metrics.operators[0].rows_out <= (CAPACITY + 1) * MAX_ROWS


def test_backpressure_loses_nothing_and_repeats_nothing(pair: Pair) -> None:
    wait_for_backpressure(pair)
    pair.gate.opened.set()
    pair.source.trigger(Barrier(1, then=AfterBarrier.STOP))
    snapshots = {snapshot.task: snapshot for snapshot in take(pair.heard.snapshots, 2)}
    position = snapshots[SOURCE].operators[0].splits["all"].position
    assert pair.gate.rows == list(range(position))
    assert snapshots[SINK].operators[0].committables == (position,)


def test_a_stopped_task_finishes_once_its_snapshot_is_complete_and_committed(pair: Pair) -> None:
    wait_for_backpressure(pair)
    pair.gate.opened.set()
    pair.source.trigger(Barrier(1, then=AfterBarrier.STOP))
    take(pair.heard.snapshots, 2)
    assert pair.gate.commits.empty()
    for subtask in (pair.source, pair.sink):
        subtask.complete(1)
    assert set(take(pair.heard.ends, 2)) == {("finished", SOURCE), ("finished", SINK)}
    assert pair.gate.commits.get(timeout=PATIENCE_S) == len(pair.gate.rows)


def test_a_stop_that_is_aborted_lets_the_source_read_on(pair: Pair) -> None:
    wait_for_backpressure(pair)
    pair.gate.opened.set()
    pair.source.trigger(Barrier(1, then=AfterBarrier.STOP))
    take(pair.heard.snapshots, 2)
    stopped_at = len(pair.gate.rows)
    pair.gate.opened.clear()
    for subtask in (pair.source, pair.sink):
        subtask.abort(1)
    wait_for_backpressure(pair)
    pair.gate.opened.set()
    pair.source.trigger(Barrier(2, then=AfterBarrier.STOP))
    take(pair.heard.snapshots, 2)
    assert len(pair.gate.rows) > stopped_at
    assert pair.gate.rows == list(range(len(pair.gate.rows)))


@pytest.mark.parametrize("pair", [ZeroDivisionError("thirteen")], indirect=True)
def test_a_failure_names_its_task_and_operator(pair: Pair) -> None:
    pair.gate.opened.set()
    assert take(pair.heard.ends, 1) == [("failed", SINK, "gate", "thirteen")]


@pytest.mark.parametrize("pair", [SystemExit(5)], indirect=True)
def test_code_that_exits_is_a_failure_too(pair: Pair) -> None:
    pair.gate.opened.set()
    sentence = "code of the job ended its thread: sys.exit(5); raise an error instead"
    assert take(pair.heard.ends, 1) == [("failed", SINK, "gate", sentence)]


class Panic(BaseException):
    """What libraries in other languages raise: no Exception."""


@pytest.mark.parametrize("pair", [Panic("not implemented")], indirect=True)
def test_a_panic_names_its_task_and_operator(pair: Pair) -> None:
    pair.gate.opened.set()
    assert take(pair.heard.ends, 1) == [("failed", SINK, "gate", "not implemented")]


def take(items: queue.Queue, count: int) -> list:
    return [items.get(timeout=PATIENCE_S) for _ in range(count)]


def test_a_source_that_is_too_far_ahead_sleeps_until_it_hears_of_the_others() -> None:
    heard = Heard()
    waiting = in_order("n").aligned("numbers", max_drift=MAX_ROWS)
    chained = ChainedOperator("numbers", "numbers", SourceOperator(Numbers(), waiting))
    vertex = JobVertex("source", "s", 2, (chained,), watermark_group="numbers")
    subtask = Subtask(
        wire(JobGraph("n", 128, (vertex,), ()), "j", "a").specs[SOURCE], heard, MAX_ROWS
    )
    subtask.start(None)
    assert subtask.ready.wait(PATIENCE_S)
    subtask.run(Ports())
    try:
        assert heard.progress.get(timeout=PATIENCE_S) == MAX_ROWS - 1
        subtask.align(Micros(MAX_ROWS - 1))
        assert [heard.progress.get(timeout=PATIENCE_S) for _ in range(2)] == [19, 29]
        assert subtask.metrics is not None
        assert subtask.metrics.operators[0].rows_out == 3 * MAX_ROWS
    finally:
        subtask.stop()
        subtask.join(PATIENCE_S)
