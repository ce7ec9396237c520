"""The InfluxDB sink on a real InfluxDB: what it keeps, and what it says to what cannot be kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import polars as pl
import pytest

from engine.connectors.contract import SinkContext
from engine.connectors.influx import InfluxSink
from engine.errors import DataError
from engine.testing.cluster import PATIENCE_S
from engine.testing.conformance import check_idempotent_sink
from fixtures import influxd

pytestmark = pytest.mark.integration

CONTEXT = SinkContext("job", "attempt", 0, 1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON = 1_764_504_000_000_000


@pytest.fixture
def server(influx: str) -> str:
    influxd.bucket(influx, "outputs")
    return influx


def rows_of(server: str, measurement: str) -> list[dict[str, object]]:
    """Every point of a measurement, its tags among its columns."""
    asked = {"db": "outputs", "epoch": "u", "q": f'SELECT * FROM "{measurement}"'}
    answer = httpx.get(f"{server}/query", params=asked, timeout=PATIENCE_S).raise_for_status()
    (found,) = answer.json()["results"]
    return [
        dict(zip(series["columns"], values, strict=True))
        for series in found.get("series", [])
        for values in series["values"]
    ]


def write(sink: InfluxSink, frame: pl.DataFrame, batch: int = 1_000_000) -> Counter[str]:
    counted: Counter[str] = Counter()

    def count(name: str, number: int) -> None:
        counted[name] += number

    writer = sink.open(replace(CONTEXT, count=count))
    for first in range(0, frame.height, batch):
        writer.write(frame.slice(first, batch))
    writer.prepare(1)
    writer.close()
    return counted


def sink(server: str, *tags: str) -> InfluxSink:
    return InfluxSink("m", tags=tags, fields=["n"], url=server, token="a:b")


def test_writing_again_changes_nothing(server: str) -> None:
    def read() -> list[dict[str, object]]:
        return [
            {
                "key": row["key"],
                "window_end": EPOCH + timedelta(microseconds=row["time"]),
                "n": row["n"],
            }
            for row in rows_of(server, "m")
        ]

    check_idempotent_sink(
        lambda: InfluxSink("m", tags=["key"], fields=["n"], time="window_end", url=server), read
    )


def test_the_same_hour_written_twice_leaves_the_same_points(server: str) -> None:
    hour = pl.DataFrame({"event_time": range(NOON, NOON + 3_600_000_000, 1_000_000)})
    hour = hour.join(pl.DataFrame({"t": ["a", "b", "c"]}), how="cross")
    hour = hour.with_columns(n=pl.int_range(pl.len()) / 7)
    write(sink(server, "t"), hour)
    once = rows_of(server, "m")
    assert len(once) == 10_800
    write(sink(server, "t"), hour.reverse(), batch=1_000)
    assert rows_of(server, "m") == once


def test_events_that_coincide_are_told_apart_by_their_number(server: str) -> None:
    rows = pl.DataFrame({"t": "a", "number": [None, 1, 2], "n": [5, 6, 6], "event_time": NOON})
    assert write(sink(server, "t", "number"), rows) == {}
    assert sorted(row["n"] for row in rows_of(server, "m")) == [5, 6, 6]
    influxd.bucket(server, "outputs")
    assert write(sink(server, "t"), rows, batch=1) == {"pointsCollided": 2}
    assert len(rows_of(server, "m")) == 1


@pytest.mark.parametrize("tag", ["x=y, z", '"q"', "a\\,b", "back\\", "line\nbreak", "ä\t", "#"])
def test_a_tag_comes_back_as_it_was_but_for_what_is_counted(server: str, tag: str) -> None:
    counted = write(sink(server, "t"), pl.DataFrame({"t": [tag], "n": [1], "event_time": [NOON]}))
    (row,) = rows_of(server, "m")
    changed = {"back\\": "back∖", "line\nbreak": "line\\nbreak"}
    assert row["t"] == changed.get(tag, tag)
    assert counted == ({"tagsChanged": 1} if tag in changed else {})


@pytest.mark.parametrize("text", ['a "b"', "back\\", "line\nbreak", "a\\nb", ""])
def test_a_text_comes_back_as_it_was(server: str, text: str) -> None:
    write(sink(server), pl.DataFrame({"n": [text], "event_time": [NOON]}))
    assert [row["n"] for row in rows_of(server, "m")] == [text]


def test_what_cannot_be_stored_is_counted_and_the_rest_is_there(server: str) -> None:
    values = [float("nan"), float("inf"), None, 2.5]
    rows = pl.DataFrame({"n": values, "event_time": range(NOON, NOON + 4)})
    assert write(sink(server), rows) == {"fieldsLeftOut": 3}
    assert [row["n"] for row in rows_of(server, "m")] == [2.5]


def test_a_field_of_another_type_fails_the_job_with_the_servers_reason(server: str) -> None:
    write(sink(server), pl.DataFrame({"n": [1], "event_time": [NOON]}))
    with pytest.raises(DataError, match=r"field type conflict.*; write such values to a field or"):
        write(sink(server), pl.DataFrame({"n": [0.5], "event_time": [NOON + 1]}))
