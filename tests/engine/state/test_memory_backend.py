"""The memory backend: values by key, frozen by reference, restored by key group."""

from __future__ import annotations

import polars as pl
import pytest

from engine.errors import InternalError, RestoreError
from engine.keygroups import KeyGroupRange
from engine.state.contract import StateDescriptor, StateKind
from engine.state.handles import DELETED
from engine.state.memory import MemoryBackend

FACTOR = StateDescriptor(
    "factor", StateKind.VALUE, {"sensor": pl.String()}, {"value": pl.Float64()}
)
ALL = KeyGroupRange(0, 128)


def backend_with(values):
    backend = MemoryBackend(ALL)
    backend.state(FACTOR).put_many(values)
    return backend


def test_a_key_without_a_value_is_absent():
    handle = backend_with({(5, "door"): 2.0}).state(FACTOR)
    assert handle.get_many([(5, "door"), (9, "pressure")]) == {(5, "door"): 2.0}


def test_a_deleted_value_is_gone_and_deleting_it_again_is_no_error():
    handle = backend_with({(5, "door"): 2.0}).state(FACTOR)
    handle.put_many({(5, "door"): DELETED})
    handle.put_many({(5, "door"): DELETED})
    assert handle.get_many([(5, "door")]) == {}


def test_the_table_is_sorted_by_key_group_and_key():
    [frozen] = backend_with({(9, "b"): 1.0, (2, "z"): 2.0, (9, "a"): 3.0}).freeze()
    assert frozen.table().rows() == [(2, "z", 2.0), (9, "a", 3.0), (9, "b", 1.0)]


def test_a_frozen_value_does_not_see_what_comes_later():
    backend = backend_with({(5, "door"): 2.0})
    [frozen] = backend.freeze()
    backend.state(FACTOR).put_many({(5, "door"): 3.0, (6, "x"): 1.0})
    assert frozen.table().rows() == [(5, "door", 2.0)]


def test_each_subtask_restores_its_own_key_groups_only():
    [frozen] = backend_with({(2, "a"): 1.0, (63, "b"): 2.0, (64, "c"): 3.0}).freeze()
    halves = [MemoryBackend(KeyGroupRange(0, 64)), MemoryBackend(KeyGroupRange(64, 128))]
    for half in halves:
        half.restore(FACTOR, frozen.table())
    tables = [half.freeze()[0].table().rows() for half in halves]
    assert tables == [[(2, "a", 1.0), (63, "b", 2.0)], [(64, "c", 3.0)]]


def test_an_empty_state_has_a_table_of_its_shape():
    [frozen] = backend_with({}).freeze()
    assert frozen.table().schema == {
        "key_group": pl.UInt16,
        "sensor": pl.String,
        "value": pl.Float64,
    }


def test_a_table_of_another_shape_is_refused_with_both_shapes():
    table = pl.DataFrame(schema={"key_group": pl.UInt16, "sensor": pl.Int64, "value": pl.Float64})
    with pytest.raises(RestoreError, match=r"stored .*sensor: Int64.* wanted .*sensor: String"):
        MemoryBackend(ALL).restore(FACTOR, table)


def test_one_name_cannot_stand_for_two_states():
    backend = backend_with({})
    other = StateDescriptor("factor", StateKind.RUNS, FACTOR.keys, FACTOR.values)
    with pytest.raises(InternalError, match="asked for in two shapes"):
        backend.state(other)
