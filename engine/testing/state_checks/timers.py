"""Checks of timers against a set of (time, key)."""

from __future__ import annotations

from contextlib import closing
from random import Random
from typing import cast

import polars as pl

from engine.elements import KEY_GROUP, Micros
from engine.state.contract import TIME, StateDescriptor, StateKind
from engine.state.handles import Key, TimersHandle
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


def check_timers(make: Make, restore_with: Make, random: Random) -> None:
    """Timers are a set, in order of time and key."""
    descriptor = StateDescriptor("timers", StateKind.TIMERS, KEYS, {TIME: pl.Int64()})
    keys = some_keys(descriptor, random)[:5]
    model: set[tuple[Micros, Key]] = set()
    with closing(make(ALL)) as backend:
        handle = cast("TimersHandle", backend.state(descriptor))
        for _ in range(STEPS * 10):
            timer = Micros(random.randint(-5, 20)), random.choice(keys)
            if random.random() < 0.5:
                handle.add(*timer)
                model.add(timer)
            else:
                handle.remove(*timer)
                model.discard(timer)
            assert handle.first() == min(model, default=None), "the first timer is another"
            assert handle.holds(*timer) == (timer in model), f"{timer} is there, or is not"
        due = sorted(timer for timer in model if timer[0] <= 9)
        assert handle.due(Micros(9)) == due, "due timers are not in order of (time, key)"
        assert handle.due(Micros(9)) == due, "timers that are due must stay"
        assert handle.due(Micros(9), limit=3) == due[:3], "the first timers that are due"
        [frozen], [again] = backend.freeze(), backend.freeze()
        for timer in model:
            handle.remove(*timer)
        table = frozen.table()
    rows = [(*key, time) for time, key in model]
    wanted = pl.DataFrame(rows, schema=table_schema(descriptor), orient="row")
    wanted = wanted.sort(KEY_GROUP, *KEYS, TIME)
    assert_equal(table, wanted, "frozen timers")
    parts = pl.concat(again.tables())
    assert_equal(parts.sort(KEY_GROUP, *KEYS, TIME), wanted, "frozen timers in parts")
    check_halves(restore_with, descriptor, table)
