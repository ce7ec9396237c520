"""Triggers, evictors and whole windows, against their definition, one row at a time."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings

import engine as hw
from engine import evictors, triggers, windows
from fixtures.kept_windows import BOUND, applied, keyed, operator_of, play, scripts

FIRE, CONTINUE = triggers.TriggerResult.FIRE, triggers.TriggerResult.CONTINUE


class Rising(triggers.Trigger):
    """Fires at each value above those that it has fired at."""

    highest = hw.ReducingState(int, max)

    def on_element(self, row, ctx):
        if self.highest.get() is not None and row["n"] <= self.highest.get():
            return CONTINUE
        self.highest.add(row["n"])
        return FIRE

    def on_merge(self, ctx):
        ctx.merge_state(self.highest)


def shown(row):
    """(key, end, turn if it is late, values) of a result."""
    return row["key"], row["event_time"] + 1, row.get("row_watermark"), row["values"]


def model(window_of, fires, allowed, script):
    """What windows give by definition: rows know their turns, and nothing of batches."""
    newest, keys, late = -99, {}, []
    for key, n, time in (step for step in script if isinstance(step, tuple)):
        newest = max(newest, time - BOUND)
        mine = [each for each in window_of(time) if max(time, newest) < each[1] + allowed]
        for each in mine:
            keys.setdefault((key, *each), []).append((max(time, newest), time, n))
        if not mine:
            late.append((key, n, time))
    found = []
    for (key, _, end), rows in keys.items():
        for turn, by_row, kept in fires(sorted(rows), end):
            mark = turn if turn > end or (turn == end and by_row) else None
            found.append((key, end, mark, [n for _, _, n in kept]))
    return sorted(found, key=str), sorted(late)


def at_the_end(rows, end):
    early = [row for row in rows if row[0] < end]
    if early:
        yield end, False, early
    yield from late_ones(rows, end)


def late_ones(rows, end):
    for at, row in enumerate(rows):
        if row[0] >= end:
            yield row[0], True, rows[: at + 1]


def counted(rows, end):
    for at in range(3, len(rows) + 1, 3):
        yield rows[at - 1][0], True, rows[:at]


def purged(rows, end):
    for at in range(3, len(rows) + 1, 3):
        yield rows[at - 1][0], True, rows[at - 3 : at]


def continuous(rows, end):
    marks = sorted({turn // 2 * 2 + 2 for turn, _, _ in rows if turn < end} | {end})
    for mark in marks:
        before = [row for row in rows if row[0] < min(mark, end)]
        if before and mark <= end:
            yield mark, False, before
    yield from late_ones(rows, end)


def rising(rows, end):
    highest = None
    for at, (turn, _, n) in enumerate(rows):
        if highest is None or n > highest:
            highest = n
            yield turn, True, rows[: at + 1]


def corrected(rows, end):
    horizons = [end, end + 2, end + 4]
    for before, horizon in zip([-99, *horizons], horizons, strict=False):
        if any(before <= turn < horizon for turn, _, _ in rows):
            yield horizon, False, [row for row in rows if row[0] < horizon]


def last_two(rows, end):
    for turn, by_row, kept in counted(rows, end):
        yield turn, by_row, kept[-2:]


def newest_two(rows, end):
    kept, count = [], 0
    for row in rows:
        kept, count = [*kept, row], count + 1
        if count % 3 == 0:
            kept = [each for each in kept if each[1] > max(time for _, time, _ in kept) - 2]
            yield row[0], True, kept


def tumbling(time):
    return [(time // 4 * 4, time // 4 * 4 + 4)]


def sliding(time):
    return [(start, start + 5) for start in range(time // 2 * 2, time - 5, -2)]


SIZES = {"tumbling": (windows.tumbling(4), tumbling), "sliding": (windows.sliding(5, 2), sliding)}
KINDS = {
    "event time": (triggers.event_time(), at_the_end, {}),
    "count": (triggers.count(3), counted, {}),
    "purging": (triggers.purging(triggers.count(3)), purged, {}),
    "continuous": (triggers.continuous_event_time(2), continuous, {}),
    "an author's": (Rising(), rising, {}),
    "updates": (None, corrected, {"every": 2}),
    "last rows": (triggers.count(3), last_two, {"evictor": evictors.count(2, after=False)}),
    "newest rows": (triggers.count(3), newest_two, {"evictor": evictors.time(2)}),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
@given(script=scripts("ab"))
@settings(max_examples=12, deadline=None)
def test_windows_equal_their_definition_through_anything(size, kind, script):
    (window, window_of), (trigger, fires, more) = SIZES[size], KINDS[kind]
    results, late = play(applied(window, trigger, 4, **more), script)
    assert (sorted(map(shown, results), key=str), late) == model(window_of, fires, 4, script)


class Summing(evictors.Evictor):
    """Keeps all rows, and notes their sum of floats."""

    def __init__(self, seen):
        self.seen = seen

    def evict_before(self, rows):
        self.seen.append(rows.select(FLOATS.sum()).item())
        return rows


FLOATS = pl.col("n") * 0.1
"""Their sum depends on the order of additions: the library adds each piece of memory by itself."""


def test_a_sum_of_floats_does_not_show_how_a_window_came_together():
    rows = [("a", n, 5 * at) for at, n in enumerate([3, 9, 8, 2, 2, 6, 9])]
    apart = [*rows[:4], "cut", *rows[4:]]
    given_, evicted = [], []
    for script in (rows, apart):
        seen = []
        windowed = keyed().window(windows.tumbling(100)).evictor(Summing(seen))
        summed = windowed.apply(lambda rows, ctx: rows.select(n=FLOATS.sum()), schema={"n": float})
        [result], _ = play(operator_of(summed), script)
        given_.append(result["n"])
        evicted.append(seen)
    assert given_[0] == given_[1]
    assert evicted[0] == evicted[1]
