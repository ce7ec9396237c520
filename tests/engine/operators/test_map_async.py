"""Asynchronous functions: order, snapshots, room and failures, with answers made by the test."""

from __future__ import annotations

import asyncio
import pickle

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.elements import EndOfInput, Idle, Watermark
from engine.errors import FunctionError, RequestFailed
from engine.operators.asking.in_flight import Entry, InFlight
from engine.operators.asking.map_async import Asking, MapAsync
from engine.operators.asking.requests import Answer
from engine.testing.answers import answered
from engine.testing.harness import OperatorHarness

TAKEN = {"n": pl.Int64(), "event_time": pl.Int64()}
GIVEN = {"n": pl.Int64(), "square": pl.Int64(), "event_time": pl.Int64()}


async def squared(row):
    return row | {"square": row["n"] ** 2}


def mapped(function=squared, subtask=0, parallelism=1, restored=(), **asking):
    operator = MapAsync(function, function.__name__, TAKEN, GIVEN, Asking(**asking))
    return OperatorHarness(operator, subtask=subtask, parallelism=parallelism, restored=restored)


def batch(*numbers, late=()):
    marks = [900 if n in late else None for n in numbers]
    columns = {"n": numbers, "event_time": [n * 10 for n in numbers], "row_watermark": marks}
    return pl.DataFrame(columns, {**TAKEN, "row_watermark": pl.Int64()})


def answer(harness, *picks):
    """Answer the requests at these places, in this order; all without any."""
    asked = list(harness.requests)
    chosen = [asked[pick % len(asked)] for pick in picks] if picks else asked
    chosen = list(dict.fromkeys(chosen))
    for request in chosen:
        harness.requests.remove(request)
    harness.answer(answered(chosen))


def numbers(harness):
    return [row["n"] for row in harness.outputs["main"]]


# In flight: the order in which rows and elements leave.

steps = st.lists(st.integers(1, 3) | st.just("watermark") | st.just("idle"), max_size=8)


