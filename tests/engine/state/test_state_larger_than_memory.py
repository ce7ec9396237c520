"""State that is larger than its memory: the same results, within the budget, or a clear failure."""

from __future__ import annotations

import functools
import gc
import resource
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

from engine import agg, windows
from engine.aggregates import Partials
from engine.elements import MAX_TIME
from engine.errors import ConfigError, StateError
from engine.keygroups import KeyGroupRange, key_groups
from engine.operators.windows.window_aggregate import WindowAggregate
from engine.state.budget import Budget, budget_of, parse_size
from engine.state.contract import MAP_KEY, SLICE_END, TIME, StateDescriptor, StateKind
from engine.state.memory import MemoryBackend
from engine.state.rocks import RocksBackend
from engine.testing.harness import OperatorHarness

ALL = KeyGroupRange(0, 128)
KEYS, SLICES, BATCHES = 200_000, 2, 16
EIGHT = Budget(8 * 2**20)

TEXT = StateDescriptor("text", StateKind.VALUE, {"k": pl.Int64()}, {"value": pl.String()})
RUNS = StateDescriptor("runs", StateKind.RUNS, {"k": pl.Int64()}, {"n": pl.Int64()})
TIMERS = StateDescriptor("timers", StateKind.TIMERS, {"k": pl.Int64()}, {TIME: pl.Int64()})


def counts():
    """A count and a maximum by key in windows of ten: 13 MB of them are open at once."""
    declared = {"n": agg.count(), "most": agg.max("x")}
    made = {name: each.accumulator(name, pl.Int64()) for name, each in declared.items()}
    partials = Partials(made, {name: each.of for name, each in declared.items()})
    return WindowAggregate({"k": pl.Int64()}, windows.tumbling(10), partials), partials


