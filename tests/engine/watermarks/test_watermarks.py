"""Event time and row watermarks of one split."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.elements import EVENT_TIME, MIN_TIME, ROW_WATERMARK
from engine.errors import ConfigError, FunctionError, GraphError
from engine.stream import Environment
from engine.testing.memory import MemorySource
from engine.watermarks import SplitWatermarks, bounded_out_of_orderness, event_times, monotonic

NOON = 1_577_880_000_000_000


def frame(times: list[int]) -> pl.DataFrame:
    return pl.DataFrame({"t": times}, schema={"t": pl.Int64})


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([datetime(2020, 1, 1, 12)], dtype=pl.Datetime("ns")),
        pl.Series([datetime(2020, 1, 1, 12)], dtype=pl.Datetime("ms")),
        pl.Series([datetime(2020, 1, 1, 12, tzinfo=UTC)]),
        pl.Series([datetime(2020, 1, 1, 7, tzinfo=ZoneInfo("America/New_York"))]),
    ],
)
def test_every_kind_of_time_is_the_same_moment(column: pl.Series) -> None:
    assert event_times(pl.DataFrame({"t": column}), "t").to_list() == [NOON]


def test_a_date_is_its_first_moment_in_utc() -> None:
    dates = pl.DataFrame({"t": [date(1970, 1, 2)]})
    assert event_times(dates, "t").to_list() == [86_400_000_000]


@pytest.mark.parametrize(
    ("unit", "value"), [("s", 7), ("ms", 7_000), ("us", 7_000_000), ("ns", 7_000_000_000)]
)
def test_an_integer_has_a_unit(unit: str, value: int) -> None:
    assert event_times(frame([value]), "t", unit).to_list() == [7_000_000]


def test_rows_in_order_have_no_row_watermark() -> None:
    stamped = SplitWatermarks(monotonic("t")).stamp(frame([1, 2, 2, 3]))
    assert stamped.columns == ["t", EVENT_TIME]


def test_only_rows_behind_the_watermark_carry_it() -> None:
    stamped = SplitWatermarks(bounded_out_of_orderness(2, column="t")).stamp(
        frame([10, 8, 7, 12, 9])
    )
    assert stamped[ROW_WATERMARK].to_list() == [None, None, 8, None, 10]


rows = st.lists(st.integers(-50, 50), min_size=1, max_size=30)


@settings(deadline=None)
@given(times=rows, bound=st.integers(0, 20), data=st.data())
def test_batches_and_restores_change_nothing(
    times: list[int], bound: int, data: st.DataObject
) -> None:
    strategy = bounded_out_of_orderness(bound, column="t")
    expected, highest = [], None
    for time in times:
        highest = time if highest is None else max(highest, time)
        expected.append(highest - bound if time < highest - bound else None)
    found: list[int | None] = []
    watermarks = SplitWatermarks(strategy)
    while times:
        cut = data.draw(st.integers(1, len(times)))
        stamped = watermarks.stamp(frame(times[:cut]))
        marks = stamped[ROW_WATERMARK] if ROW_WATERMARK in stamped.columns else [None] * cut
        found, times = [*found, *marks], times[cut:]
        watermarks = SplitWatermarks(strategy, watermarks.watermark)
    assert found == expected
    assert highest is not None
    assert watermarks.watermark == highest - bound


def test_a_watermark_starts_below_every_time() -> None:
    assert SplitWatermarks(monotonic("t")).watermark == MIN_TIME


def test_lengths_of_time_are_written_in_any_way() -> None:
    hour = 3_600_000_000
    assert bounded_out_of_orderness("1h", "t").bound == hour
    assert bounded_out_of_orderness(timedelta(hours=1), "t").bound == hour
    assert monotonic("t", idle_after="1h").idle_after == hour


def test_a_null_time_is_refused_with_the_row() -> None:
    rows = pl.DataFrame({"t": [1, None], "flight": ["UA1", "UA2"]})
    with pytest.raises(FunctionError, match=r"event time column 't' is null: row .*UA2"):
        SplitWatermarks(monotonic("t")).stamp(rows)


def test_a_column_that_is_no_time_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a time: it has type String"):
        event_times(pl.DataFrame({"t": ["noon"]}), "t")


@pytest.mark.parametrize(
    "settings", [{"bound": -1}, {"bound": 0, "idle_after": 0}, {"bound": 0, "unit": "minutes"}]
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="got"):
        bounded_out_of_orderness(column="t", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("unit", "dtype", "value"),
    [
        ("s", pl.Int64, NOON),
        ("ms", pl.Int64, -(2**62)),
        ("us", pl.UInt64, 2**63),
        ("us", pl.Int64, 2**63 - 1),
        ("ns", pl.Int128, 2**70),
    ],
)
def test_an_integer_that_is_too_large_for_its_unit_is_refused(
    unit: str, dtype: type[pl.DataType], value: int
) -> None:
    rows = pl.DataFrame({"t": [0, value]}, schema={"t": dtype})
    with pytest.raises(FunctionError, match=rf"'t' is out of range: got {value} {unit}: row"):
        event_times(rows, "t", unit)


@pytest.mark.parametrize("dtype", [pl.Datetime("us"), pl.Datetime("ms", "UTC"), pl.Date()])
@pytest.mark.parametrize("days", [-719_163, 2_932_897])
def test_a_time_of_no_year_that_python_has_is_refused(dtype: pl.DataType, days: int) -> None:
    a_day = 1 if dtype == pl.Date else 86_400_000 if dtype.time_unit == "ms" else 86_400_000_000
    inside, outside = days + (1 if days < 0 else -1), days
    numbers = pl.Series([inside * a_day, outside * a_day])
    rows = pl.DataFrame({"t": numbers.cast(pl.Int32 if a_day == 1 else pl.Int64).cast(dtype)})
    assert event_times(rows[:1], "t").to_list() == [inside * 86_400_000_000]
    wanted = rf"'t' is out of range: got {outside * 86_400_000_000} µs since 1970; use times"
    with pytest.raises(FunctionError, match=wanted):
        event_times(rows, "t")


@pytest.mark.parametrize("dtype", [pl.String(), pl.Float64(), pl.Time(), pl.Boolean()])
def test_a_column_that_cannot_be_event_time_is_refused_when_the_graph_is_built(
    dtype: pl.DataType,
) -> None:
    env = Environment("times")
    source = MemorySource({"a": pl.DataFrame(schema={"t": dtype})})
    with pytest.raises(GraphError, match=rf"source 'rows': event time column 't' .* type {dtype};"):
        env.source(source, uid="rows", watermarks=monotonic("t"))


def test_an_unknown_column_is_refused_when_the_graph_is_built() -> None:
    source = MemorySource({"a": pl.DataFrame(schema={"t": pl.Int64, "n": pl.Int64})})
    with pytest.raises(GraphError, match="got 'time'; it has t, n"):
        Environment("times").source(source, uid="rows", watermarks=monotonic("time"))
