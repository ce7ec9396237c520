"""Slow steps: what waits for them is bounded in every place, and each thread's time is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from engine.clock import monotonic
from engine.connectors.contract import Polled, Sink, SinkWriter, Source, SplitReader
from engine.graph.jobgraph import JobGraph, TaskId
from engine.runtime.channels import CAPACITY
from engine.runtime.wiring import wire
from engine.runtime.worker_exchange import Exchange, Ports
from engine.runtime.worker_subtask import Subtask
from engine.stream import Environment
from engine.testing.cluster import PATIENCE_S

MAX_ROWS = 500
BATCH_BYTES = MAX_ROWS * 8
LATER_S = 100.0


class Numbers(Source):
    """Numbers without end, as fast as they are wanted, in two splits."""

    schema = {"n": pl.Int64()}

    def splits(self):
        return ["a", "b"]

    def open(self, split, position):
        return NumbersReader()


class NumbersReader(SplitReader):
    position = None

    def poll(self, max_rows, now):
        return Polled(pl.DataFrame({"n": range(max_rows)}))


class Shut(Sink):
    """Takes nothing until it is opened."""

    def __init__(self):
        self.opened = threading.Event()
        self.inside: list[int] = []
        """Rows of each batch that a sink has in hand, or had."""

    def open(self, context):
        return ShutWriter(self)

    def shadow(self, name):
        return self


class ShutWriter(SinkWriter):
    def __init__(self, shut):
        self._shut = shut

    def write(self, frame):
        self._shut.inside.append(frame.height)
        self._shut.opened.wait()

    def prepare(self, checkpoint_id):
        return None


class Silent:
    """Nobody listens to the subtasks."""

    def __getattr__(self, name):
        return lambda *reported: None


class Cluster:
    """A job in as many slots as it is parallel, with sockets between them."""

    def __init__(self, graph: JobGraph, runtime: Path, slots: int) -> None:
        self.wiring = wire(graph, "job", "attempt")
        self.subtasks = {
            task: Subtask(spec, Silent(), MAX_ROWS) for task, spec in self.wiring.specs.items()
        }
        self.exchanges = [Exchange(runtime, "attempt", slot, slots) for slot in range(slots)]
        for subtask in self.subtasks.values():
            subtask.start(None)
        for subtask in self.subtasks.values():
            assert subtask.ready.wait(PATIENCE_S)

    def run(self) -> None:
        with ThreadPoolExecutor() as threads:
            for ports in threads.map(self._connect, range(len(self.exchanges))):
                for task, of_task in ports.items():
                    self.subtasks[task].run(of_task)

    def _connect(self, slot: int) -> dict[TaskId, Ports]:
        mailboxes = {
            task: subtask.mailbox for task, subtask in self.subtasks.items() if task.subtask == slot
        }
        return dict(self.exchanges[slot].connect(self.wiring, mailboxes, lambda lost: None))

    def of(self, uid: str) -> list[Subtask]:
        return [
            subtask
            for subtask in self.subtasks.values()
            if subtask.spec.vertex.operators[0].uid == uid
        ]

    def close(self) -> None:
        for subtask in self.subtasks.values():
            subtask.stop()
        for subtask in self.subtasks.values():
            subtask.join(PATIENCE_S)
        for exchange in self.exchanges:
            exchange.close()


def until(so) -> None:
    pause, deadline = threading.Event(), monotonic() + PATIENCE_S
    while not so():
        assert monotonic() < deadline
        pause.wait(0.005)


@pytest.fixture
def shut() -> Shut:
    return Shut()


@pytest.fixture
def slow(shut: Shut, tmp_path: Path) -> Iterator[Cluster]:
    """Two sources and two sinks, each connected with each."""
    env = Environment("slow", parallelism=2, checkpoint_interval=None)
    rows = env.source(Numbers(), uid="numbers")
    rows.rebalance().sink(shut, uid="sink")
    cluster = Cluster(env.graph(), tmp_path, 2)
    cluster.run()
    yield cluster
    shut.opened.set()
    cluster.close()


def taken(subtask: Subtask) -> int:
    assert subtask.metrics is not None
    return subtask.metrics.operators[0].rows_in


def read(subtask: Subtask) -> int:
    assert subtask.metrics is not None
    return subtask.metrics.operators[0].rows_out


def test_a_sink_that_takes_nothing_bounds_what_waits_in_every_place(slow: Cluster) -> None:
    sources, sinks = slow.of("numbers"), slow.of("sink")
    until(lambda: all(source.occupancy.is_backpressured for source in sources))
    for sink in sinks:
        queues = sink.queues()
        assert queues.input_elements <= 2 * CAPACITY
        assert queues.input_bytes <= 2 * CAPACITY * BATCH_BYTES
    for source in sources:
        assert source.queues().output_bytes <= BATCH_BYTES
        # What two channels take, what is in the outbox, and what the sink has in hand.
        assert read(source) <= (2 * CAPACITY + 2) * MAX_ROWS


def test_a_batch_ends_when_all_of_it_is_handed_on(slow: Cluster) -> None:
    source = slow.of("numbers")[0]
    until(lambda: source.occupancy.is_backpressured)
    assert source.batches.is_open
    rows = sum(sums[1] for sums in source.batches.take().values())
    assert rows == read(source) - MAX_ROWS


def test_a_backpressured_source_spends_its_time_so_and_the_sink_is_busy(
    slow: Cluster, shut: Shut
) -> None:
    source, sink = slow.of("numbers")[0], slow.of("sink")[0]
    until(lambda: source.occupancy.is_backpressured and len(shut.inside) == 2)
    source.occupancy.shares(monotonic())
    sink.occupancy.shares(monotonic())
    later = monotonic() + LATER_S
    assert source.occupancy.shares(later).backpressured > 990
    assert sink.occupancy.shares(later).busy > 990


def test_who_waits_until_all_others_have_restored_is_idle(shut: Shut, tmp_path: Path) -> None:
    env = Environment("waiting", checkpoint_interval=None)
    env.source(Numbers(), uid="numbers").sink(shut, uid="sink")
    cluster = Cluster(env.graph(), tmp_path, 1)
    (subtask,) = cluster.subtasks.values()
    until(lambda: subtask.occupancy.totals(monotonic() + LATER_S)[1] > LATER_S / 2)
    assert subtask.occupancy.shares(monotonic() + 2 * LATER_S).idle > 990
    cluster.run()
    until(lambda: read(subtask) > 0)
    shut.opened.set()
    cluster.close()


def test_who_waits_for_answers_with_no_room_for_more_rows_is_busy_and_holds_the_source_up(
    shut: Shut, tmp_path: Path
) -> None:
    async def never(row):
        await asyncio.Event().wait()

    env = Environment("asking", checkpoint_interval=None)
    rows = env.source(Numbers(), uid="numbers")
    asked = rows.map_async(never, schema={"n": int}, capacity=5, uid="asking")
    asked.sink(shut, uid="sink")
    cluster = Cluster(env.graph(), tmp_path, 1)
    cluster.run()
    (source,), (asking,) = cluster.of("numbers"), cluster.of("asking")
    # It has taken a batch, and as many wait as there are credits.
    until(lambda: taken(asking) > 0 and asking.queues().input_elements == CAPACITY)
    until(lambda: source.occupancy.is_backpressured)
    asking.occupancy.shares(monotonic())
    assert asking.occupancy.shares(monotonic() + LATER_S).busy > 990
    assert asking.queues().input_elements == CAPACITY
    cluster.close()
