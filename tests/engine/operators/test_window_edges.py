"""Windows that keep their rows, at their edges: equal times, what is left, the clock, mistakes."""

from __future__ import annotations

import polars as pl
import pytest

import engine as hw
from engine import agg, evictors, triggers, windows
from engine.elements import MAX_TIME
from engine.errors import FunctionError
from engine.operators.windows.rows import setup
from engine.testing.harness import OperatorHarness
from engine.testing.memory import MemorySource
from fixtures.kept_windows import IN, applied, keyed, operator_of, play

RESULT = triggers.TriggerResult


def values(operator, *script):
    return [row["values"] for row in play(operator, script)[0]]


def harness(operator, restored=()):
    return OperatorHarness(operator, keys=["key"], restored=restored)


def push(job, *rows):
    """(n, event time, row watermark) of rows of one key."""
    schema = {**IN, "row_watermark": pl.Int64()}
    job.push(pl.DataFrame([("a", n, at, at, mark) for n, at, mark in rows], schema, orient="row"))


def results(job):
    return [row["values"] for row in job.outputs["main"]]


@pytest.mark.parametrize(("second", "found"), [(3, [[1, 2]]), (4, [[1], [2]]), (5, [[1], [2]])])
def test_a_session_begins_anew_when_a_row_comes_a_gap_later(second, found):
    assert values(applied(windows.session(4)), ("a", 1, 0), ("a", 2, second)) == found


@pytest.mark.parametrize(("second", "found"), [(-3, [[1, 2]]), (-4, [[2], [1]])])
def test_a_session_ends_before_one_that_begins_a_gap_later(second, found):
    job = harness(applied(windows.session(4), triggers.event_time(), allowed=3))
    push(job, (1, 0, None), (2, second, 1))
    job.advance(MAX_TIME)
    assert results(job) == found


@pytest.mark.parametrize(("mark", "found"), [(3, [[1, 2]]), (4, [[1], [2]])])
def test_a_row_that_has_its_turn_when_a_session_is_over_does_not_join_it(mark, found):
    job = harness(applied(windows.session(4)))
    push(job, (1, 0, None), (2, 1, mark))
    job.advance(MAX_TIME)
    assert results(job) == found


def test_a_row_whose_turn_is_the_end_of_its_window_is_late_for_the_result():
    job = harness(applied(windows.tumbling(4), triggers.event_time(), allowed=2))
    push(job, (1, 0, None), (2, 1, 4))
    job.advance(MAX_TIME)
    found = [(row["values"], row["row_watermark"]) for row in job.outputs["main"]]
    assert found == [([1], None), ([1, 2], 4)]


@pytest.mark.parametrize(("mark", "is_late"), [(5, False), (6, True)])
def test_a_row_is_late_at_the_end_of_the_allowed_lateness(mark, is_late):
    job = harness(applied(windows.tumbling(4), triggers.event_time(), allowed=2))
    push(job, (1, 0, mark))
    assert bool(job.outputs["late"]) is is_late
    assert job.counters == ({"numLateRecordsDropped": 1} if is_late else {})


def test_a_row_is_late_at_the_end_of_its_window_without_allowed_lateness():
    job = harness(applied(windows.tumbling(4)))
    push(job, (1, 0, 4), (2, 0, 3))
    job.advance(MAX_TIME)
    assert [row["n"] for row in job.outputs["late"]] == [1]
    assert results(job) == [[2]]


def test_a_row_may_be_late_for_one_window_and_in_time_for_the_next():
    job = harness(applied(windows.sliding(4, 2)))
    push(job, (1, 1, None), (2, 1, 2))
    job.advance(MAX_TIME)
    assert [(row["event_time"], row["values"]) for row in job.outputs["main"]] == [
        (1, [1]),
        (3, [1, 2]),
    ]


