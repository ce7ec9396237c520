"""The series store: overwriting, ranges, steps, types, and how much is kept."""

from __future__ import annotations

import threading

import pytest

from controlplane.metrics.contract import Aggregate
from controlplane.metrics.embedded.store import SeriesStore
from controlplane.metrics.line_protocol import Point, tags_of

MS = 1_000_000


@pytest.fixture
def store(tmp_path):
    store = SeriesStore(tmp_path / "series.db")
    yield store
    store.close()


def at(time_ms, measurement="m", tags=None, **fields):
    return Point(
        measurement, tags_of((tags or {}).items()), tuple(fields.items()), int(time_ms * MS)
    )


def points(store, field="v", measurement="m", **options):
    return {
        tuple(series.tags.items()): series.points
        for series in store.query("b", measurement, field, **options)
    }


def test_the_same_point_again_overwrites_its_fields_and_no_others(store):
    store.write("b", [at(1, v=1.0, w=5)])
    store.write("b", [at(1, v=2.0)])
    assert points(store) == {(): [(1, 2.0)]}
    assert points(store, "w") == {(): [(1, 5)]}


def test_writing_everything_twice_changes_nothing(store):
    batch = [at(t, tags={"k": str(t % 3)}, v=float(t)) for t in range(50)]
    store.write("b", batch)
    once = points(store)
    store.write("b", batch)
    assert points(store) == once


def test_a_series_is_its_tag_set_whatever_the_order(store):
    store.write("b", [at(1, tags={"a": "1", "b": "2"}, v=1.0)])
    store.write("b", [at(2, tags={"b": "2", "a": "1"}, v=2.0)])
    assert points(store) == {(("a", "1"), ("b", "2")): [(1, 1.0), (2, 2.0)]}


def test_a_range_is_half_open(store):
    store.write("b", [at(t, v=float(t)) for t in (0, 1, 2, 3)])
    assert points(store, start_ms=1, stop_ms=3) == {(): [(1, 1.0), (2, 2.0)]}


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [("mean", 2.0), ("min", 1.0), ("max", 3.0), ("sum", 6.0), ("count", 3), ("last", 2.0)],
)
def test_the_points_of_a_step_become_one(store, aggregate, expected):
    store.write("b", [at(10, v=1.0), at(19, v=2.0), at(12, v=3.0), at(20, v=9.0)])
    found = points(store, step_ms=10, aggregate=aggregate)
    assert found == {(): [(10, expected), (20, 1 if aggregate == "count" else 9.0)]}


def test_steps_before_1970_are_half_open_too(store):
    store.write("b", [at(-10, v=1.0), at(-1, v=3.0), at(0, v=5.0)])
    assert points(store, step_ms=10, aggregate=Aggregate.SUM) == {(): [(-10, 4.0), (0, 5.0)]}


def test_tags_filter_by_one_value_or_several(store):
    store.write("b", [at(1, tags={"k": k}, v=1.0) for k in "abc"])
    assert list(points(store, where={"k": "a"})) == [(("k", "a"),)]
    assert len(points(store, where={"k": ["a", "c"]})) == 2
    assert points(store, where={"other": "a"}) == {}


def test_a_limit_keeps_the_newest(store):
    store.write("b", [at(t, v=float(t)) for t in range(10)])
    assert points(store, limit=2) == {(): [(8, 8.0), (9, 9.0)]}


def test_a_field_keeps_its_type_and_the_other_points_are_kept(store):
    refused = store.write("b", [at(1, v=1.0), at(2, v=2), at(3, v=3.0)])
    assert [(one.index, one.reason) for one in refused] == [
        (1, "field 'v' is of type float: got integer")
    ]
    assert points(store) == {(): [(1, 1.0), (3, 3.0)]}


def test_buckets_do_not_see_each_other(store):
    store.write("b", [at(1, v=1.0)])
    store.write("c", [at(1, v="text")])
    assert store.query("c", "m", "v")[0].points == [(1, "text")]
    assert store.fields("b", "m") == {"v": "float"}


def test_names_and_spans_can_be_listed(store):
    store.write("b", [at(5, tags={"k": "a"}, v=1.0), at(9, v=1.0), at(1, "n", v=1.0)])
    assert store.measurements("b") == ["m", "n"]
    assert store.tag_sets("b", "m") == [{}, {"k": "a"}]
    assert store.span_ms("b", "m") == (5, 9)
    assert store.span_ms("b", "nothing") is None


def test_a_failed_write_leaves_nothing_behind(store):
    with pytest.raises(OverflowError):
        store.write("b", [at(1, v=1.0), Point("m", (), (("x", 1.0),), 2**80)])
    assert points(store) == {}
    store.write("b", [at(1, v=1)])
    assert points(store) == {(): [(1, 1)]}


def test_two_stores_on_one_file_write_at_once(tmp_path):
    stores = [SeriesStore(tmp_path / "series.db") for _ in range(2)]

    def work(number):
        for t in range(50):
            stores[number].write("b", [at(t, tags={"by": str(number)}, v=float(t))])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(found) for found in points(stores[0]).values()] == [50, 50]
    for store in stores:
        store.close()
