"""Timers and order of event time, against a definition that knows no batches and no watermarks."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine as hw
from engine.elements import MAX_TIME
from engine.errors import FunctionError
from engine.operators.records.keyed_process import CoProcess, KeyedProcess
from engine.testing.harness import OperatorHarness

IN = {"user": pl.String(), "n": pl.Int64(), "event_time": pl.Int64()}
OUT = {"user": pl.String(), "what": pl.String(), "event_time": pl.Int64()}
SIDES = {"odd": {"n": pl.Int64(), "event_time": pl.Int64()}}
KEYS = {"user": pl.String()}
GAP, BOUND = 10, 5


class Visits(hw.KeyedProcessFunction):
    """Gathers numbers until nothing came for GAP; then looks back once more, in the past."""

    numbers = hw.ListState(int)
    ends = hw.ValueState(int)

    def process(self, row, ctx):
        if self.ends.get() is not None:
            ctx.delete_event_time_timer(self.ends.get())
        self.ends.set(ctx.event_time + GAP)
        ctx.register_event_time_timer(self.ends.get())
        self.numbers.add(row["n"])
        if row["n"] % 2:
            ctx.emit({"n": row["n"]}, to="odd")
        yield {"user": row["user"], "what": f"{row['n']} after {self.numbers.get()[:-1]}"}

    def on_timer(self, time, ctx):
        if self.ends.get() == time:
            ctx.register_event_time_timer(time - 3)
            self.ends.set(-1)
            return
        yield {"user": ctx.key[0], "what": f"end of {self.numbers.get()} at {time}"}
        self.numbers.clear()
        self.ends.clear()


def visits(subtask=0, parallelism=1, restored=()):
    operator = KeyedProcess(Visits(), "Visits", KEYS, OUT, sides=SIDES, in_order_of=IN)
    return OperatorHarness(
        operator, keys=["user"], subtask=subtask, parallelism=parallelism, restored=restored
    )


def run(script):
    subtasks, batch, done, newest = [visits()], [], {}, -BOUND

    def collect():
        for each in subtasks:
            for tag, rows in each.outputs.items():
                done.setdefault(tag, []).extend(rows)

    for step in [*script, "cut"]:
        if isinstance(step, tuple):
            newest = max(newest, step[2] - BOUND)
            batch.append((*step, newest if step[2] < newest else None))
            continue
        frame = pl.DataFrame(batch, {**IN, "row_watermark": pl.Int64()}, orient="row")
        batch = []
        for each in subtasks:
            each.push(frame)
            if step == "cut":
                each.advance(newest)
        if isinstance(step, int):
            collect()
            restored = [each.snapshot() for each in subtasks]
            subtasks = [visits(index, step, restored) for index in range(step)]
    for each in subtasks:
        each.advance(MAX_TIME)
    collect()
    return {tag: sorted(map(str, map(shown, rows))) for tag, rows in done.items() if rows}


def shown(row):
    return {name: row[name] for name in sorted(row) if name != "row_watermark"}


def model(script):
    newest, users, done = -BOUND, {}, {}

    def give(tag, **row):
        done.setdefault(tag, []).append(str(shown(row)))

    for user, n, time in (step for step in script if isinstance(step, tuple)):
        newest = max(newest, time - BOUND)
        if time < newest:
            give("late", user=user, n=n, event_time=time)
        else:
            users.setdefault(user, []).append((time, n))
    for user, rows in users.items():
        numbers, end = [], None
        for time, n in [*sorted(rows), (MAX_TIME, None)]:
            if end is not None and end <= time:
                what = f"end of {numbers} at {end - 3}"
                give("main", user=user, what=what, event_time=end)
                numbers = []
            if n is not None:
                what = f"{n} after {numbers}"
                give("main", user=user, what=what, event_time=time)
                if n % 2:
                    give("odd", n=n, event_time=time)
                numbers = [*numbers, n]
                end = time + GAP
    return {tag: sorted(rows) for tag, rows in done.items()}


users = st.sampled_from(["ann", "bob", "eve"])
events = st.tuples(users, st.integers(0, 3), st.integers(0, 60))
scripts = st.lists(events | events | events | st.just("cut") | st.integers(1, 3), max_size=25)


@given(scripts)
@settings(max_examples=60, deadline=None)
def test_rows_and_timers_come_in_order_of_event_time_through_anything(script):
    assert run(script) == model(script)


@pytest.mark.parametrize(("watermark", "fired"), [(14, 0), (15, 1)])
def test_a_timer_fires_when_the_watermark_reaches_it(watermark, fired):
    harness = visits()
    harness.push([{"user": "ann", "n": 2, "event_time": 5}])
    harness.advance(watermark)
    assert len(harness.outputs["main"]) == 1 + fired


def test_a_row_waits_until_no_earlier_row_can_come():
    harness = visits()
    harness.push([{"user": "ann", "n": 2, "event_time": 5}])
    harness.advance(5)
    assert harness.outputs["main"] == []
    harness.advance(6)
    assert [row["what"] for row in harness.outputs["main"]] == ["2 after []"]


def test_timers_and_waiting_rows_are_rows_of_a_snapshot():
    harness = visits()
    harness.push([{"user": "ann", "n": 2, "event_time": 5}])
    waiting = harness.snapshot().tables["rows.0"]
    group = waiting["key_group"][0]
    assert waiting.rows() == [(group, "ann", 5, 2)]
    harness.advance(6)
    assert harness.snapshot().tables["timers.event"].rows() == [(group, "ann", 15)]


class Reports(hw.KeyedProcessFunction):
    def process(self, row, ctx):
        ctx.register_event_time_timer(row["n"])

    def on_timer(self, time, ctx):
        yield {"user": ctx.key[0], "what": f"{time}, watermark {ctx.watermark}"}


def test_as_they_come_timers_of_all_keys_fire_in_order_and_overdue_ones_at_once():
    harness = OperatorHarness(KeyedProcess(Reports(), "Reports", KEYS, OUT), keys=["user"])
    rows = [("ann", 9), ("bob", 8), ("ann", 7), ("ann", 9)]
    harness.push([{"user": user, "n": n, "event_time": 0} for user, n in rows])
    assert harness.outputs["main"] == []
    harness.advance(9)
    harness.push([{"user": "eve", "n": 3, "event_time": 9}])
    found = [(row["user"], row["what"], row["event_time"]) for row in harness.outputs["main"]]
    assert found == [
        ("ann", "7, watermark 7", 7),
        ("bob", "8, watermark 8", 8),
        ("ann", "9, watermark 9", 9),
        ("eve", "3, watermark 9", 9),
    ]


class Ticks(hw.KeyedProcessFunction):
    count = hw.ValueState(int, default=0)

    def process(self, row, ctx):
        ctx.register_processing_time_timer(ctx.now + 10)

    def on_processing_timer(self, time, ctx):
        self.count.set(self.count.get() + 1)
        yield {"user": ctx.key[0], "what": f"{self.count.get()} at {time}"}
        if self.count.get() < 3:
            ctx.register_processing_time_timer(time + 10)


def test_a_processing_time_timer_fires_by_the_clock_also_after_a_restore():
    operator = KeyedProcess(Ticks(), "Ticks", KEYS, OUT)
    first = OperatorHarness(operator, keys=["user"])
    first.tick(100)
    first.push([{"user": "ann", "n": 1, "event_time": 7}])
    first.advance(7)
    first.tick(109)
    assert first.outputs["main"] == []
    second = OperatorHarness(operator, keys=["user"], restored=[first.snapshot()])
    second.tick(120)
    second.tick(130)
    found = [(row["what"], row["event_time"]) for row in second.outputs["main"]]
    assert found == [("1 at 110", 7), ("2 at 120", 7), ("3 at 130", 7)]


class Deeds(hw.KeyedProcessFunction):
    def __init__(self, deed):
        self.deed = deed

    def process(self, row, ctx):
        self.deed(ctx)


class Endless(Deeds):
    def on_timer(self, time, ctx):
        self.deed(ctx)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (Deeds(lambda ctx: ctx.register_event_time_timer(5)), "has no on_timer; define it"),
        (Deeds(lambda ctx: ctx.register_processing_time_timer(5)), "no on_processing_timer"),
        (Deeds(lambda ctx: ctx.emit({"n": 1}, to="side")), "unknown output 'side': it has main"),
        (Endless(lambda ctx: ctx.register_event_time_timer(1.5)), "at no time: got 1.5; pass µs"),
        (Endless(lambda ctx: ctx.register_event_time_timer(True)), "at no time: got True"),
    ],
)
def test_what_a_function_cannot_ask_for_is_refused_at_its_row(function, sentence):
    harness = OperatorHarness(KeyedProcess(function, "Deeds", KEYS, OUT), keys=["user"])
    with pytest.raises(FunctionError, match=sentence):
        harness.push([{"user": "ann", "n": 1, "event_time": 0}])


class Joined(hw.CoProcessFunction):
    price = hw.ValueState(int)

    def process_left(self, row, ctx):
        yield {"user": row["user"], "what": f"{row['n']} at {self.price.get()}"}

    def process_right(self, row, ctx):
        self.price.set(row["price"])


RIGHT = {"who": pl.String(), "price": pl.Int64(), "event_time": pl.Int64()}
orders = st.tuples(st.just(0), users, st.integers(0, 9), st.integers(0, 20))
prices = st.tuples(st.just(1), users, st.integers(0, 9), st.integers(0, 20))


@given(st.lists(orders | prices | st.just("cut"), max_size=20), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_two_inputs_are_merged_by_event_time_the_left_first(script, parallelism):
    """Each order has the price of its time, whichever stream was faster."""

    def joined(subtask, restored=()):
        operator = CoProcess(Joined(), "Joined", KEYS, ["who"], OUT, in_order_of=[IN, RIGHT])
        return OperatorHarness(
            operator,
            keys={0: ["user"], 1: ["who"]},
            subtask=subtask,
            parallelism=parallelism,
            restored=restored,
        )

    subtasks = [joined(index) for index in range(parallelism)]
    found = []
    for step in [*script, "cut"]:
        if step == "cut":
            found += [row for each in subtasks for row in each.outputs["main"]]
            restored = [each.snapshot() for each in subtasks]
            subtasks = [joined(index, restored) for index in range(parallelism)]
        else:
            frame = pl.DataFrame([step[1:]], RIGHT if step[0] else IN, orient="row")
            for each in subtasks:
                each.push(frame, port=step[0])
    for each in subtasks:
        each.advance(MAX_TIME)
        found += each.outputs["main"]
    rows = sorted((step for step in script if step != "cut"), key=lambda row: (row[3], *row[:3]))
    paid, wanted = {}, []
    for side, user, number, time in rows:
        if side:
            paid[user] = number
        else:
            wanted.append((time, user, f"{number} at {paid.get(user)}"))
    assert sorted((row["event_time"], row["user"], row["what"]) for row in found) == sorted(wanted)


def test_timers_that_register_the_next_for_ever_end_the_job_with_a_sentence():
    endless = Endless(lambda ctx: ctx.register_event_time_timer(ctx.event_time + 1))
    harness = OperatorHarness(KeyedProcess(endless, "Endless", KEYS, OUT), keys=["user"])
    harness.push([{"user": "ann", "n": 1, "event_time": 0}])
    with pytest.raises(FunctionError, match="timers never end"):
        harness.advance(MAX_TIME)
