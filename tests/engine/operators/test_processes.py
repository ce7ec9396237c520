"""Functions with keyed state, against their definition, through crashes and rescales."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine as hw
from engine.errors import FunctionError, GraphError, InternalError
from engine.operators.records.keyed_process import CoProcess, KeyedProcess
from engine.testing.harness import OperatorHarness

LEFT = {"sensor": pl.String(), "value": pl.Int64(), "event_time": pl.Int64()}
RIGHT = {"name": pl.String(), "factor": pl.Int64()}
KEYS = {0: ["sensor"], 1: ["name"]}


class Amplifier(hw.CoProcessFunction):
    factor = hw.ValueState(int, default=1)
    seen = hw.ValueState(int)

    def process_left(self, reading, ctx):
        seen = (self.seen.get() or 0) + 1
        self.seen.set(seen)
        yield reading | {"value": reading["value"] * self.factor.get() + seen}

    def process_right(self, control, ctx):
        if control["factor"]:
            self.factor.set(control["factor"])
        else:
            self.factor.clear()


def amplifier(subtask=0, parallelism=1, restored=()):
    operator = CoProcess(Amplifier(), "Amplifier", {"sensor": pl.String()}, ["name"], LEFT)
    return OperatorHarness(
        operator, keys=KEYS, subtask=subtask, parallelism=parallelism, restored=restored
    )


def outputs(subtasks):
    rows = [row for subtask in subtasks for row in subtask.outputs["main"]]
    return [(row["sensor"], row["value"], row["event_time"]) for row in rows]


def run(script):
    subtasks, done = [amplifier()], []
    for side, payload in script:
        if side == "crash":
            done += outputs(subtasks)
            restored = [subtask.snapshot() for subtask in subtasks]
            subtasks = [amplifier(index, payload, restored) for index in range(payload)]
            continue
        for subtask in subtasks:
            schema = LEFT if side == "left" else RIGHT
            subtask.push(pl.DataFrame(payload, schema, orient="row"), port=int(side == "right"))
    return sorted(done + outputs(subtasks))


def model(script):
    factors, counts, rows = {}, {}, []
    for side, payload in script:
        if side == "left":
            for sensor, value, time in payload:
                counts[sensor] = counts.get(sensor, 0) + 1
                rows.append((sensor, value * factors.get(sensor, 1) + counts[sensor], time))
        elif side == "right":
            for name, factor in payload:
                factors[name] = factor or 1
    return sorted(rows)


names = st.sampled_from(["door", "pressure", "temperature", ""])
numbers = st.integers(-5, 5)
lefts = st.tuples(st.just("left"), st.lists(st.tuples(names, numbers, numbers), max_size=5))
rights = st.tuples(st.just("right"), st.lists(st.tuples(names, numbers), max_size=3))
crashes = st.tuples(st.just("crash"), st.integers(1, 3))


@given(st.lists(lefts | rights | crashes, max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_function_with_state_equals_its_definition_through_any_crash_and_rescale(script):
    assert run(script) == model(script)


class RunningTotal(hw.KeyedProcessFunction):
    total = hw.ValueState(float, default=0.0)

    def process(self, row, ctx):
        self.total.set(self.total.get() + row["amount"])
        if ctx.key == ("skip",):
            return None
        return [{"account": ctx.key[0], "total": self.total.get()}]


def totals(schema=None):
    schema = schema or {"account": pl.String(), "total": pl.Float64(), "event_time": pl.Int64()}
    keys = {"account": pl.String()}
    return OperatorHarness(
        KeyedProcess(RunningTotal(), "RunningTotal", keys, schema), keys=["account"]
    )


def test_rows_keep_the_event_time_and_lateness_of_the_row_they_were_made_from():
    harness = totals()
    times = {"event_time": [7, 8], "row_watermark": [None, 9]}
    harness.push(pl.DataFrame({"account": ["a", "b"], "amount": [1.0, 2.0], **times}))
    assert harness.outputs["main"] == [
        {"account": "a", "total": 1.0, "event_time": 7, "row_watermark": None},
        {"account": "b", "total": 2.0, "event_time": 8, "row_watermark": 9},
    ]


def test_a_function_may_give_nothing():
    harness = totals()
    harness.push([{"account": "skip", "amount": 1.0, "event_time": 7}])
    assert harness.outputs["main"] == []


def test_a_row_that_breaks_the_function_is_shown_and_the_cause_is_kept():
    harness = totals()
    with pytest.raises(
        FunctionError, match=r"process 'RunningTotal' raised TypeError.*'amount'"
    ) as e:
        harness.push([{"account": "a", "amount": "1", "event_time": 7}])
    assert isinstance(e.value.__cause__, TypeError)


def test_a_long_row_is_shortened():
    harness = totals()
    with pytest.raises(FunctionError) as caught:
        harness.push([{"account": "a", "amount": "x" * 10_000, "event_time": 7}])
    assert len(str(caught.value)) < 500


def test_a_column_that_was_not_promised_is_refused():
    harness = totals({"account": pl.String(), "event_time": pl.Int64()})
    with pytest.raises(FunctionError, match="gave unknown columns total, promised account"):
        harness.push([{"account": "a", "amount": 1.0, "event_time": 7}])


def test_a_value_of_another_type_is_refused_with_its_column():
    harness = totals({"account": pl.Int64(), "total": pl.Float64(), "event_time": pl.Int64()})
    with pytest.raises(FunctionError, match="values of column 'account' that are not Int64"):
        harness.push([{"account": "a", "amount": 1.0, "event_time": 7}])


def test_a_state_cannot_be_used_outside_of_a_row():
    with pytest.raises(InternalError, match="was used outside of a row"):
        RunningTotal().total.get()


def test_rows_without_event_time_must_bring_their_own_when_the_result_has_it():
    class Forwards(hw.CoProcessFunction):
        def process_left(self, row, ctx):
            return [row]

        def process_right(self, row, ctx):
            return [{"sensor": row["name"], "value": row["factor"]}]

    operator = CoProcess(Forwards(), "Forwards", {"sensor": pl.String()}, ["name"], LEFT)
    harness = OperatorHarness(operator, keys=KEYS)
    with pytest.raises(FunctionError, match="gave a row without event_time"):
        harness.push([{"name": "door", "factor": 2}], port=1)


def test_event_time_cannot_be_changed():
    class Shifts(hw.KeyedProcessFunction):
        def process(self, row, ctx):
            yield row | {"event_time": row["event_time"] + 1}

    operator = KeyedProcess(Shifts(), "Shifts", {"sensor": pl.String()}, LEFT)
    harness = OperatorHarness(operator, keys=["sensor"])
    with pytest.raises(FunctionError, match="changed event_time from 3 to 4"):
        harness.push([{"sensor": "door", "value": 1, "event_time": 3}])


class Remembers(hw.KeyedProcessFunction):
    ratio = hw.ValueState(float)
    note = hw.ValueState(str, default="none")

    def process(self, row, ctx):
        before = self.ratio.get()
        self.ratio.set(row["amount"])
        yield {"account": repr((before, self.ratio.get())), "amount": row["amount"]}


def remembers(restored=()):
    schema = {"account": pl.String(), "amount": pl.Int64()}
    operator = KeyedProcess(Remembers(), "Remembers", {"account": pl.String()}, schema)
    return OperatorHarness(operator, keys=["account"], restored=restored)


def test_a_value_is_read_as_a_snapshot_would_give_it_back():
    first = remembers()
    first.push([{"account": "a", "amount": 2}, {"account": "a", "amount": 3}])
    second = remembers([first.snapshot()])
    second.push([{"account": "a", "amount": 4}])
    seen = [row["account"] for row in first.outputs["main"] + second.outputs["main"]]
    assert seen == ["(None, 2.0)", "(2.0, 3.0)", "(3.0, 4.0)"]


def test_a_value_that_the_state_cannot_hold_is_refused_at_its_row():
    with pytest.raises(FunctionError, match="state 'ratio' holds Float64: got 'much'; convert it"):
        remembers().push([{"account": "a", "amount": "much"}])


def test_a_state_of_lists_is_refused_because_they_change_in_place():
    with pytest.raises(GraphError, match="state cannot hold List"):
        hw.ValueState(pl.List(pl.Int64))
