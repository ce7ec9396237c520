"""Checks of what keys have: values, lists and maps, and of a backend as the sum of its states."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import polars as pl

from engine.elements import KEY_GROUP, MAX_TIME, Micros
from engine.errors import InternalError, RestoreError
from engine.state.contract import INDEX, MAP_KEY, VALUE, StateBackend, StateDescriptor, StateKind
from engine.state.handles import DELETED, Key, ValueHandle
from engine.state.schema import table_schema
from engine.state.tables import in_order
from engine.testing.state_checks.shared import (
    ALL,
    HALVES,
    KEYS,
    STEPS,
    Make,
    assert_equal,
    check_halves,
    some_keys,
    some_moment,
)

Model = dict[Key, Any]

_UTC = pl.Datetime("us", "UTC")


@dataclass(frozen=True, slots=True)
class _Case:
    """A keyed state, and random items for it."""

    descriptor: StateDescriptor
    item: Callable[[Random], Any]

    def value(self, random: Random) -> Any:
        """What a key may have; DELETED now and then."""
        if random.random() < 0.2:
            return DELETED
        count = random.randint(1, 3)
        match self.descriptor.kind:
            case StateKind.LIST:
                return [self.item(random) for _ in range(count)]
            case StateKind.MAP:
                return {random.choice("abcd"): self.item(random) for _ in range(count)}
            case _:
                return self.item(random)

    def rows(self, model: Model) -> pl.DataFrame:
        """The canonical table, by definition."""
        rows: list[tuple[Any, ...]] = []
        for key, held in model.items():
            match self.descriptor.kind:
                case StateKind.LIST:
                    rows += [(*key, index, *_columns(item)) for index, item in enumerate(held)]
                case StateKind.MAP:
                    rows += [(*key, second, *_columns(item)) for second, item in held.items()]
                case _:
                    rows.append((*key, *_columns(held)))
        table = pl.DataFrame(rows, schema=table_schema(self.descriptor), orient="row")
        second = [name for name in (INDEX, MAP_KEY) if name in table.columns]
        return table.sort(KEY_GROUP, *self.descriptor.keys, *second)


def _columns(item: Any) -> tuple[Any, ...]:
    return item if isinstance(item, tuple) else (item,)


_CASES = (
    _Case(
        StateDescriptor("number", StateKind.VALUE, KEYS, {VALUE: pl.Int64()}),
        lambda random: random.choice([None, 0, -1, 2**63 - 1]),
    ),
    _Case(
        StateDescriptor("pair", StateKind.VALUE, KEYS, {"n": pl.Int64(), "at": _UTC}),
        lambda random: (random.randint(0, 9), random.choice([None, some_moment(random)])),
    ),
    _Case(
        StateDescriptor(
            "texts", StateKind.LIST, {"day": pl.Date()}, {INDEX: pl.Int64(), VALUE: pl.String()}
        ),
        lambda random: random.choice(["", "zürich", "東京", "a\0b"]),
    ),
    _Case(
        StateDescriptor(
            "timed",
            StateKind.MAP,
            {"at": _UTC, "flag": pl.Boolean()},
            {MAP_KEY: pl.String(), VALUE: pl.Float64(), "written": pl.Int64()},
        ),
        lambda random: (random.uniform(-1, 1), random.randrange(1000)),
    ),
)


def check_values(make: Make, restore_with: Make, random: Random) -> None:
    """All keyed states in one backend, so that they cannot get into each other's way."""
    models: dict[str, Model] = {case.descriptor.name: {} for case in _CASES}
    keys = {case.descriptor.name: some_keys(case.descriptor, random) for case in _CASES}
    with closing(make(ALL)) as backend:
        for step in range(STEPS):
            case = random.choice(_CASES)
            name = case.descriptor.name
            _write(backend, case, models[name], random.sample(keys[name], 4), random)
            if step == STEPS // 2:
                frozen, again = backend.freeze(), backend.freeze()
                before = {known: dict(model) for known, model in models.items()}
        for case in _CASES:
            handle = cast("ValueHandle", backend.state(case.descriptor))
            model = models[case.descriptor.name]
            assert handle.get_many(keys[case.descriptor.name]) == model, f"{case} lost writes"
            assert dict(handle.items()) == model, f"items of {case} are not what was written"
            assert handle.get_many([]) == {}, "no keys have no values"
        with ThreadPoolExecutor(1) as other:
            tables = {each.descriptor.name: other.submit(each.table).result() for each in frozen}
        for each in again:
            parts, name = pl.concat(each.tables()), each.descriptor.name
            # A key group that is larger than memory comes in parts that are sorted by themselves.
            assert_equal(
                in_order(each.descriptor, parts), tables[name], f"table of {name!r} in parts"
            )
    for case in _CASES:
        name = case.descriptor.name
        if name in tables:
            assert_equal(tables[name], case.rows(before[name]), f"frozen table of {name!r}")
            check_halves(restore_with, case.descriptor, tables[name])


