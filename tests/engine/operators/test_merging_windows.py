"""Sessions with triggers and lateness, global windows, folds, against their definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from engine import agg, evictors, triggers, windows
from engine.elements import MAX_TIME
from fixtures.kept_windows import BOUND, applied, keyed, operator_of, play, scripts

GAP = 4
PURGING = triggers.purging(triggers.count(3))


class Session:
    """A window of one key while it is open."""

    def __init__(self, start, end, rows=(), count=0, waits=False):
        self.start, self.end, self.rows = start, end, list(rows)
        self.count, self.waits = count, waits
        self.update = None


def sessions(script, fire, allowed):
    """(key, start, end, turn if late, values) of all results; the late rows."""
    newest, keys, late, found = -99, {}, [], []
    for key, n, time in (step for step in script if isinstance(step, tuple)):
        newest = max(newest, time - BOUND)
        turn = max(newest, time)
        if turn >= time + GAP + allowed:
            late.append((key, n, time))
        else:
            keys.setdefault(key, []).append((turn, time, n))
    for key, rows in keys.items():
        open_ = []

        def give(session, turn, by_row, key=key):
            if session.rows:
                mark = turn if turn > session.end or (turn == session.end and by_row) else None
                found.append((key, session.start, session.end, mark, list(session.rows)))

        for turn, time, n in [*sorted(rows), (MAX_TIME, None, None)]:
            for each in open_:
                if each.end <= turn and each.waits:
                    fire.end(each, give)
                if each.update is not None and each.update <= turn:
                    give(each, each.update, False)
                    each.update = None
            open_ = [each for each in open_ if each.end + allowed > turn]
            if time is None:
                continue
            met = [each for each in open_ if each.start < time + GAP and time < each.end]
            joined = Session(
                min([time, *(each.start for each in met)]),
                max([time + GAP, *(each.end for each in met)]),
                [row for each in met for row in each.rows],
                sum(each.count for each in met),
            )
            joined.rows.append(n)
            open_ = sorted([each for each in open_ if each not in met] + [joined], key=start_of)
            fire.row(joined, turn, give)
    return sorted(found, key=str), sorted(late)


def start_of(session):
    return session.start


class AtTheEnd:
    def row(self, session, turn, give):
        session.waits = turn < session.end
        if not session.waits:
            give(session, turn, True)

    def end(self, session, give):
        session.waits = False
        give(session, session.end, False)


class Corrected(AtTheEnd):
    """Late rows wait for the next update."""

    def row(self, session, turn, give):
        session.waits = turn < session.end
        if not session.waits:
            session.update = session.end + (turn - session.end) // 2 * 2 + 2


class Counted:
    def row(self, session, turn, give):
        session.count += 1
        if session.count >= 3:
            session.count = 0
            give(session, turn, True)
            session.rows.clear()


def shown(row):
    start, end = (row[name].timestamp() for name in ("window_start", "window_end"))
    bounds = round(start * 1e6), round(end * 1e6)
    return row["key"], *bounds, row.get("row_watermark"), row["values"]


@pytest.mark.parametrize("allowed", [0, 4])
@pytest.mark.parametrize(
    ("trigger", "fire"),
    [(triggers.event_time(), AtTheEnd()), (PURGING, Counted()), (None, Corrected())],
)
@given(script=scripts("ab"))
@settings(max_examples=20, deadline=None)
def test_sessions_equal_their_definition_through_anything(trigger, fire, allowed, script):
    results, late = play(
        applied(windows.session(GAP), trigger, allowed, every=None if trigger else 2), script
    )
    assert (sorted(map(shown, results), key=str), late) == sessions(script, fire, allowed)


def in_order(script):
    newest, keys = -99, {}
    for key, n, time in (step for step in script if isinstance(step, tuple)):
        newest = max(newest, time - BOUND)
        keys.setdefault(key, []).append((max(time, newest), time, n))
    return {key: sorted(rows) for key, rows in keys.items()}


@given(script=scripts("ab"))
@settings(max_examples=20, deadline=None)
def test_every_third_row_of_a_key_fires_a_global_window(script):
    results, late = play(applied(windows.global_(), PURGING), script)
    wanted = [
        (key, rows[at - 1][0], [n for *_, n in rows[at - 3 : at]])
        for key, rows in in_order(script).items()
        for at in range(3, len(rows) + 1, 3)
    ]
    found = [(row["key"], row["event_time"], row["values"]) for row in results]
    assert (sorted(found), late) == (sorted(wanted), [])


@given(script=scripts("ab"))
@settings(max_examples=10, deadline=None)
def test_a_global_window_ends_with_the_input(script):
    results, _ = play(applied(windows.global_(), triggers.event_time()), script)
    found = [(row["key"], row["event_time"], row["values"]) for row in results]
    wanted = [
        (key, max(time for _, time, _ in rows), [n for *_, n in rows])
        for key, rows in in_order(script).items()
    ]
    assert sorted(found) == sorted(wanted)
    assert {row["row_watermark"] for row in results} <= {MAX_TIME}


class Digits(agg.AggregateFunction):
    """Writes digits one behind the other: what comes out tells the order."""

    fields = {"digits": int, "count": int}
    result_type = str

    def create(self):
        return {"digits": 0, "count": 0}

    def add(self, fields, row):
        return {"digits": fields["digits"] * 5 + row["n"], "count": fields["count"] + 1}

    def merge(self, one, other):
        digits = one["digits"] * 5 ** other["count"] + other["digits"]
        return {"digits": digits, "count": one["count"] + other["count"]}

    def result(self, fields):
        return f"{fields['digits']} of {fields['count']}"


def digits(values):
    total = 0
    for value in values:
        total = total * 5 + value
    return f"{total} of {len(values)}"


@pytest.mark.parametrize("evictor", [None, evictors.count(99)])
@given(script=scripts("ab"))
@settings(max_examples=10, deadline=None)
def test_rows_are_added_in_order_and_sessions_merged_in_order(evictor, script):
    windowed = keyed().window(windows.session(GAP))
    windowed = windowed.evictor(evictor) if evictor else windowed
    results, _ = play(operator_of(windowed.aggregate(Digits())), script)
    wanted, _ = sessions(script, AtTheEnd(), 0)
    assert sorted(row["result"] for row in results) == sorted(digits(each[4]) for each in wanted)


@given(script=scripts("ab"))
@settings(max_examples=10, deadline=None)
def test_rows_are_reduced_in_order(script):
    def later(one, other):
        return {"n": one["n"] * 5 + other["n"], "at": other["at"]}

    windowed = keyed().window(windows.global_()).trigger(PURGING)
    results, _ = play(operator_of(windowed.reduce(later)), script)
    wanted = [
        (
            key,
            rows[at - 1][1],
            sum(row[2] * 5 ** (2 - place) for place, row in enumerate(rows[at - 3 : at])),
        )
        for key, rows in in_order(script).items()
        for at in range(3, len(rows) + 1, 3)
    ]
    assert sorted((row["key"], row["at"], row["n"]) for row in results) == sorted(wanted)
