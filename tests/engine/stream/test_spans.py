"""Jobs that write a span of event time, or nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from engine.connectors.collect import CollectSink
from engine.connectors.contract import SinkContext
from engine.connectors.frame import FrameSource
from engine.errors import ConfigError, GraphError
from engine.graph.plan import plan_of
from engine.operators.sink import SinkOperator, SinkRun
from engine.operators.span import Span, parse_moment
from engine.stream import Environment
from engine.stream.recording import recording
from engine.testing.memory import OutputTables
from engine.watermarks import monotonic

ROWS = pl.DataFrame({"t": [1, 2, 3], "event_time": [1, 2, 3]})
FROM, UNTIL = "headwater.event-time.from", "headwater.event-time.until"


def built(*, timed: bool = True, **settings: str):
    names = {"since": FROM, "until": UNTIL, "discard": "headwater.sinks.discard"}
    with recording({names[key]: value for key, value in settings.items()}):
        env = Environment("job")
        source = FrameSource(ROWS.select("t"))
        rows = env.source(source, uid="in", watermarks=monotonic("t") if timed else None)
        rows.sink(CollectSink("out"), uid="out")
        return plan_of(env.graph())


def test_a_plan_says_what_is_written_and_where_sources_end():
    source, sink = built(until="2013-12-01T00:00:00Z", since="2013-03-01T01:00:00+01:00").operators
    assert sink.description["from"] == "2013-03-01T00:00:00+00:00"
    assert sink.description["until"] == "2013-12-01T00:00:00+00:00"
    assert source.description["until"] == "2013-12-01T00:00:00.000001+00:00"


def test_a_job_without_a_span_says_nothing_of_it():
    assert not any({"from", "until"} & one.description.keys() for one in built().operators)


def test_rows_without_event_time_belong_to_no_span():
    with pytest.raises(GraphError, match="rows without event time"):
        built(timed=False, until="2013-12-01T00:00:00Z")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"until": "soon"}, f"setting {UNTIL} is no moment with a time zone: got 'soon'; pass"),
        ({"since": "2013-03-01T00:00:00"}, f"setting {FROM} is no moment with a time zone: got"),
        (
            {"since": "2013-03-01T00:00:00Z", "until": "2013-03-01T00:00:00Z"},
            f"setting {UNTIL} is not after {FROM}",
        ),
        ({"discard": "yes"}, "setting headwater.sinks.discard must be true or false: got 'yes'"),
    ],
)
def test_what_is_no_span_is_told_when_the_graph_is_built(settings, sentence):
    with pytest.raises(ConfigError, match=sentence.replace(".", r"\.")):
        built(**settings)


def test_a_moment_is_exact_to_the_microsecond():
    text = "2013-12-31T23:59:59.999999Z"
    moment = datetime(2013, 12, 31, 23, 59, 59, 999_999, UTC)
    assert parse_moment(text, "x") == int(moment.timestamp()) * 1_000_000 + 999_999


@pytest.mark.parametrize(
    ("span", "kept"),
    [(Span(), [1, 2, 3]), (Span(since=2), [2, 3]), (Span(until=2), [1]), (Span(2, 3), [2])],
)
def test_the_beginning_belongs_to_a_span_and_its_end_does_not(span, kept):
    assert span.part(ROWS)["t"].to_list() == kept


def test_rows_that_are_late_beyond_all_windows_belong_to_the_later_span():
    marks = pl.Series("row_watermark", [None, 12, 13])
    late = ROWS.with_columns(marks)
    assert Span(until=10, lateness=2).part(late)["t"].to_list() == [1, 2]
    assert Span(since=10, lateness=2).part(late)["t"].to_list() == [3]


def test_a_sink_writes_its_span_only():
    output = OutputTables()
    operator = SinkOperator(output.sink("out"))
    operator.span = Span(until=3)
    run = SinkRun(operator, SinkContext("job", "attempt", 0, 1), [])
    run.write(ROWS)
    run.prepare(1)
    run.commit(1)
    assert output.table("out")["t"].to_list() == [1, 2]


def test_a_job_that_discards_opens_no_target():
    sink = built(discard="true").operators[-1]
    assert sink.description["kind"] == "discard"