def _write(
    backend: StateBackend, case: _Case, model: Model, keys: Iterable[Key], random: Random
) -> None:
    changes = {key: case.value(random) for key in keys}
    cast("ValueHandle", backend.state(case.descriptor)).put_many(changes)
    for key, value in changes.items():
        if value is DELETED:
            model.pop(key, None)
        else:
            model[key] = value


def check_broadcast(make: Make, restore_with: Make) -> None:
    """A state without keys comes back whole, whatever the key groups."""
    values = {MAP_KEY: pl.String(), VALUE: pl.Int64()}
    descriptor = StateDescriptor("rules", StateKind.MAP, {}, values)
    with closing(make(HALVES[1])) as backend:
        cast("ValueHandle", backend.state(descriptor)).put_many({(0,): {"b": 2, "a": 1}})
        [frozen] = backend.freeze()
        table = frozen.table()
    assert table.rows() == [(0, "a", 1), (0, "b", 2)], f"broadcast state is {table.rows()}"
    for half in HALVES:
        with closing(restore_with(half)) as backend:
            backend.restore(descriptor, table)
            held = cast("ValueHandle", backend.state(descriptor)).get_many([(0,)])
            assert held == {(0,): {"a": 1, "b": 2}}, f"broadcast state came back as {held}"


def check_agenda(make: Make) -> None:
    """Every key is given once its time has come, at most a grain late; snapshots have none."""
    descriptor = _CASES[0].descriptor
    keys = some_keys(descriptor, Random(0))  # noqa: S311  test data
    grain, late = 10, Micros(30)
    with closing(make(ALL)) as backend:
        agenda = cast("ValueHandle", backend.state(descriptor)).agenda(grain)
        assert agenda.first() == MAX_TIME, "an empty agenda has something to do"
        for number, key in enumerate(keys):
            agenda.note(key, Micros(number))
            agenda.note(key, Micros(number))
        assert 0 <= agenda.first() < grain, f"the first time is {agenda.first()}"
        early = agenda.take(Micros(-1), 100)
        assert early == [], f"keys came before their time: {early}"
        found: set[Key] = set()
        while some := agenda.take(late, 2):
            found.update(some)
        assert found == set(keys), f"keys of an agenda are {found}"
        assert agenda.first() == MAX_TIME, "a key that was taken came again"
        [frozen] = backend.freeze()
        assert frozen.table().is_empty(), "an agenda is in a snapshot"


def check_names(make: Make) -> None:
    """Handles are the same each time; frozen states come by name; an unused state is empty."""
    with closing(make(ALL)) as backend:
        handles = [backend.state(case.descriptor) for case in _CASES]
        again = [backend.state(case.descriptor) for case in _CASES]
        assert all(map(lambda one, two: one is two, handles, again)), "a handle was made twice"
        frozen = backend.freeze()
        names = [each.descriptor.name for each in frozen]
        assert names == sorted(case.descriptor.name for case in _CASES), f"froze {names}"
        for each in frozen:
            empty = pl.DataFrame(schema=table_schema(each.descriptor))
            assert_equal(each.table(), empty, f"table of {each.descriptor.name!r}, never used")


def check_shapes(make: Make) -> None:
    """One name cannot stand for two states, in a job or in a snapshot."""
    descriptor = _CASES[0].descriptor
    other = StateDescriptor(descriptor.name, descriptor.kind, KEYS, {VALUE: pl.String()})
    with closing(make(ALL)) as backend:
        backend.state(descriptor)
        try:
            backend.state(other)
        except InternalError:
            pass
        else:
            msg = "a state was asked for in two shapes, and given"
            raise AssertionError(msg)
    with closing(make(ALL)) as backend:
        try:
            backend.restore(descriptor, pl.DataFrame(schema=table_schema(other)))
        except RestoreError:
            return
        msg = "a table of another shape was restored"
        raise AssertionError(msg)