@pytest.mark.parametrize("window", [windows.tumbling(2), windows.session(2)])
def test_windows_that_fire_step_by_step_give_the_same(monkeypatch, window):
    rows = [("abc"[n % 3], n, n // 2) for n in range(24)]
    whole = values(applied(window, triggers.continuous_event_time(1)), *rows)
    monkeypatch.setattr(setup, "MOST_DUE", 1)
    assert values(applied(window, triggers.continuous_event_time(1)), *rows) == whole


def test_rows_of_one_time_come_by_value_however_they_came():
    count = triggers.purging(triggers.count(2))
    one, two = ("a", 1, 5), ("a", 2, 5)
    three = ("a", 3, 5)
    for script in ([one, two, three], [three, "cut", two, 2, one]):
        assert values(applied(windows.global_(), count), *script) == [[1, 2]]


@pytest.mark.parametrize("window", [windows.tumbling(4), windows.sliding(4, 2), windows.session(4)])
@pytest.mark.parametrize("kept", ["apply", "reduce", "count"])
def test_nothing_is_left_of_windows_that_are_over(window, kept):
    match kept:
        case "apply":
            operator = applied(window, triggers.continuous_event_time(2), allowed=2)
        case "reduce":
            operator = operator_of(keyed().window(window).reduce(lambda one, other: other))
        case _:
            operator = applied(window, triggers.count(5))
    job = harness(operator)
    push(job, (1, 0, None), (2, 1, None), (3, 3, None))
    job.advance(2)
    assert any(table.height for table in job.snapshot().tables.values())
    job.advance(20)
    assert [name for name, table in job.snapshot().tables.items() if table.height] == []


def test_rows_that_were_purged_are_gone_from_state():
    job = harness(applied(windows.global_(), triggers.purging(triggers.count(2))))
    push(job, (1, 0, None))
    job.advance(2)
    assert job.snapshot().tables["window.rows"]["n"].to_list() == [1]
    push(job, (2, 3, None), (3, 4, None))
    job.advance(9)
    tables = job.snapshot().tables
    assert tables["window.rows"]["n"].to_list() == [3]
    assert tables["trigger.count"]["value"].to_list() == [1]


def test_state_is_readable():
    job = harness(applied(windows.tumbling(4), triggers.count(5)))
    push(job, (7, 1, None), (8, 2, None))
    job.advance(3)
    rows = job.snapshot().tables["window.rows"].drop("key_group").rows(named=True)
    assert rows[1] == {
        "key": "a",
        "pane.start": 0,
        "pane.end": 4,
        "row.index": 1,
        "n": 8,
        "at": 2,
        "event_time": 2,
    }


def test_a_delta_evictor_keeps_what_is_near_the_last_row():
    operator = applied(windows.tumbling(9), evictor=evictors.delta(2, "n"))
    rows = [("a", n, at) for at, n in enumerate([1, 4, 3, 0, 2])]
    assert values(operator, *rows) == [[1, 3, 2]]


def test_rows_evicted_after_the_result_are_in_it_and_not_in_the_next():
    operator = applied(windows.global_(), triggers.count(2), evictor=evictors.count(1, after=True))
    rows = [("a", n, n) for n in range(6)]
    assert values(operator, *rows) == [[0, 1], [1, 2, 3], [3, 4, 5]]


def test_aggregates_are_those_of_the_rows_that_are_left():
    windowed = keyed().window(windows.global_()).trigger(triggers.count(2))
    stream = windowed.evictor(evictors.count(3)).agg(n=agg.count(), last=agg.last("n"))
    found, _ = play(operator_of(stream), [("a", n, n) for n in range(4)])
    assert [(row["n"], row["last"]) for row in found] == [(2, 1), (3, 3)]


def test_a_continuous_trigger_fires_by_the_clock_when_rows_came_and_at_the_end():
    operator = applied(windows.tumbling(100), triggers.continuous_processing_time(10))
    job = harness(operator)
    job.tick(1_000)
    push(job, (1, 5, None), (2, 6, None))
    job.advance(6)
    job.tick(1_009)
    assert results(job) == []
    job.tick(1_010)
    job.tick(1_030)
    assert results(job) == [[1]]
    job.advance(8)
    again = harness(operator, restored=[job.snapshot()])
    again.tick(1_040)
    again.advance(100)
    again.tick(1_090)
    assert results(again) == [[1, 2], [1, 2]]


def test_a_continuous_trigger_is_silent_after_the_end_while_late_rows_are_allowed():
    trigger = triggers.continuous_processing_time(10)
    job = harness(applied(windows.tumbling(100), trigger, allowed=50))
    job.tick(1_000)
    push(job, (1, 5, None), (2, 6, 120))
    job.advance(101)
    job.tick(1_050)
    assert results(job) == [[1]]
    job.advance(121)
    assert results(job) == [[1], [1, 2]]


def test_a_processing_time_trigger_fires_when_the_clock_passes_the_end():
    job = harness(applied(windows.tumbling(100), triggers.processing_time()))
    job.tick(10)
    push(job, (1, 5, None))
    job.advance(50)
    job.tick(99)
    assert results(job) == []
    job.tick(100)
    assert results(job) == [[1]]


@pytest.mark.parametrize(
    ("window", "found"),
    [
        (lambda stream: stream.count_window(2), [[0, 1], [2, 3]]),
        (lambda stream: stream.count_window(3, slide=2), [[0, 1], [1, 2, 3]]),
    ],
)
def test_a_count_window_gathers_rows_by_their_number(window, found):
    listed = window(keyed()).agg(values=agg.collect("n"))
    results, _ = play(operator_of(listed), [("a", n, n) for n in range(5)])
    assert [row["values"] for row in results] == found


def untimed():
    source = MemorySource({"x": pl.DataFrame(schema={"key": pl.String, "n": pl.Int64})})
    return hw.Environment("test").source(source).key_by("key")


def test_without_event_time_rows_are_counted_as_they_come():
    windowed = untimed().window(windows.global_()).trigger(triggers.count(2))
    job = harness(operator_of(windowed.agg(total=agg.sum("n"))))
    job.push([{"key": "a", "n": 1}, {"key": "b", "n": 2}])
    job.push([{"key": "a", "n": 3}])
    assert job.outputs["main"] == [{"key": "a", "total": 4}]


def test_an_apply_sees_its_window_and_all_columns():
    def look(rows, ctx):
        facts = f"{rows.columns} {rows['key'].to_list()} {ctx}"
        return rows.select("n", facts=pl.lit(facts))

    windowed = keyed().window(windows.tumbling(4))
    stream = windowed.apply(look, schema={"n": int, "facts": str})
    assert list(stream.schema) == ["key", "window_start", "window_end", "n", "facts", "event_time"]
    job = harness(operator_of(stream))
    push(job, (1, 0, None), (2, 1, None))
    job.advance(5)
    [first, second] = job.outputs["main"]
    assert (first["n"], second["n"]) == (1, 2)
    assert first["facts"] == (
        "['key', 'n', 'at', 'event_time'] ['a', 'a'] "
        "WindowContext(key=('a',), start=0, end=4, watermark=4)"
    )


class Deeds(triggers.Trigger):
    def __init__(self, deed):
        self.deed = deed

    def on_element(self, row, ctx):
        return self.deed(ctx)

    def on_event_time(self, time, ctx):
        ctx.register_event_time_timer(time + 1)
        return RESULT.CONTINUE


def applying(function, schema=None):
    windowed = keyed().window(windows.tumbling(4))
    return operator_of(windowed.apply(function, schema=schema or {"m": int}))


class Broken(evictors.Evictor):
    def evict_before(self, rows):
        return rows.select("n")


@pytest.mark.parametrize(
    ("operator", "sentence"),
    [
        (lambda: applying(lambda rows, ctx: 1 / 0), "apply '<lambda>' raised ZeroDivisionError"),
        (lambda: applying(lambda rows, ctx: rows.select("n")), "other columns than it promised"),
        (lambda: applying(lambda rows, ctx: 7), "returned other columns .*: got 7"),
        (lambda: applied(windows.tumbling(4), Deeds(lambda ctx: 1 / 0)), "trigger 'Deeds' raised"),
        (lambda: applied(windows.tumbling(4), Deeds(lambda ctx: True)), "return a TriggerResult"),
        (
            lambda: applied(
                windows.tumbling(4), Deeds(lambda ctx: ctx.register_event_time_timer(1.5))
            ),
            "registers a timer at no time: got 1.5",
        ),
        (
            lambda: applied(
                windows.tumbling(4), Deeds(lambda ctx: ctx.register_processing_time_timer(9))
            ),
            "uses a processing-time timer that nobody hears",
        ),
        (
            lambda: applied(windows.tumbling(4), evictor=Broken()),
            "evictor 'Broken' changed the col",
        ),
        (
            lambda: operator_of(keyed().window(windows.tumbling(4)).reduce(lambda a, b: {"x": 1})),
            "reduce '<lambda>' gave {'x': 1}, which are not the fields n, at",
        ),
        (
            lambda: operator_of(
                keyed().window(windows.tumbling(4)).reduce(lambda a, b: {"n": "many"})
            ),
            "reduce '<lambda>' gave n = 'many', which is not Int64",
        ),
    ],
)
def test_what_an_author_does_wrong_is_told_with_the_row(operator, sentence):
    job = harness(operator())
    push(job, (1, 0, None), (2, 1, None))
    with pytest.raises(FunctionError, match=sentence):
        job.advance(MAX_TIME)


def test_timers_that_register_the_next_for_ever_end_the_job_with_a_sentence():
    def begin(ctx):
        ctx.register_event_time_timer(ctx.event_time + 1)
        return RESULT.CONTINUE

    job = harness(applied(windows.global_(), Deeds(begin)))
    push(job, (1, 0, None))
    with pytest.raises(FunctionError, match="trigger 'Deeds' never ends"):
        job.advance(MAX_TIME)
