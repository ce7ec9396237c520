"""Checks of increments: layers on earlier checkpoints, read together, are what a whole one gives.

random writes, checkpoints that succeed, fail or overlap, savepoints between them
of each checkpoint     its layers == the whole table of the same moment
of the last one        restored by halves of the key groups, into any backend, it is the same
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from random import Random
from typing import Any

import polars as pl

from engine.checkpoint.format.files import StateFile
from engine.checkpoint.format.frozen import OperatorSnapshot, TaskSnapshot
from engine.checkpoint.format.layers import chain_parts, chains, scan_chain
from engine.checkpoint.format.writer import Chains, write_snapshot
from engine.elements import EVENT_TIME, KEY_GROUP, Barrier, Micros
from engine.graph.jobgraph import TaskId
from engine.keygroups import KeyGroupRange
from engine.state.contract import (
    INDEX,
    MAP_KEY,
    ROW_INDEX,
    SLICE_END,
    TIME,
    VALUE,
    FrozenChanges,
    Increment,
    StateBackend,
    StateDescriptor,
    StateKind,
)
from engine.state.handles import DELETED, Key
from engine.testing.memory import MemoryStorage
from engine.testing.state_checks.shared import ALL, HALVES, KEYS, Make, assert_equal, some_keys

_BY_ID: Mapping[str, pl.DataType] = {"id": pl.Int64()}
_NUMBER: Mapping[str, pl.DataType] = {VALUE: pl.Int64()}


@dataclass(slots=True)
class _Subject:
    """A state, and what is written into it at random."""

    kind: StateKind
    values: Mapping[str, pl.DataType]
    write: Callable[[Any, Sequence[Key], Random, int], None]
    """(handle, keys, random, step)"""
    keys: Mapping[str, pl.DataType] = field(default_factory=lambda: KEYS)

    @property
    def descriptor(self) -> StateDescriptor:
        """Named as its kind."""
        return StateDescriptor(self.kind.value, self.kind, self.keys, self.values)

    def in_order(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows as the canonical table has them, in whatever layers they came."""
        second = {
            StateKind.LIST: INDEX,
            StateKind.MAP: MAP_KEY,
            StateKind.TIMERS: TIME,
            StateKind.FRAMES: ROW_INDEX,
            StateKind.ROWS: EVENT_TIME,
            StateKind.HELD: EVENT_TIME,
            StateKind.RUNS: SLICE_END,
        }
        names = [KEY_GROUP, *self.keys, *([second[self.kind]] if self.kind in second else [])]
        if self.kind is StateKind.RUNS:
            rows = rows.group_by(names).agg(pl.col("n").sum())
        return rows.sort(names, maintain_order=True)


def _put(handle: Any, keys: Sequence[Key], random: Random, step: int) -> None:
    handle.put_many({key: random.choice([DELETED, None, step]) for key in keys})


def _put_list(handle: Any, keys: Sequence[Key], random: Random, step: int) -> None:
    some: Sequence[list[int]] = ([], [step], [step, step + 1])
    handle.put_many({key: random.choice([DELETED, *some]) for key in keys})


def _put_map(handle: Any, keys: Sequence[Key], random: Random, step: int) -> None:
    some: Sequence[Mapping[str, int]] = ({}, {"a": step}, {"b": step, "c": 1}, {"a": 1, "c": step})
    handle.put_many({key: random.choice([DELETED, *some]) for key in keys})


def _set_timers(handle: Any, keys: Sequence[Key], random: Random, step: int) -> None:
    for key in keys:
        change = handle.add if random.random() < 0.6 else handle.remove
        change(Micros(random.randrange(6)), key)


def _given(rows: pl.DataFrame, random: Random) -> pl.DataFrame:
    """Rows as operators have them: in any order of columns, and with others."""
    return rows.with_columns(other=pl.lit(0)).select(
        random.sample([*rows.columns, "other"], len(rows.columns) + 1)
    )


def _wait(handle: Any, keys: Sequence[Key], random: Random, step: int) -> None:
    rows = [(*key, 10 * step + random.randrange(30), n) for n, key in enumerate(keys, 10 * step)]
    handle.append(_given(pl.DataFrame(rows, ROWS.schema, orient="row"), random))
    if random.random() < 0.4:
        handle.take_before(Micros(10 * step - random.randrange(20)))


def _add_runs(handle: Any, keys: Sequence[Key], random: Random, step: int) -> None:
    rows = [(*key, 10 * (step + random.randrange(3)), 1) for key in keys]
    handle.append(_given(pl.DataFrame(rows, RUNS.schema, orient="row"), random))
    if random.random() < 0.4:
        drop = random.choice([handle.drop_until, handle.take_until])
        drop(Micros(10 * (step - random.randrange(3))))


def _add_frames(handle: Any, keys: Sequence[Key], random: Random, step: int) -> None:
    frame = pl.DataFrame({"n": [step, step + 1]}, {"n": pl.Int64()})
    handle.append_many({key: [frame] for key in keys})
    if random.random() < 0.5:
        handle.remove_many(keys[:1])


_ROW: Mapping[str, pl.DataType] = {EVENT_TIME: pl.Int64(), "n": pl.Int64()}
ROWS = pl.DataFrame(schema={KEY_GROUP: pl.UInt16(), **KEYS, **_ROW})
RUNS = pl.DataFrame(
    schema={KEY_GROUP: pl.UInt16(), **_BY_ID, SLICE_END: pl.Int64(), "n": pl.Int64()}
)

