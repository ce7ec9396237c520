"""The truth itself: it counts every flight once, and differs where it should."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from examples.truth import Cut, Rule, flights, truth, truth_from, v1, v2

ROWS = 336_776
ORIGINS = {"EWR": 120_835, "JFK": 111_279, "LGA": 104_662}
START = datetime(2013, 1, 1, tzinfo=UTC)
END = datetime(2014, 1, 3, tzinfo=UTC)


@pytest.mark.parametrize("rule", [v1, v2])
def test_every_flight_is_in_one_window(rule: Rule) -> None:
    daily = truth(rule)
    assert daily["flights"].sum() == ROWS
    assert daily["cancelled"].sum() == 8_255
    assert not daily.select("carrier", "origin", "window_start").is_duplicated().any()


def test_no_flight_is_late() -> None:
    """The stream may be a day out of order: no row is further behind in its own split."""
    reached = pl.col("departure").cum_max().over("origin")
    behind = flights().select((reached - pl.col("departure")).max()).item()
    assert behind.total_seconds() < 24 * 3_600


def test_the_correction_changes_days_with_cancelled_flights_only() -> None:
    old, new = truth(v1), truth(v2)
    same = pl.col("cancelled") == 0
    assert_frame_equal(old.filter(same), new.filter(same))
    assert old.filter(~same)["mean_delay"].ne_missing(new.filter(~same)["mean_delay"]).mean() > 0.9


def test_a_day_on_which_all_were_cancelled_has_no_delay() -> None:
    none_left = truth(v2).filter(pl.col("cancelled") == pl.col("flights"))
    assert none_left.height > 0
    assert none_left["mean_delay"].null_count() == none_left.height
    assert none_left["max_delay"].null_count() == none_left.height


def test_a_cut_before_all_rows_is_the_new_rule_and_after_them_the_old_one() -> None:
    nothing = Cut(dict.fromkeys(ORIGINS, 0), START)
    everything = Cut(ORIGINS, START)
    assert_frame_equal(truth_from(v1, v2, nothing), truth(v2))
    assert_frame_equal(truth_from(v1, v2, everything), truth(v1))


def test_windows_that_had_fired_at_the_cut_are_not_fired_again() -> None:
    march = datetime(2013, 3, 15, tzinfo=UTC)
    daily = truth_from(v1, v2, Cut(dict.fromkeys(ORIGINS, 20_000), march))
    assert daily["window_end"].min() == datetime(2013, 3, 16, tzinfo=UTC)
    assert truth_from(v1, v2, Cut(ORIGINS, END)).is_empty()
