"""Line protocol: what is read, what is refused, and that nothing is lost between the two."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from influxdb_client import Point as ClientPoint
from influxdb_client import WritePrecision

from controlplane.metrics.line_protocol import parse, tags_of

NOW = 1_700_000_000_000_000_000

# What the client's serializer itself cannot carry: it writes control characters as two
# characters, and it writes a backslash at the end of a name as an escaped space.
characters = st.characters(codec="utf-8", exclude_characters="\n\r\t")
names = st.text(characters, min_size=1, max_size=12).filter(lambda name: not name.endswith("\\"))
measurements = names.filter(lambda name: not name.startswith("#") and not name.startswith('"'))
values = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.text(st.characters(codec="utf-8"), max_size=20)
)


@given(
    measurements,
    st.dictionaries(names, names, max_size=4),
    st.dictionaries(names, values, min_size=1, max_size=4),
    st.integers(-(2**62), 2**62),
)
def test_reads_whatever_the_influxdb_client_writes(measurement, tags, fields, time_ns):
    point = ClientPoint(measurement).time(time_ns, WritePrecision.NS)
    for name, value in tags.items():
        point.tag(name, value)
    for name, value in fields.items():
        point.field(name, value)
    parsed = parse(point.to_line_protocol() + "\n", now_ns=NOW)
    assert parsed.rejected == []
    (read,) = parsed.points
    assert (read.measurement, read.tags, read.time_ns) == (
        measurement,
        tags_of(tags.items()),
        time_ns,
    )
    assert dict(read.fields) == fields


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_and_never_lost(text):
    parsed = parse(text, now_ns=NOW)
    for point in parsed.points:
        assert point.measurement
        assert point.fields
        assert all(not isinstance(v, float) or math.isfinite(v) for _, v in point.fields)


def test_a_kept_line_between_bad_ones_keeps_its_number():
    parsed = parse("m f=1\nm\n# comment\n\nm,a= f=1\nm f=2 7\n", now_ns=NOW)
    assert parsed.lines == [1, 6]
    assert [bad.line for bad in parsed.rejected] == [2, 5]
    assert [point.time_ns for point in parsed.points] == [NOW, 7]


def test_line_breaks_inside_a_string_belong_to_it():
    parsed = parse('m f="a\nb" 1\nm f=2 2', now_ns=NOW)
    assert [dict(point.fields)["f"] for point in parsed.points] == ["a\nb", 2.0]


def test_windows_line_ends_are_line_ends():
    parsed = parse("m f=1 5\r\nm f=2\r\n", now_ns=NOW)
    assert [point.time_ns for point in parsed.points] == [5, NOW]
    assert parsed.rejected == []


@pytest.mark.parametrize(("precision", "factor"), [("s", 10**9), ("ms", 10**6), ("us", 1000)])
def test_timestamps_become_nanoseconds(precision, factor):
    (point,) = parse("m f=1 12", now_ns=NOW, precision=precision).points
    assert point.time_ns == 12 * factor


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("m", "no field"),
        (",a=b f=1", "no measurement"),
        ("m,a f=1", "needs a name, '=' and a value"),
        ("m,a=1,a=2 f=1", "there twice"),
        ("m,=1 f=1", "needs a name"),
        ("m f=", "no field"),
        ("m f=1,", "after the comma"),
        ("m f=nan", "no number"),
        ("m f=1e999", "does not fit a float"),
        ("m f=9223372036854775808i", "does not fit 64 bits"),
        ("m f=18446744073709551615u", "does not fit 64 bits"),
        ("m f=-1u", "no number"),
        ('m f="open', "no field"),
        ('m f="a"b', "not a timestamp"),
        ("m f=1 2 3", "not a timestamp"),
        ("m f=1 soon", "not a timestamp"),
        ("m f=1 99999999999999999999", "out of range"),
        ("m f=yes", "no number"),
    ],
)
def test_a_line_that_cannot_be_read_says_why(line, reason):
    parsed = parse(line, now_ns=NOW)
    assert parsed.points == []
    assert reason in parsed.rejected[0].reason


def test_a_long_bad_line_costs_linear_time():
    text = "m," + "\\,=" * 100_000
    parsed = parse(text, now_ns=NOW)
    assert len(parsed.rejected) == 1
    assert len(parsed.rejected[0].text) == 200
