"""Checks of rows: those that wait, those that joins hold, and those that keys keep in order."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from random import Random
from typing import Any, cast

import polars as pl

from engine.elements import EVENT_TIME, KEY_GROUP, MAX_TIME, MIN_TIME, Micros
from engine.state.contract import ROW_INDEX, StateDescriptor, StateKind
from engine.state.handles import FramesHandle, HeldHandle, Key, RowsHandle
from engine.state.schema import table_schema
from engine.testing.state_checks.shared import (
    ALL,
    KEYS,
    STEPS,
    Make,
    assert_equal,
    check_halves,
    some_keys,
)

_ROW: Mapping[str, pl.DataType] = {
    EVENT_TIME: pl.Int64(),
    "n": pl.Int64(),
    "tags": pl.List(pl.String()),
}


def check_rows(make: Make, restore_with: Make, random: Random) -> None:
    """Rows leave in order of time and key, those of one time and key as they came."""
    descriptor = StateDescriptor("rows", StateKind.ROWS, KEYS, _ROW)
    keys = some_keys(descriptor, random)[:5]
    model: list[tuple[Any, ...]] = []
    reached = 0
    with closing(make(ALL)) as backend:
        handle = cast("RowsHandle", backend.state(descriptor))
        for step in range(STEPS):
            numbers = range(step * 20, step * 20 + random.randrange(20))
            times = [reached + random.randrange(50) for _ in numbers]
            rows = [
                (*random.choice(keys), time, n, ["x"] * (n % 3))
                for time, n in zip(times, numbers, strict=True)
            ]
            handle.append(pl.DataFrame(rows, schema=table_schema(descriptor), orient="row"))
            model += rows
            if random.random() < 0.3:
                reached += random.randrange(20)
                model = _take_rows(handle, descriptor, model, reached)
            if step == STEPS // 2:
                frozen, again, before = *backend.freeze(), *backend.freeze(), list(model)
        _take_rows(handle, descriptor, model, reached + 100)
        assert handle.take_before(MAX_TIME) is None, "rows left twice"
    wanted = pl.DataFrame(before, schema=table_schema(descriptor), orient="row")
    wanted = wanted.sort(KEY_GROUP, *KEYS, EVENT_TIME, maintain_order=True)
    assert_equal(frozen.table(), wanted, "frozen rows")
    parts = pl.concat(again.tables())
    assert_equal(parts.sort(wanted.columns[:4], maintain_order=True), wanted, "rows in parts")
    check_halves(restore_with, descriptor, wanted)


def _take_rows(
    handle: RowsHandle, descriptor: StateDescriptor, model: list[tuple[Any, ...]], time: int
) -> list[tuple[Any, ...]]:
    """Take the rows before a time in the steps that the state wants; returns those that stay."""
    at = MIN_TIME
    while at != time:
        before, at = at, handle.reach(Micros(time))
        assert before < at <= time, f"rows up to {time} are taken in steps: {before}, {at}"
        early = [row for row in model if row[3] < at]
        model = [row for row in model if row[3] >= at]
        order = ["n"] if at % 2 else [EVENT_TIME, KEY_GROUP, *KEYS]
        taken = _taken_unordered(handle, at) if at % 2 else handle.take_before(at)
        assert (taken is None) == (not early), f"rows before {at} came, or did not"
        if taken is not None:
            rows = pl.DataFrame(early, schema=table_schema(descriptor), orient="row")
            wanted = rows.sort(order, maintain_order=True)
            assert_equal(taken.select(wanted.columns), wanted, "rows that left")
    return model


def _taken_unordered(handle: RowsHandle, time: Micros) -> pl.DataFrame | None:
    frames = handle.take(time)
    return pl.concat(frames).sort("n") if frames else None


def check_held(make: Make, restore_with: Make, random: Random) -> None:
    """Rows stay until others are put in their place; snapshots sort them."""
    descriptor = StateDescriptor("held", StateKind.HELD, KEYS, _ROW)
    frame = _some_rows(descriptor, random)
    some, others = frame.slice(0, 15), frame.slice(15)
    with closing(make(ALL)) as backend:
        handle = cast("HeldHandle", backend.state(descriptor))
        assert not handle.frames(), "rows are held from the beginning"
        handle.hold([others, some])
        handle.hold([some, others.clear()])
        handle.append(others)
        [frozen] = backend.freeze()
        found = pl.concat(handle.frames())
        handle.hold([])
        table = frozen.table()
    assert_equal(found, frame, "held rows")
    wanted = frame.sort(KEY_GROUP, *KEYS, EVENT_TIME, maintain_order=True)
    assert_equal(table, wanted, "frozen held rows")
    check_halves(restore_with, descriptor, table)


def _some_rows(descriptor: StateDescriptor, random: Random) -> pl.DataFrame:
    keys = some_keys(descriptor, random)[:5]
    rows = [(*random.choice(keys), random.randint(0, 9), n, ["x"] * (n % 3)) for n in range(40)]
    return pl.DataFrame(rows, schema=table_schema(descriptor), orient="row")


def check_frames(make: Make, restore_with: Make, random: Random) -> None:
    """Each key has its rows in the order in which they were added."""
    values = {ROW_INDEX: pl.Int64(), "n": pl.Int64(), "tags": pl.List(pl.String())}
    descriptor = StateDescriptor("frames", StateKind.FRAMES, KEYS, values)
    columns = {name: dtype for name, dtype in values.items() if name != ROW_INDEX}
    keys = some_keys(descriptor, random)[:4]
    model: dict[Key, list[tuple[Any, ...]]] = {}
    with closing(make(ALL)) as backend:
        handle = cast("FramesHandle", backend.state(descriptor))
        for step in range(STEPS * 3):
            key = random.choice(keys)
            if random.random() < 0.05:
                handle.remove_many([key])
                model.pop(key, None)
            else:
                rows = [(step, ["x"] * number) for number in range(random.randrange(4))]
                handle.append_many({key: [pl.DataFrame(rows, columns, orient="row")]})
                model[key] = [*model.get(key, []), *rows]
        [frozen], [again] = backend.freeze(), backend.freeze()
        held = handle.get_many(keys)
        found = {
            key: [row for each in frames for row in each.rows()] for key, frames in held.items()
        }
        assert found == {key: rows for key, rows in model.items() if rows}, "frames lost rows"
        handle.remove_many(keys)
        assert handle.get_many(keys) == {}, "frames stayed that were removed"
        table = frozen.table()
        assert_equal(pl.concat(again.tables()), table, "frozen frames in parts")
    rows = [(*key, at, *row) for key, held in model.items() for at, row in enumerate(held)]
    wanted = pl.DataFrame(rows, schema=table_schema(descriptor), orient="row")
    assert_equal(table, wanted.sort(KEY_GROUP, *KEYS, ROW_INDEX), "frozen frames")
    check_halves(restore_with, descriptor, table)
