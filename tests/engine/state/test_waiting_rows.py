"""Waiting rows leave when event time has passed them, whichever way their frame is cut."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.state import waiting
from engine.state.contract import StateDescriptor, StateKind
from engine.state.waiting import MemoryRows

STATE = StateDescriptor(
    "rows", StateKind.ROWS, {"key": pl.Int64()}, {"event_time": pl.Int64(), "n": pl.Int64()}
)
batches = st.lists(st.integers(-100, 100), min_size=1, max_size=40)
scripts = st.lists(batches | st.tuples(st.booleans(), st.integers(-100, 120)), max_size=12)


def frame(times, first):
    count = len(times)
    columns = {"key_group": [0] * count, "key": [n % 2 for n in range(count)]}
    columns |= {"event_time": times, "n": range(first, first + count)}
    return pl.DataFrame(columns, schema_overrides={"key_group": pl.UInt16})


@given(script=scripts)
@settings(max_examples=60, deadline=None)
def test_rows_before_a_time_leave_once_and_in_order_where_that_is_asked(script):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting, "_FEW", 3)
        rows, model, arrived = MemoryRows(STATE), [], 0
        for step in script:
            if isinstance(step, list):
                batch = frame(step, arrived)
                arrived += batch.height
                rows.append(batch)
                model += batch.rows()
                continue
            ordered, time = step
            wanted = [row for row in model if row[2] < time]
            model = [row for row in model if row[2] >= time]
            if ordered:
                taken = rows.take_before(time)
                found = [] if taken is None else taken.rows()
                assert found == sorted(wanted, key=lambda row: (row[2], row[0], row[1]))
            else:
                found = [row for part in rows.take(time) for row in part.rows()]
                assert sorted(found) == sorted(wanted)
        table = rows.freeze().table().rows()
        assert table == sorted(model, key=lambda row: (row[0], row[1], row[2]))
