"""What one key has, asked for while an operator runs: what a snapshot would have of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from engine.checkpoint.format.entries import StateEntry
from engine.checkpoint.inspection.reading import open_snapshot
from engine.elements import KEY_GROUP
from engine.keygroups import KeyGroupRange
from engine.state.budget import Budget
from engine.state.contract import INDEX, MAP_KEY, StateBackend, StateDescriptor, StateKind
from engine.state.lookup import WITH_VALUES, look_up
from engine.state.memory import MemoryBackend
from engine.state.rocks import RocksBackend
from engine.state.schema import type_named
from golden_snapshots import formats, snapshots

ALL = KeyGroupRange(0, 8)
TINY = Budget(2**20, write_buffer_ratio=0.5, block_cache_ratio=0.499)
SNAPSHOT = open_snapshot(str(snapshots(formats()[0])[0]))
STATES = [state for _, state in SNAPSHOT.states() if state.rows and state.kind in WITH_VALUES]

Make = Callable[[Path], StateBackend]

backends = pytest.mark.parametrize(
    "make",
    [
        lambda _: MemoryBackend(ALL),
        lambda path: RocksBackend(ALL, path),
        lambda path: RocksBackend(ALL, path, TINY),
    ],
    ids=["memory", "rocks", "rocks without memory"],
)


def descriptor_of(state: StateEntry) -> StateDescriptor:
    keys, values = (
        {name: type_named(dtype) for name, dtype in columns.items()}
        for columns in (state.keys, state.values)
    )
    return StateDescriptor(state.name, state.kind, keys, values)


@backends
@pytest.mark.parametrize("state", STATES, ids=lambda state: f"{state.name}, {state.kind}")
def test_each_key_has_what_its_snapshot_has(state: StateEntry, make: Make, tmp_path: Path) -> None:
    descriptor = descriptor_of(state)
    table = SNAPSHOT.collect(SNAPSHOT.scan(state))
    backend = make(tmp_path)
    backend.restore(descriptor, table)
    handle = backend.state(descriptor)
    parts = table.partition_by(KEY_GROUP, *descriptor.keys, as_dict=True, maintain_order=True)
    assert len(parts) > 1 or descriptor.is_broadcast
    for key, rows in parts.items():
        assert look_up(handle, descriptor, key, 1_000)().equals(rows)
    nobody = tuple(None if part == key else part for part in (999, *key[1:]))
    assert look_up(handle, descriptor, nobody, 1_000)().is_empty()
    backend.close()


@backends
@pytest.mark.parametrize("kind", [StateKind.LIST, StateKind.MAP])
def test_a_key_that_has_much_is_cut(kind: StateKind, make: Make, tmp_path: Path) -> None:
    second = INDEX if kind is StateKind.LIST else MAP_KEY
    descriptor = StateDescriptor(
        "many", kind, {"k": pl.String()}, {second: pl.Int64(), "value": pl.Int64()}
    )
    rows = pl.DataFrame({KEY_GROUP: [3] * 500, "k": "ann", second: range(500), "value": range(500)})
    backend = make(tmp_path)
    backend.restore(descriptor, rows.cast({KEY_GROUP: pl.UInt16}))
    found = look_up(backend.state(descriptor), descriptor, (3, "ann"), 10)()
    assert found.get_column("value").to_list() == list(range(11))
    backend.close()