@given(steps, st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_rows_and_elements_leave_in_their_order_whatever_the_order_of_answers(
    script, ordered, luck
):
    flight, entered, left = InFlight(ordered=ordered), [], []
    waiting: list[Entry] = []
    for step in script:
        if isinstance(step, int):
            rows = [Entry((0, len(entered) + row), None, None, None) for row in range(step)]
            flight.add(rows)
            waiting += rows
            entered += rows
            continue
        element = Watermark(len(entered)) if step == "watermark" else Idle()
        if flight.hold(element):
            entered.append(element)
    while waiting:
        flight.finish(waiting.pop(luck.randrange(len(waiting))), ())
        for leaving in flight.take():
            left += leaving if isinstance(leaving, list) else [leaving]
    assert len(flight) == 0
    assert segments(left, sort=not ordered) == segments(entered, sort=not ordered)


def segments(sequence, *, sort):
    """Rows between elements, and of elements without rows between what they come to."""
    found: list[tuple[list, list]] = [([], [])]
    for each in sequence:
        rows, ends = found[-1]
        if isinstance(each, Entry):
            if ends:
                found.append(([each.key], []))
            else:
                rows.append(each.key)
        else:
            if isinstance(each, Watermark):
                ends.clear()
            ends.append(each)
    return [(sorted(rows) if sort else rows, ends) for rows, ends in found]


def test_the_end_of_input_stays_behind_the_last_watermark():
    flight = InFlight(ordered=True)
    (row,) = [Entry((0, 0), None, None, None)]
    flight.add([row])
    assert flight.hold(Watermark(7))
    assert flight.hold(EndOfInput())
    assert list(flight.take()) == []
    flight.finish(row, ())
    assert list(flight.take()) == [[row], Watermark(7), EndOfInput()]


# The operator.


def test_rows_leave_as_they_came_when_ordered():
    harness = mapped()
    harness.push(batch(1, 2, 3))
    answer(harness, 2)
    assert numbers(harness) == []
    answer(harness, 0)
    assert numbers(harness) == [1]
    answer(harness)
    assert numbers(harness) == [1, 2, 3]


def test_rows_leave_as_they_are_answered_when_unordered_but_not_past_a_watermark():
    harness = mapped(ordered=False)
    harness.push(batch(1, 2))
    harness.advance(25)
    harness.push(batch(3))
    answer(harness, 1, 2)
    assert numbers(harness) == [2]
    assert harness.released == []
    answer(harness)
    assert numbers(harness) == [2, 1, 3]
    assert harness.released == [Watermark(25)]


def test_a_watermark_passes_when_nothing_is_in_flight():
    harness = mapped()
    harness.push(batch(1))
    answer(harness)
    harness.advance(25)
    assert harness.released == []
    assert harness.snapshot().watermark == 25


def test_rows_keep_their_event_time_and_lateness():
    harness = mapped()
    harness.push(batch(1, 2, late=[2]))
    answer(harness)
    assert harness.outputs["main"] == [
        {"n": 1, "square": 1, "event_time": 10, "row_watermark": None},
        {"n": 2, "square": 4, "event_time": 20, "row_watermark": 900},
    ]


def test_no_more_rows_are_asked_for_than_there_is_room_for():
    harness = mapped(capacity=2)
    harness.push(batch(1, 2, 3))
    assert len(harness.requests) == 2
    assert harness._operator.is_full
    answer(harness, 0)
    assert len(harness.requests) == 2
    answer(harness, 0)
    assert not harness._operator.is_full


def test_an_answer_may_be_no_row_or_several():
    async def repeated(row):
        return [{"n": row["n"], "square": 0}] * row["n"] if row["n"] else None

    harness = mapped(repeated)
    harness.push(batch(0, 1, 2))
    answer(harness)
    assert numbers(harness) == [1, 2, 2]


def test_a_function_of_many_rows_is_called_with_as_many_as_it_takes():
    async def together(rows):
        return [row | {"square": len(rows)} for row in rows]

    harness = mapped(together, rows_per_call=2)
    harness.push(batch(1, 2, 3))
    answer(harness)
    assert [(row["n"], row["square"]) for row in harness.outputs["main"]] == [
        (1, 2),
        (2, 2),
        (3, 1),
    ]


@given(
    st.lists(st.integers(0, 4) | st.tuples(st.integers(0, 9)) | st.just("rescale"), max_size=15),
    st.booleans(),
    st.lists(st.integers(1, 3), min_size=15, max_size=15),
)
@settings(max_examples=60, deadline=None)
def test_each_row_has_one_result_through_any_crash_and_rescale(script, ordered, parallelisms):
    """`script`: numbers of new rows, places of answers, and rescales."""
    subtasks, done, next_row = [mapped(ordered=ordered, capacity=3)], [], 0

    def collect():
        return [numbers(each) for each in subtasks]

    for step in script:
        if isinstance(step, int) and step:
            subtasks[next_row % len(subtasks)].push(batch(*range(next_row, next_row + step)))
            next_row += step
        elif isinstance(step, tuple):
            for each in subtasks:
                if each.requests:
                    answer(each, *step)
        elif step == "rescale":
            done += collect()
            restored = [each.snapshot() for each in subtasks]
            count = parallelisms.pop()
            subtasks = [
                mapped(squared, number, count, restored, ordered=ordered, capacity=3)
                for number in range(count)
            ]
    for each in subtasks:
        while each.requests:
            answer(each)
    done += collect()
    assert sorted(n for rows in done for n in rows) == list(range(next_row))
    assert all(each.snapshot().tables["rows.in_flight"].is_empty() for each in subtasks)


def test_rows_of_one_subtask_stay_in_order_through_a_restore():
    first = mapped(capacity=2)
    first.push(batch(1, 2, 3, 4))
    answer(first, 0)
    second = mapped(restored=[first.snapshot()])
    second.push(batch(5))
    answer(second)
    assert numbers(first) + numbers(second) == [1, 2, 3, 4, 5]


def test_an_operator_can_be_pickled_into_the_graph():
    operator = MapAsync(squared, "squared", TAKEN, GIVEN, Asking())
    assert pickle.loads(pickle.dumps(operator)).describe()["function"] == "squared"


# Failures.


def late(harness):
    (request,) = harness.requests
    harness.answer([Answer(request.number, error=TimeoutError(), timed_out=True)])


def test_no_answer_in_time_fails_with_the_row():
    harness = mapped(timeout=1_000_000)
    harness.push(batch(7))
    with pytest.raises(
        RequestFailed, match=r"'squared' got no answer within 1000000 µs: row.*'n': 7"
    ):
        late(harness)


def test_no_answer_in_time_may_give_a_row_instead():
    harness = mapped(timeout=1, on_timeout=lambda row: row | {"square": None})
    harness.push(batch(7))
    late(harness)
    assert harness.outputs["main"] == [{"n": 7, "square": None, "event_time": 70}]


async def broken(row):
    raise ValueError("no square")


async def unreachable(row):
    raise ConnectionRefusedError("nobody is there")


async def wrong(row):
    return 7


async def unknown(row):
    return row | {"cube": 1}


async def alone(rows):
    return rows[0]


@pytest.mark.parametrize(
    ("function", "fault", "sentence"),
    [
        (broken, FunctionError, r"map_async 'broken' raised ValueError: no square: row \{'n': 7"),
        (
            unreachable,
            RequestFailed,
            r"raised ConnectionRefusedError: nobody is there: row \{'n': 7",
        ),
        (wrong, FunctionError, r"map_async 'wrong' gave 7: row \{'n': 7"),
        (unknown, FunctionError, r"gave unknown columns cube.*: row \{'n': 7"),
    ],
)
def test_what_goes_wrong_is_told_with_the_row_and_its_cause(function, fault, sentence):
    harness = mapped(function)
    harness.push(batch(7))
    with pytest.raises(fault, match=sentence):
        answer(harness)


def test_a_function_of_many_rows_must_give_one_result_for_each():
    harness = mapped(alone, rows_per_call=5)
    harness.push(batch(7, 8))
    with pytest.raises(FunctionError, match=r"gave \{'n': 7.*for 2 rows: first row \{'n': 7"):
        answer(harness)


def test_a_failed_attempt_is_made_again():
    attempts = []

    async def flaky(row):
        attempts.append(row["n"])
        await asyncio.sleep(0)
        if len(attempts) < 3:
            raise ConnectionResetError
        return row | {"square": len(attempts)}

    harness = mapped(flaky, retries=2)
    harness.push(batch(7))
    answer(harness)
    assert harness.outputs["main"][0]["square"] == 3
