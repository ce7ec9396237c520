"""The lookups of joins, compiled and plain, give what their definition says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import compiled, plain

SLOTS = 4
versions = st.lists(st.tuples(st.integers(0, SLOTS - 1), st.integers(0, 20)), max_size=12)
questions = st.lists(st.tuples(st.integers(0, SLOTS - 1), st.integers(-5, 30)), max_size=8)


def whole(values):
    return np.array(values, dtype=np.int64)


def look_up(kernels, settled, fresh, asked, ttl):
    """Slots and times of versions, those of rows; the place of each row's version."""
    rows = [(None, -(2**63)), *settled, *sorted(fresh)]
    latest = [max((i for i, row in enumerate(settled, 1) if row[0] == s), default=0) for s in SLOT]
    places = range(1 + len(settled), len(rows))
    begins = [min((i for i in places if rows[i][0] == slot), default=0) for slot in SLOT]
    ends = [max((i + 1 for i in places if rows[i][0] == slot), default=0) for slot in SLOT]
    found = np.zeros(len(asked), dtype=np.uint32)
    slots = np.array([slot for slot, _ in asked], dtype=np.int32)
    times = whole([time for _, time in asked])
    row_times = whole([time for _, time in rows])
    kernels.latest_rows(
        slots, times, whole(latest), (whole(begins), whole(ends)), row_times, ttl, found
    )
    return rows, found.tolist()


SLOT = range(SLOTS)


@pytest.mark.parametrize("kernels", [plain, compiled], ids=["plain", "compiled"])
@pytest.mark.parametrize("ttl", [0, 4])
@given(settled=versions, fresh=versions, asked=questions)
@settings(max_examples=40, deadline=None)
def test_a_row_finds_the_last_version_up_to_its_time(kernels, ttl, settled, fresh, asked):
    settled = [(slot, time - 30) for slot, time in settled]
    rows, found = look_up(kernels, settled, fresh, asked, ttl)
    for (slot, time), place in zip(asked, found, strict=True):
        known = [i for i, row in enumerate(rows) if row[0] == slot and i <= len(settled)][-1:]
        known += [i for i in range(1 + len(settled), len(rows)) if rows[i][0] == slot]
        valid = [i for i in known if i <= len(settled) or rows[i][1] <= time]
        last = valid[-1] if valid else 0
        wanted = 0 if ttl and rows[last][1] <= time - ttl else last
        assert place == wanted


@pytest.mark.parametrize("kernels", [plain, compiled], ids=["plain", "compiled"])
@given(rows=versions, asked=questions, bounds=st.tuples(st.integers(-6, 6), st.integers(0, 8)))
@settings(max_examples=60, deadline=None)
def test_the_rows_near_a_time_are_found(kernels, rows, asked, bounds):
    lower, upper = bounds[0], sum(bounds)
    rows, asked = sorted(rows), sorted(asked)
    begins, ends = np.empty(len(asked), np.int64), np.empty(len(asked), np.int64)
    kernels.near(columns(asked), columns(rows), lower, upper, begins, ends)
    for (slot, time), begin, end in zip(asked, begins, ends, strict=True):
        wanted = [row for row in rows if row[0] == slot and lower <= row[1] - time <= upper]
        assert rows[begin:end] == wanted


def columns(pairs):
    slots = np.array([slot for slot, _ in pairs], dtype=np.int32)
    return slots, whole([time for _, time in pairs])
