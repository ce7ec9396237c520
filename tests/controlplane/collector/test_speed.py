"""The speed meter: the slope of a line of points, and when there is none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controlplane.collector.speed import WINDOW_MS, SpeedMeter


def test_one_point_is_no_line():
    assert SpeedMeter().speed(0, 5.0) is None


def test_speed_is_event_time_per_wall_time():
    meter = SpeedMeter()
    meter.speed(0, 0.0)
    assert meter.speed(1_000, 86_400_000.0) == 86_400.0


def test_a_job_that_stands_still_has_speed_zero_once_the_window_has_passed():
    meter = SpeedMeter()
    meter.speed(0, 0.0)
    meter.speed(1_000, 5_000.0)
    for wall_ms in range(2_000, 2_000 + WINDOW_MS + 1_000, 1_000):
        speed = meter.speed(wall_ms, 5_000.0)
    assert speed == 0.0


def test_a_restart_begins_a_new_line():
    meter = SpeedMeter()
    meter.speed(0, 0.0)
    meter.speed(1_000, 9_000.0)
    assert meter.speed(2_000, 4_000.0) is None
    assert meter.speed(3_000, 6_000.0) == 2.0


def test_an_unknown_position_has_no_speed():
    meter = SpeedMeter()
    meter.speed(0, 0.0)
    assert meter.speed(1_000, None) is None
    assert meter.speed(2_000, 5.0) is None


@given(st.floats(0.001, 1e6), st.integers(2, 40))
def test_a_steady_job_has_its_own_speed_however_long_it_runs(pace, looks):
    meter = SpeedMeter()
    speeds = [meter.speed(look * 1_000, pace * look * 1_000) for look in range(looks)]
    assert abs(speeds[-1] - pace) <= 1e-6 * pace