@functools.cache
def partial_batches():
    """Each key twice in each slice, in an order of no use to anybody."""
    _, partials = counts()
    found = []
    random = np.random.default_rng(7)
    keys = np.concatenate([random.permutation(KEYS) for _ in range(2 * SLICES)])
    for at in range(0, len(keys), len(keys) // BATCHES):
        batch = keys[at : at + len(keys) // BATCHES]
        rows = pl.DataFrame({"k": batch, "x": batch % 1_000 + at})
        ends = pl.Series(SLICE_END, 10 * (1 + np.arange(at, at + len(batch)) // (2 * KEYS)))
        partial = partials.of_rows(rows, ends, ["k"])
        found.append(partial.insert_column(0, key_groups(partial, ["k"], 128)))
    return found


def fired(new_backend, watch):
    operator, _ = counts()
    harness = OperatorHarness(operator, new_backend=new_backend)
    for partial in partial_batches():
        harness.push(partial)
        watch()
    harness.advance(MAX_TIME)
    watch()
    return pl.concat(harness.frames["main"])


def test_windows_larger_than_memory_stay_in_their_budget_and_give_the_same(tmp_path):
    backends, held = [], []

    def on_disk(groups):
        backends.append(RocksBackend(groups, tmp_path, EIGHT))
        return backends[0]

    found = fired(on_disk, lambda: held.append(backends[0].memory_bytes))
    wanted = fired(MemoryBackend, lambda: None)
    assert found.sort("window_end", "k").equals(wanted.sort("window_end", "k"))
    assert wanted.estimated_size() > 2 * EIGHT.total_bytes
    # RocksDB's files have been written, so the state did not fit; and its caches overrun a little.
    assert max(held) < 1.1 * EIGHT.total_bytes
    [backend] = backends
    backend.close()


def test_a_part_of_a_snapshot_is_a_part_of_memory(tmp_path):
    operator, _ = counts()
    backend = RocksBackend(ALL, tmp_path, EIGHT)
    harness = OperatorHarness(operator, new_backend=lambda _: backend)
    for partial in partial_batches():
        harness.push(partial)
    [frozen] = backend.freeze()
    sizes, rows, last = [], 0, -1
    for part in frozen.tables():
        sizes.append(part.estimated_size())
        rows += part.height
        groups = part.get_column("key_group")
        assert last < groups[0] <= groups[-1]
        last = groups[-1]
    assert rows == KEYS * SLICES
    assert max(sizes) < 2 * EIGHT.part_bytes
    backend.close()


def test_runs_of_one_slice_on_disk_are_merged_when_there_are_many(tmp_path):
    backend = RocksBackend(ALL, tmp_path, Budget(2**20, 0.5, 0.499))
    handle = backend.state(RUNS)
    handle.merge_with(lambda run, by, same: run.group_by(by).agg(pl.col(same).first(), pl.sum("n")))
    run = pl.DataFrame({"k": range(100), "slice_end": 1, "n": 1})
    run = run.insert_column(0, key_groups(run, ["k"], 128))
    for _ in range(50):
        handle.append(run)
    assert sum(part.height for part in handle.read(0, 1)) < 10 * run.height
    assert handle.take_until(1).get_column("n").to_list() == [50] * 100
    backend.close()


def test_only_the_next_timers_are_in_memory(tmp_path):
    backend = RocksBackend(ALL, tmp_path, Budget(2**20))
    handle = backend.state(TIMERS)
    times = np.random.default_rng(3).permutation(20_000).tolist()
    for time in times:
        handle.add(time, (time % 128, time))
        handle.add(time, (time % 128, time + 10**6))
        handle.remove(time, (time % 128, time + 10**6))
    assert backend.memory_bytes < 1.2 * 2**20
    found = []
    while (timer := handle.first()) is not None:
        handle.remove(*timer)
        found.append(timer[0])
    assert found == sorted(times)
    backend.close()


MAPS = StateDescriptor(
    "maps", StateKind.MAP, {"k": pl.Int64()}, {MAP_KEY: pl.Int64(), "value": pl.String()}
)


def test_a_large_map_is_read_and_written_entry_by_entry(tmp_path):
    backend = RocksBackend(ALL, tmp_path, EIGHT)
    handle = backend.state(MAPS)
    handle.put_many({(1, 1): dict.fromkeys(range(5000), "x" * 100), (1, 2): {7: "y"}})
    before = backend.memory_bytes
    for _ in range(10):
        held = handle.get_many([(1, 1), (1, 2)])
        large, small = held[1, 1].copy(), held[1, 2].copy()
        assert large[4_999][:1] == "x"
        large[4_999], large[9_000], small[8] = "xyz", "new", "z"
        del large[3]
        assert 3 not in large
        handle.put_many({(1, 1): large, (1, 2): small})
    assert backend.memory_bytes - before < 20_000
    assert isinstance(small, dict)
    [frozen] = backend.freeze()
    wanted = dict.fromkeys(range(5000), "x" * 100) | {4_999: "xyz", 9_000: "new"}
    del wanted[3]
    assert handle.get_many([(1, 1)]) == {(1, 1): wanted}
    handle.put_many({(1, 1): {1: "small again"}})
    assert dict(handle.items()) == {(1, 1): {1: "small again"}, (1, 2): {7: "y", 8: "z"}}
    assert frozen.table().rows() == [
        *((1, 1, *at) for at in wanted.items()),
        (1, 2, 7, "y"),
        (1, 2, 8, "z"),
    ]
    backend.close()


@contextmanager
def room_for(size_bytes):
    """No file of this process may grow beyond a size: what a full disk says, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def put(backend, numbers):
    backend.state(TEXT).put_many({(k % 128, k): "x" * 100 + str(k) for k in numbers})


def put_until_it_fails(backend):
    for at in range(1_000, 100_000, 1_000):
        put(backend, range(at, at + 1_000))


def test_a_full_disk_fails_the_job_with_its_reason_and_the_last_snapshot_goes_on(tmp_path):
    backend = RocksBackend(ALL, tmp_path, Budget(2**20))
    put(backend, range(1_000))
    [frozen] = backend.freeze()
    snapshot = frozen.table()
    with room_for(20_000):
        with pytest.raises(StateError, match=r"state in .* cannot be written: .*that the disk"):
            put_until_it_fails(backend)
        backend.close()
    again = RocksBackend(ALL, tmp_path, Budget(2**20))
    again.restore(TEXT, snapshot)
    put(again, range(1_000, 1_010))
    assert len(list(again.state(TEXT).items())) == 1_010
    again.close()
    del backend, again, frozen
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_used_is_named_before_the_job_runs(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"state folder .*file cannot be used: .*localdir to a"):
        RocksBackend(ALL, tmp_path / "file")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"per-operator": "8 apples"}, "per-operator is not a size: got '8 apples'; pass e.g. '64"),
        ({"per-operator": "1kb"}, "per-operator is too small: got 1024 bytes; pass 1mb or more"),
        ({"write-buffer-ratio": "much"}, "write-buffer-ratio is not a share: got 'much'"),
        ({"write-buffer-ratio": "0.9"}, "leaves nothing for some use: got write-buffer-ratio 0.9"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(settings, sentence):
    with pytest.raises(ConfigError, match=sentence):
        budget_of({f"state.backend.rocksdb.memory.{key}": text for key, text in settings.items()})


def test_sizes_are_written_as_people_write_them():
    assert [parse_size(text, "it") for text in ("64mb", "1 GB", "512", 7)] == [2**26, 2**30, 512, 7]
