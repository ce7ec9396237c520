"""Points of a measurement removed from a time on, kept, and put in the place of others."""

from __future__ import annotations

import pytest

from controlplane.metrics import exchange
from controlplane.metrics.embedded.store import SeriesStore
from controlplane.metrics.line_protocol import Point

MS = 1_000_000
HOUR_MS = 3_600_000
MANY = {second * 1_000: second for second in range(2 * 3_600)}
"""A point a second for two hours: enough for blocks with roll-ups."""


def points(measurement, values, origin="JFK"):
    tags = (("origin", origin),)
    return [
        Point(measurement, tags, (("delay", float(value)), ("flights", int(value))), at * MS)
        for at, value in values.items()
    ]


@pytest.fixture
def store(tmp_path):
    made = SeriesStore(tmp_path / "series.db")
    yield made
    made.close()


def read(store, measurement, field="delay", origin="JFK", **range_):
    where = {"origin": origin}
    found = store.query("outputs", measurement, field, where=where, limit=100_000, **range_)
    return dict(found[0].points) if found else {}


@pytest.mark.parametrize("since_ms", [0, 1, 1_800_000, HOUR_MS, HOUR_MS + 999, 3 * HOUR_MS])
def test_what_is_left_is_what_was_written_before(store, tmp_path, since_ms):
    store.write("outputs", points("daily", MANY))
    store.compact(0)
    store.remove("outputs", "daily", since_ms)

    only = SeriesStore(tmp_path / "only.db")
    only.write("outputs", points("daily", {at: v for at, v in MANY.items() if at < since_ms}))
    for step in (None, 1_000, 60_000, HOUR_MS):
        range_ = {"step_ms": step, "aggregate": "sum"} if step else {}
        assert read(store, "daily", **range_) == read(only, "daily", **range_)
    only.close()


def test_what_was_removed_can_be_written_again(store):
    store.write("outputs", points("daily", MANY))
    store.compact(0)
    store.remove("outputs", "daily", HOUR_MS)
    store.write("outputs", points("daily", MANY))
    store.compact(0)
    assert read(store, "daily") == {at: float(value) for at, value in MANY.items()}
    assert sum(read(store, "daily", step_ms=HOUR_MS, aggregate="count").values()) == len(MANY)


def test_new_points_count_from_the_first_of_them_on_and_the_old_ones_come_back(store):
    store.write("outputs", points("daily", {1: 1, 2: 1, 3: 1}))
    store.write("outputs", points("daily", {3: 1}, "EWR"))
    store.write("outputs", points("daily@r-7", {2: 2, 4: 2}))
    since = exchange.first_ms(store, "outputs", "daily@r-7")
    assert since == 2
    for _ in range(2):
        exchange.keep(store, "outputs", "daily", since, "old")
    for _ in range(2):
        exchange.replace(store, "outputs", "daily", since, "daily@r-7")
        assert read(store, "daily") == {1: 1.0, 2: 2.0, 4: 2.0}
        assert read(store, "daily", origin="EWR") == {}
    for _ in range(2):
        exchange.replace(store, "outputs", "daily", since, "old")
        assert read(store, "daily", "flights") == {1: 1, 2: 1, 3: 1}
        assert read(store, "daily", origin="EWR") == {3: 1.0}
    assert exchange.first_ms(store, "outputs", "nothing") is None
