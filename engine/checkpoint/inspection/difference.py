"""The difference of two snapshots: which rows of each state came, went or changed.

    left, right --per state, a range of key groups at a time--> full join by identity
        equal      the same row in both
        changed    one identity, other values
        only left, only right

Shapes   the identity of a row is its key, and its slice, index or map key where it has one. Rows
         that wait or are held have none: they are compared as a multiset, and none of them counts
         as changed.
Cost     a join of the two tables, one range of key groups in memory at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import polars as pl

from engine.checkpoint.format.entries import StateEntry
from engine.checkpoint.inspection.difference_report import (
    Difference,
    SplitDifference,
    StateDifference,
)
from engine.checkpoint.inspection.reading import Progress, Snapshot, schema_of, unheard
from engine.elements import KEY_GROUP
from engine.state.contract import INDEX, MAP_KEY, ROW_INDEX, SLICE_END, TIME, StateKind

_ROWS_AT_ONCE = 2_000_000
"""So many rows of either side are joined at once: some hundred MB, and few passes over files."""

_COUNT = "difference.count"
_LEFT, _RIGHT, _SIDE = "difference.left", "difference.right", "difference.side"

_SECOND = {
    StateKind.RUNS: SLICE_END,
    StateKind.LIST: INDEX,
    StateKind.MAP: MAP_KEY,
    StateKind.FRAMES: ROW_INDEX,
    StateKind.TIMERS: TIME,
}

_WITHOUT_IDENTITY = (StateKind.ROWS, StateKind.HELD)
"""Rows of which several may be the same."""


def difference(
    left: Snapshot, right: Snapshot, examples: int = 3, progress: Progress = unheard
) -> Difference:
    """Compare two snapshots; `progress` hears of rows. Raises SnapshotCorrupt."""
    names: dict[tuple[str, str], int] = {}
    for side in (left, right):
        for entry, state in side.states():
            name = entry.uid, state.name
            names[name] = max(names.get(name, 0), state.rows)
    seen = _Seen(progress, sum(names.values()))
    states = tuple(_state(left, right, uid, name, examples, seen) for uid, name in names)
    return Difference(states, tuple(_splits(left, right)))


def _splits(left: Snapshot, right: Snapshot) -> Iterator[SplitDifference]:
    sides = [
        {(e.uid, id_): split for e in side.manifest.operators for id_, split in e.splits.items()}
        for side in (left, right)
    ]
    for uid, id_ in sorted({*sides[0], *sides[1]}):
        before, after = sides[0].get((uid, id_)), sides[1].get((uid, id_))
        if before != after:
            yield SplitDifference(uid, id_, before, after)


def _state(
    left: Snapshot, right: Snapshot, uid: str, name: str, examples: int, seen: _Seen
) -> StateDifference:
    was, now = _entry(left, uid, name), _entry(right, uid, name)
    if was is None or now is None:
        side = "right" if was is None else "left"
        return StateDifference(
            uid,
            name,
            only_left=was.rows if was else 0,
            only_right=now.rows if now else 0,
            reason=f"only the {side} snapshot has this state",
        )
    if (was.kind, schema_of(was)) != (now.kind, schema_of(now)):
        reason = "the two have other types: rows cannot be compared one by one"
        return StateDifference(uid, name, only_left=was.rows, only_right=now.rows, reason=reason)
    if was.kind is StateKind.RUNS and (was.is_layered or now.is_layered):
        reason = "an incremental checkpoint has partial sums in several layers: compare savepoints"
        return StateDifference(uid, name, only_left=was.rows, only_right=now.rows, reason=reason)
    tally = _Tally(was, examples)
    # Once: of a store that cannot be read in parts, a scan fetches the whole file.
    before, after = left.scan(was), right.scan(now)
    for lo, hi in _ranges(was, now):
        within = (pl.col(KEY_GROUP) >= lo) & (pl.col(KEY_GROUP) < hi)
        ours, theirs = left.collect(before.filter(within)), right.collect(after.filter(within))
        tally.add(ours, theirs)
        seen.add(max(ours.height, theirs.height))
    return StateDifference(
        uid,
        name,
        equal=tally.rows["equal"],
        changed=tally.rows["changed"],
        only_left=tally.rows["only_left"],
        only_right=tally.rows["only_right"],
        examples=tally.examples,
    )


def _entry(side: Snapshot, uid: str, name: str) -> StateEntry | None:
    found = (state for entry, state in side.states() if (entry.uid, state.name) == (uid, name))
    return next(found, None)


def _ranges(was: StateEntry, now: StateEntry) -> list[tuple[int, int]]:
    """Key groups to take at once: all of them, or parts of about the right size."""
    files = [*was.files, *now.files]
    if not files:
        return []
    end = max(file.key_groups.hi for file in files)
    parts = min(end, -(-max(was.rows, now.rows) // _ROWS_AT_ONCE))
    cuts = [end * part // parts for part in range(parts + 1)]
    return list(pairwise(cuts))


@dataclass(slots=True)
class _Seen:
    """How many rows were compared, told as they are."""

    progress: Progress
    total: int
    done: int = 0

    def add(self, rows: int) -> None:
        """So many more: of the larger side."""
        self.done += rows
        self.progress(min(self.done, self.total), self.total)


@dataclass(slots=True)
class _Tally:
    """Counts what a join says, part by part."""

    entry: StateEntry
    wanted: int
    rows: Counter[str] = field(default_factory=Counter)
    """How many are equal, changed, only_left, only_right."""
    examples: list[Mapping[str, object]] = field(default_factory=list)

    def add(self, left: pl.DataFrame, right: pl.DataFrame) -> None:
        """Compare the rows of some key groups."""
        if self.entry.kind in _WITHOUT_IDENTITY:
            left, right = _counted(left), _counted(right)
            self._count_multiset(_joined(left, right, left.columns[:-1]))
            return
        self._count(_joined(left, right, self._identity))

    @property
    def _identity(self) -> list[str]:
        second = _SECOND.get(self.entry.kind)
        return [KEY_GROUP, *self.entry.keys, *([second] if second else [])]

    @property
    def _values(self) -> list[str]:
        return [name for name in self.entry.values if name not in self._identity]

    def _count(self, both: pl.DataFrame) -> None:
        only_left, only_right = pl.col(_RIGHT).is_null(), pl.col(_LEFT).is_null()
        differs = pl.any_horizontal(
            [pl.col(name).ne_missing(pl.col(f"{name}{_RIGHT}")) for name in self._values]
            or [pl.lit(value=False)]
        )
        side = (
            pl.when(only_left).then(pl.lit("only_left"))
            .when(only_right).then(pl.lit("only_right"))
            .when(differs).then(pl.lit("changed"))
            .otherwise(pl.lit("equal"))
        )  # fmt: skip
        sided = both.with_columns(side.alias(_SIDE))
        self.rows.update(dict(sided.get_column(_SIDE).value_counts().rows()))
        missing = self.wanted - len(self.examples)
        if missing > 0:
            rows = sided.filter(pl.col(_SIDE) != "equal").head(missing)
            self.examples += [self._example(row) for row in rows.iter_rows(named=True)]

    def _count_multiset(self, both: pl.DataFrame) -> None:
        counts = both.select(
            was=pl.col(_COUNT).fill_null(0), now=pl.col(f"{_COUNT}{_RIGHT}").fill_null(0)
        )
        was, now, shared = counts.select(
            pl.col("was").sum(),
            pl.col("now").sum(),
            pl.min_horizontal("was", "now").sum().alias("both"),
        ).row(0)
        self.rows.update(equal=shared, only_left=was - shared, only_right=now - shared)

    def _example(self, row: Mapping[str, object]) -> Mapping[str, object]:
        identity = {name: row[name] for name in self._identity if name != KEY_GROUP}
        left = {name: row[name] for name in self._values}
        right = {name: row[f"{name}{_RIGHT}"] for name in self._values}
        return {
            **identity,
            "left": None if row[_LEFT] is None else left,
            "right": None if row[_RIGHT] is None else right,
        }


def _counted(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by(rows.columns).agg(pl.len().alias(_COUNT))


def _joined(left: pl.DataFrame, right: pl.DataFrame, on: Sequence[str]) -> pl.DataFrame:
    here = pl.lit(value=True)
    return left.with_columns(here.alias(_LEFT)).join(
        right.with_columns(here.alias(_RIGHT)),
        on=list(on),
        how="full",
        coalesce=True,
        nulls_equal=True,
        suffix=_RIGHT,
    )