_SUBJECTS = (
    _Subject(StateKind.VALUE, _NUMBER, _put),
    _Subject(StateKind.LIST, {INDEX: pl.Int64(), **_NUMBER}, _put_list),
    _Subject(StateKind.MAP, {MAP_KEY: pl.String(), **_NUMBER}, _put_map),
    _Subject(StateKind.TIMERS, {TIME: pl.Int64()}, _set_timers),
    _Subject(StateKind.ROWS, _ROW, _wait),
    _Subject(StateKind.FRAMES, {ROW_INDEX: pl.Int64(), "n": pl.Int64()}, _add_frames),
    _Subject(StateKind.RUNS, {"n": pl.Int64()}, _add_runs, _BY_ID),
)


def _merged(run: pl.DataFrame, within: Sequence[str], same: Sequence[str]) -> pl.DataFrame:
    firsts = [pl.col(name).first() for name in same]
    return run.group_by(list(within)).agg(*firsts, pl.col("n").sum())


class _History:
    """The checkpoints of one subtask: what was written, and what the tables were."""

    def __init__(self, backend: StateBackend) -> None:
        self._backend = backend
        self._storage = MemoryStorage()
        self._chains = Chains()
        self._under_way: list[int] = []
        self._base = 0
        self._next = 1
        self.layered: set[StateKind] = set()
        self.files: dict[str, tuple[StateFile, ...]] = {}
        self.tables: dict[str, pl.DataFrame] = {}
        """Of the checkpoint before."""

    def checkpoint(self) -> None:
        """Take one, write it, and compare what was written with the whole."""
        id_, self._next = self._next, self._next + 1
        self.tables = {one.descriptor.name: one.table() for one in self._backend.freeze()}
        states = tuple(self._backend.freeze_increment(Increment(id_, self._base)))
        self.layered |= {one.descriptor.kind for one in states if isinstance(one, FrozenChanges)}
        operator = OperatorSnapshot("uid", Micros(0), ALL, states)
        barrier = Barrier(id_, folder=f"job/chk-{id_}", base=self._base)
        snapshot = TaskSnapshot(TaskId("v", 0), barrier, (operator,), Micros(0), Micros(0))
        written = write_snapshot(snapshot, self._storage.open(barrier.folder), 0, self._chains)
        self.files = {state.name: state.files for state in written.operators[0].states}
        self._under_way.append(id_)
        for subject in _SUBJECTS:
            if any(file.layer is not None for file in self.files[subject.descriptor.name]):
                self._compare(subject)

    def complete(self, random: Random) -> None:
        """One of those under way succeeds; those before it may have failed."""
        if self._under_way:
            at = random.randrange(len(self._under_way))
            self._base = self._under_way[at]
            del self._under_way[: at + 1]

    def rows(self, subject: _Subject, ours: KeyGroupRange) -> Sequence[pl.DataFrame]:
        """What a restore reads of the latest checkpoint."""
        folder = self._storage.open(f"job/chk-{self._next - 1}")
        files = self.files[subject.descriptor.name]
        return [part for chain in chains(files) for part in chain_parts(chain, folder, ours)]

    def _compare(self, subject: _Subject) -> None:
        name = subject.descriptor.name
        wanted = self.tables[name]
        parts = self.rows(subject, ALL)
        assert_equal(
            subject.in_order(pl.concat([wanted.clear(), *parts])), wanted, f"layers of {name!r}"
        )

    def compare_scans(self) -> None:
        """What people read of the latest checkpoint."""
        folder = self._storage.open(f"job/chk-{self._next - 1}")
        for subject in _SUBJECTS:
            name = subject.descriptor.name
            scans = [one for chain in chains(self.files[name]) for one in scan_chain(chain, folder)]
            found = pl.concat([self.tables[name].clear().lazy(), *scans]).collect()
            assert_equal(subject.in_order(found), self.tables[name], f"scan of {name!r}")


def check_increments(
    make: Make, restore_with: Make, random: Random, steps: int = 8
) -> set[StateKind]:
    """Returns the kinds of state that came as layers.

    `make`: a backend whose states are large from the first row on.
    """
    keys = {one.kind: some_keys(one.descriptor, random) for one in _SUBJECTS}
    with closing(make(ALL)) as backend:
        handles = {one.kind: backend.state(one.descriptor) for one in _SUBJECTS}
        handles[StateKind.RUNS].merge_with(_merged)  # type: ignore[attr-defined]
        history = _History(backend)
        for step in range(steps):
            for subject in _SUBJECTS:
                few = random.sample(keys[subject.kind], 6 if step == 0 else random.randint(0, 2))
                if few:
                    subject.write(handles[subject.kind], few, random, step)
            if random.random() < 0.7 or step == steps - 1:
                history.checkpoint()
            if random.random() < 0.6:
                history.complete(random)
        history.compare_scans()
    for half in HALVES:
        _restore(restore_with, history, half)
    return history.layered


def _restore(make: Make, history: _History, half: KeyGroupRange) -> None:
    with closing(make(half)) as backend:
        for subject in _SUBJECTS:
            for part in history.rows(subject, half):
                backend.restore(subject.descriptor, part)
            handle = backend.state(subject.descriptor)
            if subject.kind is StateKind.RUNS:
                handle.merge_with(_merged)  # type: ignore[attr-defined]
        for frozen in backend.freeze():
            whole = history.tables[frozen.descriptor.name]
            group = pl.col(KEY_GROUP)
            wanted = whole.filter((group >= half.lo) & (group < half.hi))
            assert_equal(frozen.table(), wanted, f"{frozen.descriptor.name!r}, layers restored")
