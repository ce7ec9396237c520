"""What goes wrong in an author's function: a sentence with operator and row, and its traceback."""

from __future__ import annotations

import traceback

import polars as pl
import pytest

import engine as hw
from engine.errors import FunctionError
from engine.testing.memory import MemorySource
from engine.testing.simulation import CALM, simulate

ROWS = pl.DataFrame({"user": ["ann", "bob"], "n": [1, 2], "at": [10, 20]})
SCHEMA = {"user": str, "n": int, "at": int}


def poisoned(row):
    """The author's own code."""
    if row["n"] == 2:
        raise ZeroDivisionError("poison")
    return row


async def poisoned_later(row):
    return poisoned(row)


def poisoned_list(row):
    return [poisoned(row)]


def poisoned_state(state, row):
    return state, poisoned(row)


def poisoned_end(state, key):
    return poisoned({"n": 2})


class Plain(hw.ProcessFunction):
    def process(self, row, ctx):
        yield poisoned(row)


class Keyed(hw.KeyedProcessFunction):
    def process(self, row, ctx):
        yield poisoned(row)


class Timed(hw.KeyedProcessFunction):
    def process(self, row, ctx):
        if row["n"] == 2:
            ctx.register_event_time_timer(ctx.event_time)

    def on_timer(self, time, ctx):
        yield poisoned({"n": 2})


class Folded(hw.KeyedProcessFunction):
    total = hw.ReducingState(int, lambda one, other: poisoned({"n": 2}))

    def process(self, row, ctx):
        self.total.add(1)
        if row["n"] == 2:
            self.total.add(1)


class Both(hw.CoProcessFunction):
    def process_left(self, row, ctx):
        return None

    def process_right(self, row, ctx):
        return [poisoned(row)]


class Told(hw.KeyedBroadcastProcessFunction):
    def process(self, row, ctx):
        return None

    def process_broadcast(self, row, ctx):
        poisoned(row)


def keyed(stream):
    return stream.key_by("user")


STEPS = {
    "map": (lambda s: s.map(poisoned), "map 'poisoned'"),
    "flat_map": (lambda s: s.flat_map(poisoned_list), "flat_map 'poisoned_list'"),
    "filter": (lambda s: s.filter(poisoned), "filter 'poisoned'"),
    "process": (lambda s: s.process(Plain()), "process 'Plain'"),
    "keyed": (lambda s: keyed(s).process(Keyed()), "process 'Keyed'"),
    "in order": (lambda s: keyed(s).process(Keyed(), ordered=True), "process 'Keyed'"),
    "reducing": (lambda s: keyed(s).process(Folded()), "process 'Folded'"),
    "co": (lambda s: keyed(s).connect(keyed(s)).process(Both()), "co_process 'Both'"),
    "broadcast": (
        lambda s: keyed(s).connect(s.broadcast()).process(Told()),
        "keyed_broadcast_process 'Told'",
    ),
    "map_with_state": (
        lambda s: keyed(s).map_with_state(poisoned_state, initial_state=0, state_type=int),
        "process 'MapWithState'",
    ),
    "map_async": (lambda s: s.map_async(poisoned_later), "map_async 'poisoned_later'"),
}


def failure(step):
    """How a job fails that has this step."""

    def build(parallelism, output):
        env = hw.Environment("poison", checkpoint_interval=None)
        rows = env.source(MemorySource({"all": ROWS}), watermarks=hw.monotonic("at"))
        step(rows).sink(output.sink("out"))
        return env.graph()

    with pytest.raises(FunctionError) as caught:
        simulate(build, 0, CALM)
    return caught.value


@pytest.mark.parametrize(("step", "operator"), STEPS.values(), ids=STEPS)
def test_a_function_that_raises_is_told_with_operator_row_and_traceback(step, operator):
    error = failure(step)
    assert str(error).startswith(
        f"{operator} raised ZeroDivisionError: poison: row {{'user': 'bob'"
    )
    assert "\n" not in str(error)
    # What a worker reports, and the history of exceptions keeps.
    told = "".join(traceback.format_exception(error))
    assert 'raise ZeroDivisionError("poison")' in told
    assert "The author's own code" not in told


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (
            lambda s: keyed(s).process(Timed()),
            r"process 'Timed' raised ZeroDivisionError: poison: row \{'timer': 20, 'key': \('bob',",
        ),
        (
            lambda s: keyed(s).map_with_state(
                lambda state, row: (0, None),
                initial_state=0,
                state_type=int,
                timeout=5,
                on_timeout=poisoned_end,
            ),
            r"process 'MapWithStateUntilTimeout' raised .* row \{'timer': 15, 'key': \('ann',",
        ),
    ],
)
def test_a_timer_that_raises_is_told_with_its_time_and_key(step, sentence):
    assert_matches(failure(step), sentence)


def assert_matches(error, sentence):
    with pytest.raises(FunctionError, match=sentence):
        raise error


class Wrong(hw.KeyedProcessFunction):
    """Does something that cannot be, at the second row."""

    last = hw.ValueState(int)
    side_outputs = {"side": {"n": int}}

    def __init__(self, deed):
        self.deed = deed

    def process(self, row, ctx):
        return self.deed(self, row, ctx) if row["n"] == 2 else None


ROW = r".*\{'user': 'bob', 'n': 2, 'at': 20, 'event_time': 20\}"
DEEDS = {
    "column": (lambda f, row, ctx: [row | {"x": 1}], f"'Wrong' gave unknown columns x, {ROW}"),
    "no dict": (lambda f, row, ctx: [7], f"'Wrong' gave 7: {ROW}; give rows as dicts, by yield"),
    "one row": (lambda f, row, ctx: row, f"'Wrong' gave 'user': {ROW}; give rows as dicts"),
    "no rows": (lambda f, row, ctx: 7, f"raised TypeError: 'int' object is not iterable: {ROW}"),
    "type": (
        lambda f, row, ctx: [row | {"n": "many"}],
        f"gave values of column 'n' that are not Int64, the first 'many': {ROW}",
    ),
    "time": (
        lambda f, row, ctx: [row | {"event_time": 3}],
        f"changed event_time from 20 to 3{ROW}",
    ),
    "state": (
        lambda f, row, ctx: f.last.set("x"),
        f"state 'last' holds Int64: got 'x'; convert it first, at the row {ROW} of process 'Wrong'",
    ),
    "timer": (
        lambda f, row, ctx: ctx.register_event_time_timer(5),
        f"process 'Wrong' uses timers that nobody hears: .* at the row {ROW}",
    ),
    "no output": (
        lambda f, row, ctx: ctx.emit({"n": 1}, to="aside"),
        f"'Wrong' emits to the unknown output 'aside': it has main, side; .* at the row {ROW}",
    ),
    "side": (lambda f, row, ctx: ctx.emit({"m": 1}, to="side"), f"gave unknown columns m, {ROW}"),
}


@pytest.mark.parametrize(("deed", "sentence"), DEEDS.values(), ids=DEEDS)
def test_what_a_function_does_wrong_is_told_with_operator_and_row(deed, sentence):
    error = failure(lambda s: keyed(s).process(Wrong(deed)))
    assert "process 'Wrong'" in str(error)
    assert_matches(error, sentence)


def test_a_function_of_state_and_row_that_gives_no_state_is_told_with_its_row():
    error = failure(
        lambda s: keyed(s).map_with_state(
            lambda state, row: row if row["n"] == 2 else (0, None), initial_state=0, state_type=int
        )
    )
    assert_matches(
        error, "needs .state, row. from its function: got .*, at the row .*'user': 'bob'"
    )
