"""Runs: what goes in comes out merged, however often it was compacted, frozen or restored."""

from __future__ import annotations

from itertools import chain

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.keygroups import KeyGroupRange
from engine.state.contract import StateDescriptor, StateKind
from engine.state.memory import MemoryBackend

RUNS = StateDescriptor("runs", StateKind.RUNS, {"key": pl.Int64()}, {"n": pl.Int64()})
SCHEMA = {"key_group": pl.UInt16, "key": pl.Int64, "slice_end": pl.Int64, "n": pl.Int64}
ALL = KeyGroupRange(0, 128)


def merge(frame, by, constant):
    return frame.group_by(by).agg(pl.col(constant).first(), pl.col("n").sum())


def opened(backend):
    handle = backend.state(RUNS)
    handle.merge_with(merge)
    return handle


def run_of(rows):
    return pl.DataFrame([(key % 128, key, end, 1) for key, end in rows], SCHEMA, orient="row")


def taken(handle, time):
    frame = handle.take_until(time)
    return [] if frame is None else sorted(frame.select("key", "slice_end", "n").rows())


def counted(rows):
    return sorted((key, end, rows.count((key, end))) for key, end in set(rows))


rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=5)


@given(st.lists(rows, max_size=40))
@settings(deadline=None, max_examples=50)
def test_a_slice_is_the_sum_of_its_runs(batches):
    handle = opened(MemoryBackend(ALL))
    for batch in batches:
        handle.append(run_of(batch))
    everything = [row for batch in batches for row in batch]
    assert taken(handle, 1) == counted([row for row in everything if row[1] <= 1])
    assert taken(handle, 3) == counted([row for row in everything if row[1] > 1])
    assert taken(handle, 3) == []


@given(st.lists(rows, max_size=20), st.lists(rows, max_size=20))
@settings(deadline=None, max_examples=50)
def test_a_frozen_state_does_not_see_what_comes_later(before, after):
    backend = MemoryBackend(ALL)
    handle = opened(backend)
    for batch in before:
        handle.append(run_of(batch))
    [frozen] = backend.freeze()
    for batch in after:
        handle.append(run_of(batch))
    handle.take_until(2)
    table = frozen.table()
    assert table.equals(table.sort("key_group", "key", "slice_end"))
    assert sorted(table.select("key", "slice_end", "n").rows()) == counted(list(chain(*before)))


@given(st.lists(rows, max_size=20))
@settings(deadline=None, max_examples=50)
def test_the_canonical_table_does_not_tell_how_rows_were_batched(batches):
    def table(parts):
        backend = MemoryBackend(ALL)
        handle = opened(backend)
        for part in parts:
            handle.append(run_of(part))
        return backend.freeze()[0].table()

    assert table(batches).equals(table([list(chain(*batches))]))


def test_many_batches_of_few_keys_keep_few_runs():
    handle = opened(MemoryBackend(ALL))
    for _ in range(600):
        handle.append(run_of([(1, 1)]))
    assert len(handle.freeze()._runs) < 10
    assert taken(handle, 1) == [(1, 1, 600)]


def test_one_run_of_two_keys_comes_out_as_it_went_in():
    keys = {"key": pl.Int64(), "other": pl.Int64()}
    two = StateDescriptor("runs", StateKind.RUNS, keys, {"n": pl.Int64()})
    handle = MemoryBackend(ALL).state(two)
    handle.merge_with(merge)
    rows = [(1, 1, 1, 0, 1), (1, 1, 2, 0, 1)]
    schema = {"key_group": pl.UInt16, **keys, "slice_end": pl.Int64, "n": pl.Int64}
    handle.append(pl.DataFrame(rows, schema, orient="row"))
    assert sorted(handle.take_until(0).rows()) == rows
