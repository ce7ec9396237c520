"""One subtask: chain, channels, barriers, the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

import polars as pl
import pytest

from engine.checkpoint.format.frozen import RestoredOperator, TaskSnapshot
from engine.elements import (
    KEY_GROUP,
    MAX_TIME,
    MIN_TIME,
    AfterBarrier,
    Barrier,
    Batch,
    Element,
    EndOfInput,
    Idle,
    Micros,
    Watermark,
)
from engine.errors import FunctionError, InternalError
from engine.graph.jobgraph import ChainedOperator, Feed, JobEdge, JobVertex, Partitioning
from engine.keygroups import KeyGroupRange, range_of
from engine.operators.contract import MAIN, Context, Operator
from engine.operators.sink import SinkOperator
from engine.operators.sources.source import SourceOperator
from engine.runtime.spec import OutputEdge, TaskSpec
from engine.runtime.task import Task
from engine.state.contract import StateDescriptor, StateKind
from engine.state.handles import ValueHandle
from engine.testing.memory import MemorySource, OutputTables
from engine.watermarks import monotonic

NOW = Micros(7)
ALL = (0, "all")
"""A key as handles take it: its key group first."""

TOTAL = StateDescriptor("total", StateKind.VALUE, {"k": pl.String()}, {"n": pl.Int64()})


class Evens(Operator):
    """Passes even numbers on, odd ones to a side output."""

    name = "evens"

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        ctx.emit(frame.filter(pl.col("n") % 2 == 0))
        ctx.emit(frame.filter(pl.col("n") % 2 == 1), tag="odd")
        ctx.count("seen", frame.height)


class Total(Operator):
    """Adds up all numbers under one key, and tells the sum with each watermark."""

    name = "total"
    states: ClassVar[Sequence[StateDescriptor]] = (TOTAL,)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        handle = cast("ValueHandle", ctx.state(TOTAL))
        known = handle.get_many([ALL])
        handle.put_many({ALL: known.get(ALL, 0) + int(frame["n"].sum())})

    def on_watermark(self, time: Micros, ctx: Context) -> None:
        known = cast("ValueHandle", ctx.state(TOTAL)).get_many([ALL])
        ctx.emit(pl.DataFrame({"time": [time], "n": [known.get(ALL, 0)]}))


class Failing(Operator):
    """Cannot take rows."""

    name = "failing"

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        msg = "no"
        raise ValueError(msg)


class Gatherer(Operator):
    """Holds rows back."""

    name = "gatherer"

    def open(self, ctx: Context) -> None:
        self.held: list[pl.DataFrame] = []

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        self.held.append(frame)

    def flush(self, ctx: Context) -> None:
        for frame in self.held:
            ctx.emit(frame)
        self.held.clear()


def numbers(*values: int) -> Batch:
    return Batch(pl.DataFrame({"n": values}, schema={"n": pl.Int64}))


def chained(uid: str, operator: object, *feeds: Feed) -> ChainedOperator:
    return ChainedOperator(uid, uid, cast("Operator", operator), feeds)


def edge(
    operator: int, partitioning: Partitioning = Partitioning.FORWARD, tag: str = MAIN
) -> JobEdge:
    return JobEdge("v", operator, "w", partitioning, tag=tag)


def task_of(
    *operators: ChainedOperator,
    inputs: int = 1,
    outputs: Sequence[OutputEdge] = (),
    restored: Sequence[RestoredOperator] = (),
    keyed: bool = False,
) -> Task:
    vertex = JobVertex("v", "numbers", 1, operators)
    spec = TaskSpec("job", "attempt", vertex, 0, 128, (0,) * inputs, tuple(outputs), keyed)
    return Task(spec, restored)


def evens_and_total(inputs: int = 1, restored: Sequence[RestoredOperator] = ()) -> Task:
    return task_of(
        chained("evens", Evens()),
        chained("total", Total(), Feed(0)),
        inputs=inputs,
        outputs=[OutputEdge(edge(1), (0,)), OutputEdge(edge(0, tag="odd"), (1,))],
        restored=restored,
    )


def shown(task: Task) -> list[tuple[int, object]]:
    """Take the outbox, batches as lists of rows."""
    taken = [
        (channel, element.frame["n"].to_list() if isinstance(element, Batch) else element)
        for channel, element in task.outbox
    ]
    task.outbox.clear()
    return taken


def deliver(task: Task, *elements: Element, channel: int = 0) -> None:
    for element in elements:
        task.deliver(channel, element, NOW)


def state_of(snapshot: TaskSnapshot, uid: str) -> list[dict[str, object]]:
    operator = next(operator for operator in snapshot.operators if operator.uid == uid)
    return operator.states[0].table().drop(KEY_GROUP).to_dicts()


def test_rows_pass_the_chain_and_side_outputs_leave_by_their_own_edge() -> None:
    task = evens_and_total()
    deliver(task, numbers(1, 2, 4), Watermark(Micros(10)))
    assert shown(task) == [
        (1, [1]),
        (0, [6]),
        (0, Watermark(Micros(10))),
        (1, Watermark(Micros(10))),
    ]


def test_operators_count_what_passes() -> None:
    task = evens_and_total()
    deliver(task, numbers(1, 2, 4), Watermark(Micros(10)))
    evens, total = task.metrics.operators
    assert (evens.rows_in, evens.rows_out, evens.counters["seen"]) == (3, 2, 3)
    assert (total.rows_in, total.rows_out, total.watermark_out) == (2, 1, 10)


def test_a_snapshot_holds_what_came_before_the_barrier_and_nothing_after() -> None:
    task = evens_and_total()
    deliver(task, numbers(2), Barrier(1), numbers(4))
    snapshot = task.snapshots.popleft()
    assert snapshot.barrier == Barrier(1)
    assert state_of(snapshot, "total") == [{"k": "all", "n": 2}]


def test_the_barrier_leaves_on_every_channel_behind_the_rows_before_it() -> None:
    task = evens_and_total()
    deliver(task, numbers(1), Barrier(1))
    assert shown(task) == [(1, [1]), (0, Barrier(1)), (1, Barrier(1))]


def test_rows_behind_a_barrier_wait_for_the_other_channels() -> None:
    task = evens_and_total(inputs=2)
    deliver(task, Barrier(1), channel=0)
    assert (task.blocked(0), task.blocked(1)) == (True, False)
    with pytest.raises(InternalError, match="while it is blocked"):
        deliver(task, numbers(2), channel=0)
    deliver(task, numbers(8), Barrier(1), channel=1)
    assert state_of(task.snapshots.popleft(), "total") == [{"k": "all", "n": 8}]
    assert not task.blocked(0)


def test_a_snapshot_says_when_the_first_and_the_last_barrier_came() -> None:
    task = evens_and_total(inputs=2)
    task.deliver(0, Barrier(1), Micros(5))
    task.deliver(1, Barrier(1), Micros(9))
    snapshot = task.snapshots.popleft()
    assert (snapshot.first_barrier, snapshot.aligned) == (5, 9)


def test_a_restored_task_goes_on_with_state_and_time() -> None:
    first = evens_and_total()
    deliver(first, numbers(2), Watermark(Micros(10)), Barrier(1))
    snapshot = first.snapshots.popleft()
    restored = [
        RestoredOperator(
            operator.uid,
            operator.watermark,
            {state.descriptor.name: [state.table()] for state in operator.states},
        )
        for operator in snapshot.operators
    ]
    again = evens_and_total(restored=restored)
    assert again.watermark == 10
    deliver(again, numbers(4), Watermark(Micros(10)))
    # It goes on, because those behind have forgotten it; but nothing fires a second time.
    assert shown(again) == [(0, Watermark(Micros(10))), (1, Watermark(Micros(10)))]
    deliver(again, Watermark(Micros(11)))
    assert shown(again)[0] == (0, [6])


def test_a_declared_state_is_in_the_snapshot_before_its_first_use() -> None:
    task = evens_and_total()
    deliver(task, Barrier(1))
    assert state_of(task.snapshots.popleft(), "total") == []


def test_idleness_and_the_end_of_input_go_on_when_all_channels_say_so() -> None:
    task = evens_and_total(inputs=2)
    deliver(task, Idle(), channel=0)
    assert shown(task) == []
    deliver(task, Idle(), channel=1)
    assert shown(task) == [(0, Idle()), (1, Idle())]
    deliver(task, Watermark(MAX_TIME), EndOfInput(), channel=0)
    assert not task.end_of_input
    deliver(task, Watermark(MAX_TIME), EndOfInput(), channel=1)
    assert task.end_of_input
    assert shown(task)[-2:] == [(0, EndOfInput()), (1, EndOfInput())]


@pytest.mark.parametrize("element", [Idle(), Barrier(1)], ids=["idleness", "barrier"])
def test_what_operators_hold_back_leaves_before(element: Element) -> None:
    task = task_of(
        chained("one", Gatherer()),
        chained("other", Gatherer(), Feed(0)),
        outputs=[OutputEdge(edge(1), (0,))],
    )
    deliver(task, numbers(1, 2))
    assert shown(task) == []
    deliver(task, element)
    assert shown(task) == [(0, [1, 2]), (0, element)]


def test_a_keyed_task_owns_a_range_of_key_groups_and_others_all() -> None:
    owned: list[KeyGroupRange] = []

    class Owner(Evens):
        def open(self, ctx: Context) -> None:
            owned.append(ctx.key_groups)

    vertex = JobVertex("v", "numbers", 3, (chained("owner", Owner()),))
    for keyed in (True, False):
        Task(TaskSpec("job", "attempt", vertex, 1, 128, (0,), (), keyed))
    assert owned == [range_of(1, 3, 128), KeyGroupRange(0, 128)]


def test_a_failure_names_the_operator_it_came_from() -> None:
    task = task_of(chained("evens", Evens()), chained("broken", Failing(), Feed(0)))
    with pytest.raises(ValueError, match="no"):
        deliver(task, numbers(2))
    assert task.failed_operator == "broken"


def test_a_failure_while_reading_names_the_source() -> None:
    rows = pl.DataFrame({"n": [1, None]}, schema={"n": pl.Int64})
    task = task_of(
        chained("rows", SourceOperator(MemorySource({"a": rows}), monotonic("n"))), inputs=0
    )
    with pytest.raises(FunctionError, match="event time column 'n' is null"):
        task.poll(NOW, 10)
    assert task.failed_operator == "rows"


def sink_task(tables: OutputTables, restored: Sequence[RestoredOperator] = ()) -> Task:
    return task_of(chained("out", SinkOperator(tables.sink("out"))), restored=restored)


def visible(tables: OutputTables) -> list[int]:
    table = tables.table("out")
    return table["n"].to_list() if table.height else []


def test_rows_become_visible_when_their_checkpoint_is_complete() -> None:
    tables = OutputTables()
    task = sink_task(tables)
    deliver(task, numbers(1), Barrier(1), numbers(2))
    assert visible(tables) == []
    task.notify_complete(1)
    assert visible(tables) == [1]


def test_rows_of_an_aborted_checkpoint_are_in_the_next_and_committed_with_it() -> None:
    tables = OutputTables()
    task = sink_task(tables)
    deliver(task, numbers(1), Barrier(1))
    task.notify_aborted(1)
    deliver(task, numbers(2), Barrier(2))
    assert len(task.snapshots[-1].operators[0].committables) == 2
    task.notify_complete(2)
    assert visible(tables) == [1, 2]
    deliver(task, Barrier(3))
    assert task.snapshots[-1].operators[0].committables == ()


def test_one_complete_checkpoint_commits_what_the_older_ones_under_way_have_staged() -> None:
    tables = OutputTables()
    task = sink_task(tables)
    deliver(task, numbers(1), Barrier(1), numbers(2), Barrier(2), numbers(3), Barrier(3))
    assert [len(taken.operators[0].committables) for taken in task.snapshots] == [1, 2, 3]
    task.notify_complete(2)
    assert visible(tables) == [1, 2]
    task.notify_aborted(1)
    task.notify_aborted(3)
    deliver(task, Barrier(4))
    assert len(task.snapshots[-1].operators[0].committables) == 1
    task.notify_complete(4)
    assert visible(tables) == [1, 2, 3]


def test_a_restart_commits_what_the_snapshot_staged_and_drops_the_rest() -> None:
    tables = OutputTables()
    first = sink_task(tables)
    deliver(first, numbers(1), Barrier(1), numbers(2), Barrier(2))
    committables = first.snapshots[0].operators[0].committables
    sink_task(tables, [RestoredOperator("out", committables=committables)])
    assert visible(tables) == [1]
    assert tables.staged == {}


def source_task(*times: int) -> Task:
    rows = pl.DataFrame({"n": times}, schema={"n": pl.Int64})
    source = SourceOperator(MemorySource({"a": rows}, bounded=False), monotonic("n"))
    return task_of(chained("numbers", source), inputs=0, outputs=[OutputEdge(edge(0), (0,))])


def test_a_source_is_polled_and_says_when_to_come_again() -> None:
    task = source_task(1, 2)
    polling = task.poll(NOW, max_rows=10)
    assert (polling.rows, polling.again_at) == (2, MIN_TIME)
    assert shown(task) == [(0, [1, 2]), (0, Watermark(Micros(2)))]
    assert task.poll(NOW, max_rows=10).again_at > NOW


def test_a_source_that_stops_reads_on_only_if_the_savepoint_is_aborted() -> None:
    task = source_task(1, 2)
    stop = Barrier(4, then=AfterBarrier.STOP)
    task.trigger(stop, NOW)
    assert task.poll(NOW, max_rows=10).rows == 0
    assert shown(task) == [(0, stop)]
    task.notify_aborted(4)
    assert task.poll(NOW, max_rows=10).rows == 2


def test_a_stop_outlives_the_abort_of_an_older_checkpoint() -> None:
    task = source_task(1, 2)
    task.trigger(Barrier(3), NOW)
    task.trigger(Barrier(4, then=AfterBarrier.STOP), NOW)
    task.notify_aborted(3)
    assert task.poll(NOW, max_rows=10).rows == 0


def test_a_task_is_done_when_the_last_snapshot_is_complete() -> None:
    task = source_task(1)
    task.trigger(Barrier(3), NOW)
    task.trigger(Barrier(4, then=AfterBarrier.STOP), NOW)
    task.notify_complete(3)
    assert not task.done
    task.notify_complete(4)
    assert task.done


def test_a_source_sends_each_barrier_once() -> None:
    task = source_task(1)
    task.trigger(Barrier(3), NOW)
    task.trigger(Barrier(3), NOW)
    task.notify_aborted(4)
    task.trigger(Barrier(4, then=AfterBarrier.STOP), NOW)
    assert shown(task) == [(0, Barrier(3))]
    assert len(task.snapshots) == 1


def test_a_drain_ends_event_time_before_the_barrier() -> None:
    task = source_task(1)
    drain = Barrier(1, then=AfterBarrier.DRAIN)
    task.trigger(drain, NOW)
    assert shown(task) == [(0, Watermark(MAX_TIME)), (0, drain)]
    assert task.snapshots[0].operators[0].splits["a"].watermark == MIN_TIME


class Alarm(Operator):
    """Wants to be called 10 µs after each batch; says what it saw."""

    name = "alarm"

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        ctx.wake(Micros(ctx.now + 10))

    def on_processing_time(self, now: Micros, ctx: Context) -> None:
        ctx.emit(pl.DataFrame({"n": [now]}))


def alarm(now: int = 0) -> Task:
    task = task_of(chained("alarm", Alarm()), outputs=[OutputEdge(edge(0), (0,))])
    task.deliver(0, numbers(1), Micros(now))
    return task


def test_the_clock_reaches_an_operator_once_when_it_asked_for_it() -> None:
    task = alarm(now=100)
    assert task.next_timer == 110
    task.advance(Micros(109))
    assert not task.outbox
    task.advance(Micros(110))
    assert shown(task) == [(0, [110])]
    assert task.next_timer == MAX_TIME


@pytest.mark.parametrize(
    "last", [EndOfInput(), Barrier(1, then=AfterBarrier.STOP)], ids=["end of input", "stop"]
)
def test_after_its_last_element_a_task_waits_for_no_clock(last: Element) -> None:
    task = alarm()
    deliver(task, last)
    assert task.next_timer == MAX_TIME
    task.outbox.clear()
    task.advance(Micros(10))
    assert not task.outbox
