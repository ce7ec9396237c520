"""InfluxDB sink: lines as the protocol wants them, acknowledged, idempotent; over real HTTP."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from engine.connectors.contract import SinkContext
from engine.connectors.influx import CHUNK_LINES, InfluxSink
from engine.connectors.point_lines import MOST_KNOWN, RecentPoints, points
from engine.errors import ConfigError, DataError, GraphError, SinkError
from engine.testing.conformance import check_idempotent_sink
from fixtures.point_server import PointServer

CONTEXT = SinkContext("job", "attempt", 0, 1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[PointServer]:
    with PointServer().serving() as server:
        yield server


def sink(server: PointServer) -> InfluxSink:
    return InfluxSink("m", tags=["key"], fields=["n"], time="window_end", url=server.url, token="t")


def rows(count: int) -> pl.DataFrame:
    at = pl.int_range(count, eager=True).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return pl.DataFrame({"key": "a", "window_end": at, "n": 1})


def test_writing_again_changes_nothing(server: PointServer) -> None:
    def read() -> list[dict[str, object]]:
        found = []
        for (series, time), fields in server.points.items():
            if series.startswith("m,"):
                end = EPOCH + timedelta(microseconds=int(time))
                number = int(fields.removeprefix("n=").removesuffix("i"))
                found.append({"key": series.removeprefix("m,key="), "window_end": end, "n": number})
        return found

    check_idempotent_sink(lambda: sink(server), read)
    assert any(series.startswith("m@r-1,") for series, _ in server.points)


def test_all_points_are_acknowledged_when_prepare_returns(server: PointServer) -> None:
    writer = sink(server).open(CONTEXT)
    writer.write(rows(CHUNK_LINES + 10))
    assert len(server.points) == CHUNK_LINES
    assert writer.prepare(1) is None
    assert len(server.points) == CHUNK_LINES + 10
    writer.close()


def test_points_go_to_bucket_and_organisation_in_microseconds(server: PointServer) -> None:
    writer = sink(server).open(CONTEXT)
    writer.write(rows(1))
    writer.prepare(1)
    ((path, _),) = server.requests
    assert "org=headwater" in path
    assert "bucket=outputs" in path
    assert "precision=us" in path
    writer.close()


def test_a_server_that_is_busy_is_asked_again(server: PointServer) -> None:
    server.answers = [503]
    writer = sink(server).open(CONTEXT)
    writer.write(rows(1))
    writer.prepare(1)
    assert len(server.points) == 1
    assert len(server.requests) == 2
    writer.close()


def test_a_server_that_is_away_holds_the_checkpoint_with_one_sentence(
    server: PointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The points stay: they are sent again with the next checkpoint, or by the next attempt."""
    monkeypatch.setattr("engine.connectors.influx.TRIES", 0)
    writer = sink(server).open(CONTEXT)
    writer.write(rows(3))
    server.answers = [503]
    with pytest.raises(SinkError, match="HTTP 503"):
        writer.prepare(1)
    assert server.points == {}
    writer.prepare(1)
    assert len(server.points) == 3
    writer.close()

    away = InfluxSink("m", tags=["key"], fields=["n"], time="window_end", url="http://127.0.0.1:9")
    writer = away.open(CONTEXT)
    writer.write(rows(1))
    reason = (
        "measurement 'm' was not written to http://127.0.0.1:9: it does not answer: Connection "
        "refused; check that the server runs and takes the token"
    )
    with pytest.raises(SinkError, match=f"^{re.escape(reason)}$"):
        writer.prepare(1)
    writer.close()


def test_refused_points_are_an_error_with_the_reason(server: PointServer) -> None:
    server.answers = [401]
    writer = sink(server).open(CONTEXT)
    writer.write(rows(1))
    with pytest.raises(SinkError, match=r"measurement 'm' was not written to http.*HTTP 401"):
        writer.prepare(1)
    writer.close()


