"""Checkpoints that build on earlier ones hold what a whole one would."""

from __future__ import annotations

from random import Random

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.keygroups import KeyGroupRange
from engine.state.budget import Budget
from engine.state.changes import Changes, LayerPolicy
from engine.state.contract import MAP_KEY, FrozenChanges, Increment, StateDescriptor, StateKind
from engine.state.handles import DELETED
from engine.state.memory import MemoryBackend
from engine.state.rocks import RocksBackend
from engine.state.row_changes import LogChanges
from engine.state.schema import table_schema
from engine.testing.state_checks.increments import check_increments

EAGER = LayerPolicy(min_rows=1, max_share=100.0)
"""Builds on earlier checkpoints from the first row on."""


def eager(groups):
    return MemoryBackend(groups, EAGER)


@settings(max_examples=12, deadline=None)
@given(st.randoms(use_true_random=False))
def test_layers_in_memory_are_what_a_whole_checkpoint_is(random):
    check_increments(eager, eager, random)


def on_disk(folder):
    return lambda groups: RocksBackend(groups, folder, policy=EAGER)


@settings(max_examples=4, deadline=None)
@given(st.randoms(use_true_random=False), st.booleans())
def test_layers_on_disk_are_what_a_whole_checkpoint_is_to_either_backend(
    tmp_path_factory, random, back
):
    rocks = on_disk(tmp_path_factory.mktemp("state"))
    check_increments(rocks, rocks if back else eager, random)


NUMBERS = StateDescriptor("n", StateKind.VALUE, {"k": pl.Int64()}, {"value": pl.Int64()})


def frozen(backend, id_, base):
    [state] = backend.freeze_increment(Increment(id_, base))
    if not isinstance(state, FrozenChanges):
        return state.is_base, sum(part.height for part in state.tables())
    rows = pl.concat([NO_ROWS, *state.rows()])
    return rows.get_column("k").to_list(), pl.concat(state.removed()).get_column("k").to_list()


NO_ROWS = pl.DataFrame(schema=table_schema(NUMBERS))


def test_on_disk_as_many_changes_are_remembered_as_memory_has_room_for(tmp_path):
    backend = RocksBackend(KeyGroupRange(0, 128), tmp_path, Budget(2**20), LayerPolicy(max_share=1))
    handle = backend.state(NUMBERS)
    handle.put_many({(k % 128, k): k for k in range(19_000)})
    assert frozen(backend, 1, 0) == (False, 19_000)
    handle.put_many({(k % 128, k): k for k in range(18_000, 30_000)})
    assert frozen(backend, 2, 0) == (True, 30_000)
    handle.put_many({(7, 7): -7, (0, 128): DELETED, (3, 10**6 + 3): DELETED})
    assert frozen(backend, 3, 2) == ([7], [128, 10**6 + 3])
    handle.put_many({(k % 128, k): 0 for k in range(10_000)})
    assert frozen(backend, 4, 3) == (True, 30_000)
    # Written again and again it has as many rows as were counted last.
    handle.put_many({(k % 128, k): DELETED for k in range(29_000)})
    assert frozen(backend, 5, 4) == (True, 1_000)
    assert frozen(backend, 6, 5) == (False, 1_000)
    backend.close()


MAPS = StateDescriptor(
    "m", StateKind.MAP, {"k": pl.Int64()}, {MAP_KEY: pl.Int64(), "value": pl.String()}
)


def test_of_a_large_map_only_the_entries_that_have_changed_come(tmp_path):
    backend = on_disk(tmp_path)(KeyGroupRange(0, 128))
    handle = backend.state(MAPS)
    handle.put_many({(1, 1): dict.fromkeys(range(1_000), "x"), (1, 2): {1: "y", 2: "y"}})
    backend.freeze_increment(Increment(1, 0))
    held = handle.get_many([(1, 1), (1, 2)])
    large = held[1, 1].copy()
    large[7], large[9_000] = "changed", "new"
    del large[8]
    handle.put_many({(1, 1): large, (1, 2): {1: "z"}})
    [changed] = backend.freeze_increment(Increment(2, 1))
    assert pl.concat(changed.rows()).rows() == [
        (1, 1, 7, "changed"),
        (1, 1, 9_000, "new"),
        (1, 2, 1, "z"),
    ]
    assert pl.concat(changed.removed()).rows() == [(1, 1, 8), (1, 2, 2)]
    # Nobody lists what was in a large map when it goes.
    handle.put_many({(1, 1): DELETED})
    [whole] = backend.freeze_increment(Increment(3, 2))
    assert whole.table().rows() == [(1, 2, 1, "z")]
    backend.close()


