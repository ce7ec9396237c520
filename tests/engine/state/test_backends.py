"""Every backend keeps the contract, leaves nothing behind, and can take the other's snapshots."""

from __future__ import annotations

import gc
import os

import polars as pl
import pytest

import engine as hw
from engine.errors import ConfigError
from engine.graph.plan import Plan, plan_of
from engine.keygroups import KeyGroupRange
from engine.state.backends import BackendKind
from engine.state.budget import Budget
from engine.state.contract import StateDescriptor, StateKind
from engine.state.memory import MemoryBackend
from engine.state.rocks import RocksBackend
from engine.state.scratch import remove_orphans, scratch_folder
from engine.stream.recording import recording
from engine.testing.memory import MemorySource, OutputTables
from engine.testing.state_conformance import check_state_backend

ALL = KeyGroupRange(0, 128)
NUMBER = StateDescriptor("n", StateKind.VALUE, {"k": pl.String()}, {"value": pl.Int64()})


def test_memory_keeps_the_contract():
    check_state_backend(MemoryBackend)


def test_rocksdb_keeps_the_contract(tmp_path):
    check_state_backend(lambda groups: RocksBackend(groups, tmp_path), seeds=[0])
    gc.collect()
    assert list(tmp_path.iterdir()) == []


TINY = Budget(2**20, write_buffer_ratio=0.5, block_cache_ratio=0.499)
"""Leaves a kilobyte for columns: everything goes to disk at once, in blocks of a row or two."""


def test_rocksdb_keeps_the_contract_when_nothing_fits_into_memory(tmp_path):
    check_state_backend(lambda groups: RocksBackend(groups, tmp_path, TINY), seeds=[3])
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_snapshots_move_from_one_backend_to_the_other(tmp_path):
    def rocks(groups):
        return RocksBackend(groups, tmp_path)

    check_state_backend(MemoryBackend, restore_with=rocks, seeds=[1])
    check_state_backend(rocks, restore_with=MemoryBackend, seeds=[2])


def test_equal_keys_are_one_key_whoever_made_them(tmp_path):
    """Bytes that depend on the identity of objects would make two keys of one."""
    backend = RocksBackend(ALL, tmp_path)
    same = "ab"
    for key in [(1, same), (1, "".join(["a", "b"]))]:
        backend.state(NUMBER).put_many({key: 7})
    assert list(backend.state(NUMBER).items()) == [((1, "ab"), 7)]
    backend.close()


def test_a_snapshot_can_be_written_after_its_task_has_ended(tmp_path):
    backend = RocksBackend(ALL, tmp_path)
    backend.state(NUMBER).put_many({(1, "a"): 7})
    [frozen] = backend.freeze()
    backend.close()
    assert frozen.table().rows() == [(1, "a", 7)]
    del frozen
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_windows_that_fit_into_memory_make_no_database(tmp_path):
    runs = StateDescriptor("runs", StateKind.RUNS, {"k": pl.Int64()}, {"n": pl.Int64()})
    backend = RocksBackend(ALL, tmp_path)
    backend.state(runs)
    [folder] = tmp_path.iterdir()
    assert list(folder.iterdir()) == []


def test_what_a_killed_worker_left_is_removed_and_nothing_else(tmp_path):
    mine = scratch_folder(tmp_path)
    dead = mine.with_name(mine.name.replace(f"-{os.getpid()}-", "-2147483647-"))
    other = tmp_path / "headwater-state-elsewhere-2147483647-x"
    for folder in (dead, other):
        folder.mkdir()
    remove_orphans(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([mine, other])


def job(**options):
    env = hw.Environment("job", **options)
    rows = env.source(MemorySource({"all": pl.DataFrame({"n": [1]})}), uid="rows")
    rows.sink(OutputTables().sink("out"), uid="out")
    return env.graph()


def test_the_backend_is_a_setting_of_the_job_and_of_its_submission():
    assert job().state.kind is BackendKind.MEMORY
    assert job(state_backend="rocksdb").state.kind is BackendKind.ROCKSDB
    planned = Plan.from_json(plan_of(job(state_backend="rocksdb")).to_json())
    assert planned.state_backend == "rocksdb"
    wanted = {"state.backend": "rocksdb", "state.backend.rocksdb.localdir": "/fast"}
    with recording(wanted):
        assert job().state.kind is BackendKind.ROCKSDB
        assert job().state.folder == "/fast"
    with recording({"state.backend": "hashmap"}):
        assert job(state_backend="rocksdb").state.kind is BackendKind.MEMORY
    with pytest.raises(ConfigError, match=r"state\.backend is unknown: got 'disk'; pass memory"):
        job(state_backend="disk")