def test_address_and_token_come_from_where_the_job_runs(
    server: PointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = InfluxSink("m", tags=["key"], fields=["n"], time="window_end")
    monkeypatch.delenv("HEADWATER_POINTS_URL", raising=False)
    with pytest.raises(ConfigError, match="HEADWATER_POINTS_URL is not set; set it"):
        nowhere.open(CONTEXT)
    monkeypatch.setenv("HEADWATER_POINTS_URL", server.url)
    writer = nowhere.open(CONTEXT)
    writer.write(rows(2))
    writer.prepare(1)
    assert len(server.points) == 2
    writer.close()


def lines(fields: dict[str, object], **settings: object) -> tuple[list[str], dict[str, int]]:
    target = InfluxSink("m", tags=["t"], fields=list(fields), **settings)  # type: ignore[arg-type]
    frame = pl.DataFrame({"t": ["x"], "event_time": [7]} | {n: [v] for n, v in fields.items()})
    return points(frame, target, RecentPoints())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3i"),
        (-1, "-1i"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (True, "true"),
        ('a "b" \\', '"a \\"b\\" \\\\"'),
        (1e300, "1e+300"),
    ],
)
def test_a_field_is_written_by_its_type(value: object, text: str) -> None:
    assert lines({"f": value}) == ([f"m,t=x f={text} 7"], {})


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), float("-inf"), None, pl.Series([2**63], dtype=pl.UInt64)[0]],
)
def test_a_field_that_cannot_be_stored_is_left_out_and_counted(value: object) -> None:
    assert lines({"f": value, "g": 1}) == (["m,t=x g=1i 7"], {"fieldsLeftOut": 1})
    assert lines({"f": value}) == ([], {"fieldsLeftOut": 1})


def test_names_and_tags_are_escaped() -> None:
    target = InfluxSink("my m,x", tags=["a b"], fields=["f=g"])
    frame = pl.DataFrame({"a b": ["x=y, z", ""], "f=g": [1, 2], "event_time": [7, 8]})
    expected = ["my\\ m\\,x,a\\ b=x\\=y\\,\\ z f\\=g=1i 7", "my\\ m\\,x f\\=g=2i 8"]
    assert points(frame, target, RecentPoints()) == (expected, {})


def test_a_tag_that_the_protocol_cannot_say_is_changed_and_counted() -> None:
    target = InfluxSink("m", tags=["t"], fields=["n"])
    frame = pl.DataFrame({"t": ["a\\", "a\nb", "a\\,b", "c"], "n": 1, "event_time": range(4)})
    expected = ["m,t=a∖ n=1i 0", "m,t=a\\nb n=1i 1", "m,t=a\\\\,b n=1i 2", "m,t=c n=1i 3"]
    assert points(frame, target, RecentPoints()) == (expected, {"tagsChanged": 2})


def collided(recent: RecentPoints, *rows: tuple[str | None, int]) -> int:
    frame = pl.DataFrame(rows, schema={"t": pl.String, "event_time": pl.Int64}, orient="row")
    frame = frame.with_columns(n=pl.int_range(pl.len()))
    return points(frame, InfluxSink("m", tags=["t"], fields=["n"]), recent)[1].get(
        "pointsCollided", 0
    )


def test_rows_that_no_tag_tells_apart_are_counted() -> None:
    assert collided(RecentPoints(), ("a", 7), ("a", 7), ("a", 8), (None, 7)) == 1
    assert collided(RecentPoints(), (None, 7), ("", 7)) == 1  # both have no tag
    assert collided(RecentPoints(), ("a\n", 7), ("a\\n", 7)) == 1  # as they are written


def test_rows_that_no_tag_tells_apart_are_counted_over_batches() -> None:
    recent = RecentPoints()
    told = [collided(recent, ("a", at)) for at in (1, 2, 1, 3, 2)]
    assert told == [0, 0, 1, 0, 1]


@pytest.mark.parametrize(("others", "known"), [(MOST_KNOWN, 1), (3 * MOST_KNOWN, 0)])
def test_what_is_known_of_the_last_points_is_bounded(others: int, known: int) -> None:
    recent = RecentPoints()
    recent.collided(pl.Series(["x"]))
    for first in range(0, others, MOST_KNOWN):
        recent.collided(pl.Series(range(first, first + MOST_KNOWN)).cast(pl.String))
    assert recent.collided(pl.Series(["x"])) == known


def test_a_row_without_a_time_is_counted() -> None:
    frame = pl.DataFrame({"t": ["a", "b"], "n": [1, 2], "event_time": [7, None]})
    target = InfluxSink("m", tags=["t"], fields=["n"])
    found = points(frame, target, RecentPoints())
    assert found == (["m,t=a n=1i 7"], {"pointsWithoutTime": 1})


@pytest.mark.parametrize("name", ["m\\", "a\nb", ""])
def test_a_name_that_the_protocol_cannot_say_is_refused(name: str) -> None:
    for names in ((name, ["t"], ["f"]), ("m", [name], ["f"]), ("m", ["t"], [name])):
        with pytest.raises(ConfigError, match="has a name that cannot be written"):
            InfluxSink(names[0], tags=names[1], fields=names[2])


