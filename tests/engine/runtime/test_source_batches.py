"""What the batches of a source cost."""

from __future__ import annotations

import polars as pl

from engine.connectors.contract import Polled, Source, SplitReader
from engine.elements import MIN_TIME, Micros
from engine.operators.sources.source import RETRY_AFTER, SourceOperator, SourceRun
from engine.operators.sources.source_splits import OpenSplit, SplitState
from engine.runtime.source_batches import BatchMeter


def test_a_batch_counts_in_the_second_in_which_it_was_handed_on():
    meter = BatchMeter()
    meter.begin(Micros(900_000), 10, 5_000)
    meter.end(Micros(1_100_000))
    meter.begin(Micros(1_200_000), 2, 0)
    meter.end(Micros(1_250_000))
    assert meter.take() == {"1": (2, 12, 5_000, 250_000, 5_000, 200_000, 205_000)}
    assert meter.take() == {}


def test_a_batch_that_is_not_handed_on_yet_is_told_later():
    meter = BatchMeter()
    meter.begin(Micros(0), 10, 0)
    assert meter.is_open
    assert meter.take() == {}
    meter.end(Micros(1))
    assert meter.take()["0"][1] == 10


class Script(Source):
    """Gives what it is told to, poll by poll."""

    schema = {"n": pl.Int64()}

    def __init__(self, *polls: Polled) -> None:
        self.polls = list(polls)

    def splits(self):
        return ["all"]

    def open(self, split, position):
        return ScriptReader(self.polls)


class ScriptReader(SplitReader):
    position = None

    def __init__(self, polls: list[Polled]) -> None:
        self._polls = polls

    def poll(self, max_rows, now):
        return self._polls.pop(0)


ROWS = pl.DataFrame({"n": [1]})


def queued(*polls: tuple[int, Polled]) -> list[int]:
    run = SourceRun(SourceOperator(Script(*(polled for _, polled in polls))), 0, 1, {})
    found = []
    for at, _ in polls:
        run.poll(Micros(at), 10, 0)
        found.append(run.queued)
    return found


def test_rows_that_follow_others_at_once_were_ready_when_those_were_read():
    assert queued((50, Polled(ROWS)), (80, Polled(ROWS))) == [0, 30]


def test_rows_after_silence_were_ready_when_the_source_wanted_to_be_asked():
    late = 50 + RETRY_AFTER + 7
    assert queued((50, Polled()), (late, Polled(ROWS))) == [0, 7]


def test_a_reader_that_knows_when_its_rows_came_is_believed():
    assert queued((50, Polled(ROWS, ready_at=Micros(20)))) == [30]
    assert queued((50, Polled(ROWS, ready_at=Micros(60)))) == [0]


def test_the_first_rows_of_a_split_were_not_ready_before_it_was_opened():
    split = OpenSplit("a", None, SplitState(None), None)
    assert split.again_at == MIN_TIME
    assert split.queued(Micros(9), None) == 0
