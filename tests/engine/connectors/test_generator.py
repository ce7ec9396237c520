"""Generators: deterministic, out of order within their bound, balanced seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from math import fsum

import polars as pl
import pytest

from engine.connectors.generator import SensorGenerator
from engine.elements import Micros
from engine.errors import ConfigError, SourceError
from engine.testing.conformance import check_source

ANCHOR = datetime(2026, 1, 1, 0, 0, 0, 400_000, tzinfo=UTC)
AT = Micros(int(ANCHOR.timestamp()) * 1_000_000 + 400_000)
SECOND = 1_000_000


def readings(split: str, rate: int = 100, seconds: int = 3) -> pl.DataFrame:
    source = SensorGenerator(rate, rows=rate * seconds, anchor=ANCHOR, paced=False)
    frame = source.open(split, None).poll(1_000_000, AT).frame
    assert frame is not None
    return frame


@pytest.mark.parametrize("paced", [True, False])
def test_replays_from_every_position(paced: bool) -> None:
    check_source(lambda: SensorGenerator(20, rows=47, anchor=ANCHOR, paced=paced))


@pytest.mark.parametrize("rate", [2, 7, 100, 1_000])
def test_every_whole_second_of_pressure_sums_to_zero(rate: int) -> None:
    frame = readings("pressure", rate)
    seconds = frame.group_by(pl.col("time").dt.truncate("1s")).agg("value")
    assert seconds.height == 3
    for values in seconds["value"].to_list():
        assert len(values) == rate
        assert abs(fsum(values)) < 1e-9


@pytest.mark.parametrize("split", ["door", "pressure", "temperature"])
def test_rows_are_out_of_order_by_less_than_the_bound(split: str) -> None:
    times = readings(split)["time"]
    behind = times.cum_max() - times
    assert 0 < behind.dt.total_milliseconds().max() < 300  # type: ignore[operator]
    assert times.n_unique() == len(times)


def test_no_disorder_is_order() -> None:
    source = SensorGenerator(100, disorder_ms=0, rows=50, anchor=ANCHOR, paced=False)
    frame = source.open("door", None).poll(100, AT).frame
    assert frame is not None
    assert frame["time"].is_sorted()


def test_no_reading_comes_before_its_time() -> None:
    reader = SensorGenerator(100, anchor=ANCHOR).open("pressure", None)
    for tenth in range(30):
        now = Micros(AT + tenth * SECOND // 10)
        polled = reader.poll(1_000, now)
        if polled.frame is not None:
            assert polled.frame["time"].dt.epoch("us").max() <= now  # type: ignore[operator]


def test_the_rate_is_kept() -> None:
    reader = SensorGenerator(100, anchor=ANCHOR).open("door", None)
    polled = reader.poll(100_000, Micros(AT + 300_000 + 10 * SECOND))
    assert polled.frame is not None
    assert polled.frame.height == 1_000


def test_the_next_row_is_there_when_it_was_announced() -> None:
    reader = SensorGenerator(3, anchor=ANCHOR).open("door", None)
    announced = reader.poll(10, AT).retry_at
    assert announced is not None
    assert reader.poll(10, Micros(announced - 1)).frame is None
    assert reader.poll(10, announced).frame is not None


@pytest.mark.parametrize(("rate", "wait_ms"), [(1_000_000, 5), (25_600, 10), (100, 100), (5, 200)])
def test_a_reader_at_the_bar_comes_again_for_a_full_batch_or_after_a_short_while(
    rate: int, wait_ms: int
) -> None:
    reader = SensorGenerator(rate, disorder_ms=0, anchor=ANCHOR).open("door", None)
    first = reader.poll(10**9, Micros(AT + SECOND))
    assert first.frame is not None
    assert first.frame.height == rate
    assert first.retry_at == AT + SECOND + wait_ms * 1_000


def test_the_door_opens_and_closes() -> None:
    assert set(readings("door", seconds=12)["value"]) == {0.0, 1.0}


def test_an_endless_generator_needs_a_pace() -> None:
    with pytest.raises(ConfigError, match="needs a pace"):
        SensorGenerator(100, paced=False)


@pytest.mark.parametrize("numbers", [{"rate": 0}, {"rate": 2.5}, {"rate": 1, "rows": 1e6}])
def test_a_rate_or_number_of_rows_that_is_none_is_refused(numbers: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"(rate|rows) of a generator must be a whole number"):
        SensorGenerator(**numbers)  # type: ignore[arg-type]


def test_an_unknown_sensor_is_named() -> None:
    with pytest.raises(SourceError, match="no split 'window'"):
        SensorGenerator(1).open("window", None)
