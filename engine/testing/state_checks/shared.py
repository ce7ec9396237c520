"""What the checks of all kinds of state use: key groups, random keys, and how tables are compared.

Shapes   `Make` gives an empty backend for a range of key groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

from engine.elements import KEY_GROUP
from engine.keygroups import KeyGroupRange, key_groups
from engine.state.contract import StateBackend, StateDescriptor
from engine.state.handles import Key

Make = Callable[[KeyGroupRange], StateBackend]

GROUPS = 16
ALL = KeyGroupRange(0, GROUPS)
HALVES = (KeyGroupRange(0, 7), KeyGroupRange(7, GROUPS))
STEPS = 30

KEYS: Mapping[str, pl.DataType] = {"id": pl.Int64(), "name": pl.String()}


def some_keys(descriptor: StateDescriptor, random: Random) -> list[Key]:
    """A dozen keys, with the key groups that they belong to."""
    start = date(2013, 1, 1)
    makers: Mapping[str, Callable[[int], Any]] = {
        "id": lambda n: random.choice([n, -n, n * 2**40]),
        "name": lambda n: random.choice(["a", "b", ""]) + str(n),
        "day": lambda n: start + timedelta(days=n),
        "at": lambda _: some_moment(random),
        "flag": lambda _: random.random() < 0.5,
    }
    columns = {name: [makers[name](n) for n in range(12)] for name in descriptor.keys}
    frame = pl.DataFrame(columns, schema=dict(descriptor.keys))
    groups = key_groups(frame, list(descriptor.keys), GROUPS).to_list()
    return [(group, *row) for group, row in zip(groups, frame.iter_rows(), strict=True)]


def some_moment(random: Random) -> datetime:
    """A time with microseconds."""
    return datetime(2013, 1, 1, tzinfo=UTC) + timedelta(microseconds=random.randrange(10**12))


def check_halves(make: Make, descriptor: StateDescriptor, table: pl.DataFrame) -> None:
    """Restore a table into two backends: each takes its own key groups, both together all."""
    found = []
    for half in HALVES:
        with closing(make(half)) as backend:
            for part in table.iter_slices(max(1, table.height // 7)):
                backend.restore(descriptor, part)
            backend.state(descriptor)
            [frozen] = backend.freeze()
            rows = frozen.table()
        groups = rows.get_column(KEY_GROUP)
        assert all(group in half for group in groups), f"{descriptor.name}: groups outside {half}"
        found.append(rows)
    assert_equal(pl.concat(found), table, f"table of {descriptor.name!r} restored by halves")


def assert_equal(found: pl.DataFrame, wanted: pl.DataFrame, what: str) -> None:
    """Compare two tables. Raises AssertionError, which says what they are of."""
    try:
        assert_frame_equal(found, wanted)
    except AssertionError as error:
        msg = f"{what} is not what was written: {error}"
        raise AssertionError(msg) from error
