"""Names that would meet in one table are refused when the graph is built."""

from __future__ import annotations

import polars as pl
import pytest

import engine as hw
from engine.errors import GraphError
from engine.testing.memory import MemorySource


class Reminder(hw.KeyedProcessFunction):
    def process(self, row, ctx):
        ctx.register_event_time_timer(ctx.event_time + 1)

    def on_timer(self, time, ctx):
        yield {"told": time}


class Seen(hw.KeyedProcessFunction):
    pages = hw.MapState(str, int)

    def process(self, row, ctx):
        yield row


@pytest.mark.parametrize(
    ("function", "key", "sentence"),
    [
        (Reminder(), "time", "timers of 'Reminder' have the column 'time', which is a key"),
        (Seen(), "map_key", "state 'pages' of 'Seen' has the column 'map_key', which is a key"),
    ],
)
def test_a_key_may_not_have_the_name_of_a_states_column(function, key, sentence):
    env = hw.Environment("names")
    rows = pl.DataFrame({key: ["a"], "at": [1]})
    stream = env.source(MemorySource({"a": rows}), watermarks=hw.monotonic("at"))
    with pytest.raises(GraphError, match=sentence):
        stream.key_by(key).process(function, schema={"told": int})
