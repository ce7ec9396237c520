"""Lengths of time: read as people write them, and written as they are read."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.durations import format_duration, parse_duration
from engine.errors import ConfigError


@given(st.integers(0, 10**16))
@settings(deadline=None)
def test_what_is_written_is_read_back(micros):
    assert parse_duration(format_duration(micros)) == micros


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0.1s", 100_000),
        ("5m", 300_000_000),
        ("5min", 300_000_000),
        (" 1d 2h ", 93_600_000_000),
        ("1us", 1),
        ("10 min", 600_000_000),
        ("2 hours 1 second", 7_201_000_000),
        ("PT1S", 1_000_000),
        ("P1DT2H30M0.5S", 95_400_500_000),
        (timedelta(milliseconds=3), 3_000),
        (7, 7),
    ],
)
def test_people_write_lengths_in_many_ways(text, micros):
    assert parse_duration(text) == micros


@pytest.mark.parametrize(
    "text",
    ["", " ", "5", "s", "1 parsec", "1s,", "x1s", "-1s", "0.1us", "1M", "P", "PT", "1P", "2 ss"],
)
def test_what_is_no_length_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match=r"delay is not a length of time: got .*; write e.g. "):
        parse_duration(text, "delay")
