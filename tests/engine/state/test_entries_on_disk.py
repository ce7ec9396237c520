"""Entries and addresses on disk: the same one by one and by columns, and in canonical order."""

from __future__ import annotations

from datetime import date

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from polars.testing.parametric import column, dataframes
from rocksdict import WriteBatch

from engine.errors import InternalError
from engine.keygroups import KeyGroupRange
from engine.state.budget import Budget
from engine.state.contract import StateDescriptor, StateKind
from engine.state.handles import DELETED
from engine.state.rocks import RocksBackend
from engine.state.rocks.addresses import MANY, Addresses, ordering
from engine.state.rocks.entries import PackedEntries, PickledEntries, entries_of
from engine.state.rocks.store import Store
from engine.state.schema import table_schema
from engine.state.tables import in_order, items_of, table_of

KEYS = {
    "text": pl.String(),
    "raw": pl.Binary(),
    "whole": pl.Int32(),
    "large": pl.UInt64(),
    "flag": pl.Boolean(),
    "at": pl.Datetime("us", "Europe/Zurich"),
    "day": pl.Date(),
}
VALUES = {
    "n": pl.Int64(),
    "tiny": pl.Int8(),
    "real": pl.Float64(),
    "single": pl.Float32(),
    "note": pl.String(),
    "bytes": pl.Binary(),
    "yes": pl.Boolean(),
    "zoned": pl.Datetime("us", "America/New_York"),
    "local": pl.Datetime("ms"),
    "after": pl.Duration("us"),
    "opening": pl.Time(),
}
DAY = pl.Date()
STATE = StateDescriptor("all", StateKind.VALUE, KEYS, VALUES)
TEXT = st.text(st.sampled_from("ab\0\xffü東"), max_size=4)
GIVEN = {"text": TEXT, "raw": st.binary(max_size=3), "note": TEXT, "real": st.floats(width=32)}
TABLES = dataframes(
    [
        column(name, dtype=dtype, strategy=GIVEN.get(name), allow_null=name in VALUES)
        for name, dtype in table_schema(STATE).items()
    ],
    min_size=1,
    max_size=6,
)


@settings(max_examples=30, deadline=None)
@given(TABLES)
def test_a_row_is_the_same_entry_alone_and_among_others(table):
    entries = PackedEntries(STATE)
    by_columns = entries.of_rows(table).to_list()
    items = list(items_of(STATE, table))
    assert [entries.dumped(*item) for item in items] == by_columns
    assert_frame_equal(entries.table(by_columns), table)
    again = pl.DataFrame(
        [(*key, *item) for key, item in map(entries.loaded, by_columns)],
        schema=table.schema,
        orient="row",
    )
    assert_frame_equal(again, table)


@settings(max_examples=30, deadline=None)
@given(TABLES)
def test_addresses_are_in_the_order_of_the_canonical_table(table):
    table = in_order(STATE, table.unique(["key_group", *KEYS]))
    addresses = Addresses(b"\0\1", KEYS)
    by_columns = addresses.of_rows(table).to_list()
    assert by_columns == [addresses.of(key) for key, _ in items_of(STATE, table)]
    assert by_columns == sorted(set(by_columns))
    assert list(map(addresses.key_at, by_columns)) == [key for key, _ in items_of(STATE, table)]


def test_many_keys_are_read_and_written_as_few_are(tmp_path):
    state = StateDescriptor("n", StateKind.VALUE, {"k": pl.String()}, {"a": pl.Int64(), "b": DAY})
    backend = RocksBackend(KeyGroupRange(0, 128), tmp_path)
    handle = backend.state(state)
    items = {(n % 128, f"key {n}"): (n, None if n % 3 else date(2026, 1, 1)) for n in range(3_000)}
    handle.put_many(items)
    handle.put_many(dict.fromkeys(list(items)[: 2 * MANY], DELETED))
    left = dict(list(items.items())[2 * MANY :])
    assert handle.get_many(items) == left
    assert handle.get_many(list(items)[-5:]) == dict(list(left.items())[-5:])
    [frozen] = backend.freeze()
    assert_frame_equal(frozen.table(), table_of(state, left.items()))
    backend.close()


def test_what_is_no_number_and_no_text_is_pickled():
    for dtype in (pl.Decimal(10, 2), pl.Int128()):
        state = StateDescriptor("n", StateKind.VALUE, {"k": pl.Int64()}, {"value": dtype})
        assert isinstance(entries_of(state), PickledEntries)
    with pytest.raises(InternalError, match="cannot be put in order: their type is Float64"):
        ordering(pl.Float64())


def written(store, number, value):
    batch = WriteBatch(raw_mode=True)
    for at in range(number):
        batch.put(b"\0\1" + at.to_bytes(4, "big"), value)
    batch.put(b"\0\2", b"of another state")
    store.write(batch)


def test_a_scan_shows_one_moment_and_one_state(tmp_path):
    store = Store(tmp_path, Budget(2**20))
    written(store, 3_000, b"before")
    scan, view = store.scan(b"\0\1"), store.view()
    for _ in range(20):
        written(store, 20_000, b"x" * 50)
    assert list(scan) == [b"before"] * 3_000
    assert [value for _, value in view.items(b"\0\1")] == [b"before"] * 3_000
    store.close()


def test_a_scan_comes_in_parts_of_about_the_size_that_is_wanted(tmp_path):
    store = Store(tmp_path, Budget(2**20))
    written(store, 20_000, b"x" * 10)
    parts = [len(part) for part in store.scan(b"\0\1").parts(60_000)]
    assert sum(parts) == 20_000
    assert max(parts) <= 6_000 + 4_096
    assert list(store.scan(b"\0\3").parts(1)) == []
    store.close()