@pytest.mark.parametrize(
    ("measurement", "tag", "field"),
    [("#m", "t", "f"), ("m", "time", "f"), ("m", "_field", "f"), ("m", "t", "time")],
)
def test_a_name_that_influxdb_drops_is_refused(measurement: str, tag: str, field: str) -> None:
    with pytest.raises(
        ConfigError, match=r"has a name that InfluxDB drops: got '(#m|time|_field)'"
    ):
        InfluxSink(measurement, tags=[tag], fields=[field])


def test_points_that_are_too_large_for_one_request_go_in_smaller_ones(server: PointServer) -> None:
    server.answers = [413, 413, 204, 413]
    writer = sink(server).open(CONTEXT)
    writer.write(rows(8))
    writer.prepare(1)
    assert [count for _, count in server.requests] == [8, 4, 2, 6, 3, 3]
    assert len(server.points) == 8
    writer.close()


def test_a_point_that_is_too_large_fails_the_job(server: PointServer) -> None:
    server.answers = [413] * 3
    writer = sink(server).open(CONTEXT)
    writer.write(rows(2))
    with pytest.raises(DataError, match="HTTP 413"):
        writer.prepare(1)
    writer.close()


def test_points_that_a_server_refuses_for_what_they_are_fail_the_job(server: PointServer) -> None:
    server.answers = [400]
    writer = sink(server).open(CONTEXT)
    writer.write(rows(1))
    with pytest.raises(DataError, match=r"HTTP 400.*; write such values to a field or measurement"):
        writer.prepare(1)
    writer.close()


def test_points_older_than_the_server_keeps_are_counted_and_the_job_goes_on(
    server: PointServer,
) -> None:
    counted: Counter[str] = Counter()

    def count(name: str, amount: int) -> None:
        counted[name] += amount

    server.answers = [422]
    writer = sink(server).open(replace(CONTEXT, count=count))
    writer.write(rows(1).with_columns(n=pl.lit(None, pl.Int64)))
    writer.write(rows(2))
    writer.prepare(1)
    assert counted == {"fieldsLeftOut": 1, "pointsBeyondRetention": 1}
    assert server.answers == []
    writer.close()


def test_a_missing_column_is_named() -> None:
    target = InfluxSink("m", tags=[], fields=["n", "g"])
    with pytest.raises(ConfigError, match="columns that are not there: g; rows have n"):
        points(pl.DataFrame({"n": [1], "event_time": [1]}), target, RecentPoints())


@pytest.mark.parametrize(("column", "tags", "time"), [("g", ["g"], "at"), ("at2", ["key"], "at2")])
def test_a_missing_column_is_found_when_the_graph_is_built(
    column: str, tags: list[str], time: str
) -> None:
    target = InfluxSink("m", tags=tags, fields=["n"], time=time)
    schema = {"key": pl.String(), "n": pl.Int64(), "at": pl.Int64()}
    with pytest.raises(GraphError, match=f"needs column '{column}': the stream has key, n, at"):
        target.check(schema)


@pytest.mark.parametrize("dtype", [pl.List(pl.Int64), pl.Binary(), pl.Struct({"a": pl.Int64})])
def test_a_column_that_is_no_value_is_found_when_the_graph_is_built(dtype: pl.DataType) -> None:
    target = InfluxSink("m", tags=["t"], fields=["n"])
    for of in ({"t": pl.String(), "n": dtype}, {"t": dtype, "n": pl.Int64()}):
        with pytest.raises(
            GraphError, match=r"cannot write column '[tn]': it is .*; make a number"
        ):
            target.check(of | {"event_time": pl.Int64()})


@pytest.mark.parametrize("dtype", [pl.String(), pl.Float64(), pl.Duration("us")])
def test_a_column_that_is_no_time_is_found_when_the_graph_is_built(dtype: pl.DataType) -> None:
    with pytest.raises(GraphError, match="has no time in column 'event_time': it is"):
        InfluxSink("m", tags=[], fields=["n"]).check({"n": pl.Int64(), "event_time": dtype})


def test_a_point_needs_a_field() -> None:
    with pytest.raises(ConfigError, match="has no fields"):
        InfluxSink("m", tags=[], fields=[])


def test_the_token_is_never_shown() -> None:
    target = InfluxSink("m", tags=[], fields=["n"], token="secret", url="http://x")
    assert "secret" not in str(target.describe())
