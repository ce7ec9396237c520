"""What every series store promises, of the embedded one and of a real InfluxDB."""

from __future__ import annotations

import pytest

from controlplane.metrics.contract import Aggregate, SeriesAway
from controlplane.metrics.embedded.store import SeriesStore
from controlplane.metrics.influx import InfluxSettings, InfluxStore
from controlplane.metrics.line_protocol import Point, tags_of
from fixtures import influxd

MS = 1_000_000
NOON = 1_764_504_000_000


@pytest.fixture(params=["embedded", pytest.param("influx", marks=pytest.mark.integration)])
def store(request, tmp_path):
    if request.param == "embedded":
        store = SeriesStore(tmp_path / "series.db")
    else:
        url = request.getfixturevalue("influx")
        influxd.bucket(url, "b")
        store = InfluxStore(InfluxSettings(url, "any:token", "headwater"))
    yield store
    store.close()


def at(time_ms, measurement="m", tags=None, **fields):
    named = tags_of((tags or {}).items())
    return Point(measurement, named, tuple(fields.items()), int((NOON + time_ms) * MS))


def read(store, field="v", measurement="m", **options):
    for end in {"start_ms", "stop_ms"} & set(options):
        options[end] += NOON
    return {
        tuple(one.tags.items()): [(time - NOON, value) for time, value in one.points]
        for one in store.query("b", measurement, field, **options)
    }


def test_points_come_back_by_series_in_order_of_time(store):
    store.write("b", [at(2, tags={"k": "b"}, v=2.0), at(1, tags={"k": "b"}, v=1.5)])
    store.write("b", [at(5, tags={"k": "a", "z": "1"}, v=-0.25)])
    assert read(store) == {
        (("k", "a"), ("z", "1")): [(5, -0.25)],
        (("k", "b"),): [(1, 1.5), (2, 2.0)],
    }


def test_the_same_hour_written_twice_leaves_the_same_points(store):
    hour = [
        at(1_000 * n, tags={"k": str(n % 3)}, v=n / 7, n=n, ok=n % 2 == 0, s=f"t{n}")
        for n in range(3_600)
    ]
    fields = ("v", "n", "ok", "s")
    store.write("b", hour)
    once = [read(store, field) for field in fields]
    rolled = read(store, step_ms=60_000)
    assert sum(map(len, once[0].values())) == 3_600
    store.write("b", hour)
    assert [read(store, field) for field in fields] == once
    assert read(store, step_ms=60_000) == rolled


def test_a_field_that_is_written_again_leaves_the_others_alone(store):
    store.write("b", [at(1, v=1.0, w=5)])
    store.write("b", [at(1, v=2.0)])
    assert read(store) == {(): [(1, 2.0)]}
    assert read(store, "w") == {(): [(1, 5)]}


def test_types_come_back_as_they_were_written(store):
    store.write("b", [at(1, f=1.0, i=2**62, b=True, s='a "b" \\ c')])
    assert store.fields("b", "m") == {"b": "boolean", "f": "float", "i": "integer", "s": "string"}
    for field, value in (("f", 1.0), ("i", 2**62), ("b", True), ("s", 'a "b" \\ c')):
        assert read(store, field) == {(): [(1, value)]}


def test_names_with_every_character_come_back(store):
    tags = {"ta g,=": 'a "q", =\\ b'}
    store.write("b", [at(1, "my m,e", tags, **{"f =,": 1.0})])
    assert read(store, "f =,", "my m,e") == {tuple(tags.items()): [(1, 1.0)]}
    assert read(store, "f =,", "my m,e", where=tags) == {tuple(tags.items()): [(1, 1.0)]}
    assert store.tag_sets("b", "my m,e") == [tags]


@pytest.mark.parametrize("aggregate", list(Aggregate))
def test_the_points_of_a_step_become_one(store, aggregate):
    expected = {"mean": 2.0, "min": 1.0, "max": 3.0, "sum": 6.0, "count": 3, "last": 2.0}[aggregate]
    store.write("b", [at(10, v=1.0), at(19, v=2.0), at(12, v=3.0), at(20, v=9.0)])
    found = read(store, step_ms=10, aggregate=aggregate)
    assert found == {(): [(10, expected), (20, 1 if aggregate == "count" else 9.0)]}


def test_a_range_is_half_open_also_inside_of_a_step(store):
    store.write("b", [at(t, v=float(t)) for t in range(6)])
    assert read(store, start_ms=1, stop_ms=3) == {(): [(1, 1.0), (2, 2.0)]}
    steps = read(store, start_ms=1, stop_ms=4.5, step_ms=4, aggregate="sum")
    assert steps == {(): [(0, 6.0), (4, 4.0)]}


def test_a_limit_keeps_the_newest_of_each_series(store):
    store.write("b", [at(t, tags={"k": k}, v=float(t)) for t in range(10) for k in "ab"])
    expected = [(8, 8.0), (9, 9.0)]
    assert read(store, limit=2) == {(("k", "a"),): expected, (("k", "b"),): expected}
    assert read(store, limit=2, step_ms=1)[("k", "a"),] == expected


def test_tags_filter_by_one_value_or_several(store):
    store.write("b", [at(1, tags={"k": k}, v=1.0) for k in "abc"])
    assert list(read(store, where={"k": "a"})) == [(("k", "a"),)]
    assert len(read(store, where={"k": ["a", "c"]})) == 2
    assert read(store, where={"k": []}) == read(store, where={"other": "a"}) == {}


def test_names_and_spans_can_be_listed(store):
    store.write("b", [at(5, tags={"k": "a"}, v=1.0), at(9, v=1.0), at(1, "n", v=1.0)])
    assert store.measurements("b") == ["m", "n"]
    assert store.tag_sets("b", "m") == [{}, {"k": "a"}]
    assert store.span_ms("b", "m") == (NOON + 5, NOON + 9)
    assert store.span_ms("b", "nothing") is None
    assert read(store, "nothing") == {}


def test_text_has_no_steps(store):
    store.write("b", [at(1, v="text")])
    assert read(store, step_ms=10, aggregate="count") == {}


def test_an_influxdb_that_does_not_answer_is_one_sentence():
    store = InfluxStore(InfluxSettings("http://127.0.0.1:9", "secret", "headwater"))
    for ask in (lambda: read(store), lambda: store.write("b", [at(1, v=1.0)])):
        with pytest.raises(SeriesAway, match=r"^InfluxDB at http://127.0.0.1:9 does not answer"):
            ask()
    assert "secret" not in repr(InfluxSettings("http://x", "secret", "headwater"))
    store.close()
