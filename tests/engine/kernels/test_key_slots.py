"""Key slots: every key of every batch has one number, whatever its type."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import FunctionError
from engine.kernels import KeySlots
from engine.keygroups import key_groups

DAYS = [date(2026, 1, 1), date(2026, 1, 2)]
TYPES = {
    "whole": (pl.Int64(), [0, -1, 2**40, 2**63 - 1]),
    "small": (pl.Int8(), [0, -1, 127]),
    "natural": (pl.UInt64(), [0, 1, 2**64 - 1]),
    "flag": (pl.Boolean(), [True, False]),
    "day": (pl.Date(), DAYS),
    "moment": (pl.Datetime("ns", "UTC"), [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]),
    "text": (pl.String(), ["", "a", "ab", "a text of more than twelve bytes", "naïve"]),
    "raw": (pl.Binary(), [b"", b"\0", b"\0\0"]),
}
SCHEMA = {name: dtype for name, (dtype, _) in TYPES.items()}
rows = st.tuples(*(st.sampled_from(values) for _, values in TYPES.values()))


@given(
    st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3, unique=True),
    st.lists(st.lists(rows, min_size=1, max_size=8), max_size=4),
)
@settings(max_examples=60, deadline=None)
def test_slots_are_numbers_without_gaps_by_first_appearance(keys, batches):
    slots, numbers = KeySlots(keys, 128), {}
    for batch in batches:
        frame = pl.DataFrame(batch, schema=SCHEMA, orient="row")
        expected = [numbers.setdefault(key, len(numbers)) for key in frame.select(keys).rows()]
        assert slots.of(frame).tolist() == expected
    if numbers:
        groups, *columns = slots.known()
        table = pl.DataFrame(columns)
        assert table.rows() == list(numbers)
        assert groups.to_list() == key_groups(table, keys, 128).to_list()
        assert table.schema == {key: SCHEMA[key] for key in keys}


def test_a_slice_of_a_frame_of_texts_is_read_from_its_place():
    frame = pl.DataFrame({"key": ["x", "a", "b", "a"]}).slice(1)
    assert KeySlots(["key"], 128).of(frame).tolist() == [0, 1, 0]


def test_many_keys_make_the_tables_grow():
    slots = KeySlots(["key"], 128)
    for first in range(0, 5_000, 1_000):
        numbers = np.arange(first, first + 1_000)
        assert slots.of(pl.DataFrame({"key": numbers})).tolist() == numbers.tolist()
        texts = pl.DataFrame({"key": numbers}).cast(pl.String)
        again = KeySlots(["key"], 128)
        assert again.of(texts).tolist() == list(range(1_000))


def test_a_cleared_table_begins_anew():
    slots = KeySlots(["key"], 128)
    slots.of(pl.DataFrame({"key": [5, 6]}))
    slots.clear()
    assert (len(slots), slots.of(pl.DataFrame({"key": [6]})).tolist()) == (0, [0])


def test_a_null_key_is_refused():
    with pytest.raises(FunctionError, match="key column 'key' is null in 1 of 2 rows"):
        KeySlots(["key"], 128).of(pl.DataFrame({"key": [1, None]}))