ON_DISK = set(StateKind) - {StateKind.HELD}


def test_every_large_state_comes_as_layers(tmp_path):
    on_either = set(StateKind) - {StateKind.HELD}
    for make, kinds in [(eager, on_either), (on_disk(tmp_path), ON_DISK)]:
        layered = set().union(*(check_increments(make, eager, Random(seed)) for seed in range(3)))
        assert layered == kinds


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("rdf"), st.integers(0, 9)), max_size=30))
def test_of_rows_that_come_and_go_those_that_are_left_are_known(steps):
    tracked = LogChanges(LayerPolicy(min_rows=1, max_share=1e9, max_layers=99))
    tracked.freeze(Increment(1, 0), rows=1)
    model, id_ = [], 1
    for what, time in steps:
        match what:
            case "r":
                tracked.note(pl.DataFrame({"t": [time, time + 2]}), time + 2)
                model += [time, time + 2]
            case "d":
                tracked.drop(time)
                model = [each for each in model if each > time]
            case "f":
                id_ += 1
                tracked.freeze(Increment(id_, 1), rows=1)
    changed = tracked.freeze(Increment(id_ + 1, 1), rows=1)
    assert changed is not None
    left = [time for piece in changed.pieces for time in piece.left("t")["t"]]
    assert left == model


class KeyChanges(Changes[set[str]]):
    """Which keys have changed: the least that can be noted."""

    def note(self, changed):
        if self._marks:
            self._open.update(changed)
            self._check()

    def _none(self):
        return set()

    def _size(self, noted):
        return len(noted)

    def _bytes(self, noted):
        return 100 * len(noted)

    def _union(self, noted):
        return set().union(*noted)


def changes(**policy):
    return KeyChanges(LayerPolicy(**{"min_rows": 1, **policy}))


def test_a_small_state_is_whole_and_nothing_of_it_is_noted():
    tracked = changes(min_rows=10)
    assert tracked.freeze(Increment(1, 0), rows=9) is None
    assert not tracked.tracks


def test_only_what_changed_since_the_base_comes():
    tracked = changes()
    assert tracked.freeze(Increment(1, 0), rows=10) is None
    tracked.note([(0, "a")])
    assert tracked.freeze(Increment(2, 1), rows=10) == {(0, "a")}
    tracked.note([(0, "b")])
    # Checkpoint 2 has failed: what was noted for it comes again.
    assert tracked.freeze(Increment(3, 1), rows=10) == {(0, "a"), (0, "b")}
    assert tracked.freeze(Increment(4, 3), rows=10) == set()


def test_checkpoints_that_overlap_build_on_the_same_one():
    tracked = changes()
    tracked.freeze(Increment(1, 0), rows=10)
    tracked.freeze(Increment(2, 0), rows=10)
    tracked.note([(0, "a")])
    assert tracked.freeze(Increment(3, 1), rows=10) == {(0, "a")}
    assert tracked.freeze(Increment(4, 2), rows=10) == {(0, "a")}


def test_when_half_of_a_state_has_changed_it_is_whole_and_the_next_builds_on_that():
    tracked = changes()
    tracked.freeze(Increment(1, 0), rows=4)
    tracked.note([(0, "a"), (0, "b"), (0, "c")])
    assert not tracked.tracks
    assert tracked.freeze(Increment(2, 1), rows=4) is None
    assert tracked.freeze(Increment(3, 2), rows=4) == set()


def test_a_chain_ends_when_it_is_long_or_as_large_as_its_base():
    long, large = changes(max_layers=2), changes()
    sizes = []
    for tracked in (long, large):
        for id_ in range(1, 12):
            tracked.note([(0, id_)])
            changed = tracked.freeze(Increment(id_, id_ - 1), rows=4)
            sizes.append(None if changed is None else len(changed))
    assert sizes == [None, 1, 1] * 3 + [None, 1] + [None, 1, 1, 1, 1] * 2 + [None]


def test_checkpoints_that_fail_for_ever_cost_no_more_than_a_few():
    tracked = changes(max_share=100.0)
    tracked.freeze(Increment(1, 0), rows=1000)
    for id_ in range(2, 100):
        tracked.note([(0, id_)])
        changed = tracked.freeze(Increment(id_, 1), rows=1000)
    assert changed == {(0, id_) for id_ in range(2, 100)}
    assert tracked.freeze(Increment(100, 99), rows=1000) == set()
    assert len(tracked._marks) < 20
