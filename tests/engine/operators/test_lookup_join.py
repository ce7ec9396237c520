"""Rows meet the table that was read last; a snapshot keeps it."""

from __future__ import annotations

import polars as pl
import pytest

import engine as hw
from engine.errors import FunctionError, GraphError, SourceError
from engine.operators.joins.lookup_join import LookupJoin, LookupTable
from engine.stream.lookup import FileTable, checked_lookup
from engine.testing.harness import OperatorHarness
from engine.testing.memory import MemorySource

ROWS = pl.DataFrame({"sensor": ["a", "b", "c"], "event_time": [1, 2, 3]})
TABLE = {"id": pl.String(), "room": pl.String()}


class Rooms:
    """A table that changes at each reading; copies of it share the count."""

    readings = 0

    def __call__(self):
        Rooms.readings += 1
        return pl.DataFrame({"id": ["a", "b"], "room": [f"hall {Rooms.readings}", None]})


@pytest.fixture(autouse=True)
def _none_read():
    Rooms.readings = 0


def join(read=None, *, how="inner"):
    read = Rooms() if read is None else read
    operator, _ = checked_lookup(ROWS.schema, read, {"sensor": "id"}, 100, how, TABLE, None)
    return operator


def rooms(harness):
    harness.push(ROWS)
    return [row["room"] for row in harness.outputs["main"]]


def test_rows_get_the_columns_of_the_table():
    harness = OperatorHarness(join())
    harness.push(ROWS.with_columns(row_watermark=pl.lit(None, pl.Int64)))
    assert harness.outputs["main"] == [
        {"sensor": "a", "room": "hall 1", "event_time": 1, "row_watermark": None},
        {"sensor": "b", "room": None, "event_time": 2, "row_watermark": None},
    ]


def test_an_outer_join_keeps_rows_that_meet_nothing():
    assert rooms(OperatorHarness(join(how="left"))) == ["hall 1", None, None]


def test_the_table_is_read_again_when_the_clock_passes_a_multiple_of_the_period():
    harness = OperatorHarness(join())
    harness.tick(730)
    assert rooms(harness)[-2] == "hall 2"
    harness.tick(799)
    assert rooms(harness)[-2] == "hall 2"
    harness.tick(800)
    assert rooms(harness)[-2] == "hall 3"


def test_a_restored_job_goes_on_with_the_table_of_its_snapshot():
    first = OperatorHarness(join())
    second = OperatorHarness(join(), restored=[first.snapshot()])
    assert rooms(second)[0] == "hall 1"
    second.tick(1_000)
    assert rooms(second)[-2] == "hall 2"


def test_an_empty_table_is_a_table_too():
    def none():
        return Rooms()().clear()

    first = OperatorHarness(join(none))
    second = OperatorHarness(join(none), restored=[first.snapshot()])
    assert rooms(second) == []
    assert Rooms.readings == 1


def test_a_row_meets_all_rows_of_the_table_that_equal_it():
    twice = pl.DataFrame({"id": ["a", "a"], "room": ["hall", "bath"]})
    assert rooms(OperatorHarness(join(lambda: twice))) == ["hall", "bath"]


def test_a_function_that_fails_is_named():
    def broken():
        raise KeyError("no rooms")

    with pytest.raises(FunctionError, match="table 'broken' raised KeyError: 'no rooms'"):
        OperatorHarness(join(broken))


def test_other_columns_than_before_are_refused():
    with pytest.raises(FunctionError, match="has other columns than when the job was built"):
        OperatorHarness(join(lambda: pl.DataFrame({"id": ["a"], "room": [1]})))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_are_read_as_they_were_when_the_graph_was_built(tmp_path, kind):
    path = tmp_path / f"rooms.{kind}"
    frame = pl.DataFrame({"id": ["a"], "floor": [2.5]})
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    operator, schema = checked_lookup(ROWS.schema, path, {"sensor": "id"}, "1m", "inner", None, "")
    assert schema["floor"] == pl.Float64()
    harness = OperatorHarness(operator)
    harness.push(ROWS)
    assert [row["floor"] for row in harness.outputs["main"]] == [2.5]
    path.unlink()
    with pytest.raises(SourceError, match="cannot be read"):
        OperatorHarness(operator)


def test_a_csv_file_keeps_its_types(tmp_path):
    path = tmp_path / "rooms.csv"
    path.write_text("id,floor\na,2.5\n")
    read = FileTable(path, dict(pl.read_csv(path).schema))
    path.write_text("id,floor\na,2\n")
    assert read()["floor"].dtype == pl.Float64()


def stream():
    return hw.Environment("rooms").source(MemorySource({"x": ROWS.drop("event_time")}, every=0))


REFUSED = {
    "nobody knows the file": (
        {"table": "rooms.txt"},
        "is of no known kind: got '.txt'; pass .parquet, .csv or a function",
    ),
    "no file": ({"table": "missing.csv"}, "cannot be read"),
    "no such column": (
        {"on": "sensor"},
        "table 'Rooms' has no column 'sensor' to join on: it has id, room",
    ),
    "another type": (
        {"schema": {"id": int}},
        "lookup_join compares columns of different types: got sensor: String and id: Int64; "
        "cast one of them",
    ),
    "equal names": (
        {"schema": {"id": str, "sensor": str}},
        "lookup_join gets the column 'sensor' from both the stream and the table; pass another "
        "suffix, e.g. suffix='_table', or rename it before",
    ),
    "a reserved name": (
        {"schema": {"id": str, "key_group": str}},
        "table 'Rooms' has the reserved column 'key_group'; rename it",
    ),
    "no period": ({"every": 0}, "every of lookup_join must be positive: got 0"),
    "unknown kind": ({"how": "full"}, "got how='full'; pass inner, left"),
    "no columns": ({"on": []}, "lookup_join joins on no column: got none; pass e.g. on='sensor'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_looked_up_is_refused_in_one_sentence(case):
    changes, sentence = REFUSED[case]
    options = {"table": Rooms(), "on": {"sensor": "id"}, "every": "1m"} | changes
    with pytest.raises(GraphError) as refused:
        stream().lookup_join(options.pop("table"), **options)
    assert sentence in str(refused.value)


def test_a_function_whose_columns_are_not_given_is_asked():
    looked_up = stream().lookup_join(Rooms(), on={"sensor": "id"}, every="1m")
    assert looked_up.schema == {"sensor": pl.String(), "room": pl.String()}
    assert Rooms.readings == 1
    described = LookupJoin(LookupTable("rooms", Rooms(), TABLE), ["a"], 60_000_000, {}).describe()
    assert described == {"table": "rooms", "on": "a", "every": "1m", "how": "inner"}
