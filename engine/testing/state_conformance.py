"""Conformance suite of state backends: whoever writes one proves with one call that it keeps the
contract of `state/contract.py`.

    check_state_backend(lambda key_groups: MemoryBackend(key_groups))

What a backend has to do is told by plain dicts and sets that get the same random writes; what they
hold must be what the handles give and what the canonical tables hold, also after a freeze, on
another thread, and after a restore by halves of the key groups, in which a backend may change into
another: `restore_with`. The suite raises AssertionError with one sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any, cast

import polars as pl
from polars.testing import assert_frame_equal

from engine.elements import EVENT_TIME, KEY_GROUP, MAX_TIME, MIN_TIME, Micros
from engine.errors import InternalError, RestoreError
from engine.keygroups import KeyGroupRange, key_groups
from engine.state.contract import (
    INDEX,
    MAP_KEY,
    ROW_INDEX,
    SLICE_END,
    TIME,
    VALUE,
    StateBackend,
    StateDescriptor,
    StateKind,
)
from engine.state.handles import (
    DELETED,
    FramesHandle,
    HeldHandle,
    Key,
    RowsHandle,
    RunsHandle,
    TimersHandle,
    ValueHandle,
)
from engine.state.schema import table_schema
from engine.state.tables import in_order

Make = Callable[[KeyGroupRange], StateBackend]
Model = dict[Key, Any]

GROUPS = 16
ALL = KeyGroupRange(0, GROUPS)
HALVES = (KeyGroupRange(0, 7), KeyGroupRange(7, GROUPS))
STEPS = 30

_UTC = pl.Datetime("us", "UTC")
_KEYS: Mapping[str, pl.DataType] = {"id": pl.Int64(), "name": pl.String()}
_ROW: Mapping[str, pl.DataType] = {
    EVENT_TIME: pl.Int64(),
    "n": pl.Int64(),
    "tags": pl.List(pl.String()),
}


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


def _moment(random: Random) -> datetime:
    return datetime(2013, 1, 1, tzinfo=UTC) + timedelta(microseconds=random.randrange(10**12))


_CASES = (
    _Case(
        StateDescriptor("number", StateKind.VALUE, _KEYS, {VALUE: pl.Int64()}),
        lambda random: random.choice([None, 0, -1, 2**63 - 1]),
    ),
    _Case(
        StateDescriptor("pair", StateKind.VALUE, _KEYS, {"n": pl.Int64(), "at": _UTC}),
        lambda random: (random.randint(0, 9), random.choice([None, _moment(random)])),
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


def check_state_backend(
    make: Make, *, restore_with: Make | None = None, seeds: Iterable[int] = range(3)
) -> None:
    """Check a backend. `make`: an empty one for a range of key groups."""
    for seed in seeds:
        random = Random(seed)  # noqa: S311  test data
        _check_values(make, restore_with or make, random)
        _check_timers(make, restore_with or make, random)
        _check_rows(make, restore_with or make, random)
        _check_frames(make, restore_with or make, random)
        _check_held(make, restore_with or make, random)
        _check_runs(make, restore_with or make, random)
    _check_broadcast(make, restore_with or make)
    _check_agenda(make)
    _check_names(make)
    _check_shapes(make)


def _check_values(make: Make, restore_with: Make, random: Random) -> None:
    """All keyed states in one backend, so that they cannot get into each other's way."""
    models: dict[str, Model] = {case.descriptor.name: {} for case in _CASES}
    keys = {case.descriptor.name: _some_keys(case.descriptor, random) for case in _CASES}
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
            _assert_equal(
                in_order(each.descriptor, parts), tables[name], f"table of {name!r} in parts"
            )
    for case in _CASES:
        name = case.descriptor.name
        if name in tables:
            _assert_equal(tables[name], case.rows(before[name]), f"frozen table of {name!r}")
            _check_halves(restore_with, case.descriptor, tables[name])


def _some_keys(descriptor: StateDescriptor, random: Random) -> list[Key]:
    start = date(2013, 1, 1)
    makers: Mapping[str, Callable[[int], Any]] = {
        "id": lambda n: random.choice([n, -n, n * 2**40]),
        "name": lambda n: random.choice(["a", "b", ""]) + str(n),
        "day": lambda n: start + timedelta(days=n),
        "at": lambda _: _moment(random),
        "flag": lambda _: random.random() < 0.5,
    }
    columns = {name: [makers[name](n) for n in range(12)] for name in descriptor.keys}
    frame = pl.DataFrame(columns, schema=dict(descriptor.keys))
    groups = key_groups(frame, list(descriptor.keys), GROUPS).to_list()
    return [(group, *row) for group, row in zip(groups, frame.iter_rows(), strict=True)]


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


def _check_timers(make: Make, restore_with: Make, random: Random) -> None:
    descriptor = StateDescriptor("timers", StateKind.TIMERS, _KEYS, {TIME: pl.Int64()})
    keys = _some_keys(descriptor, random)[:5]
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
    wanted = wanted.sort(KEY_GROUP, *_KEYS, TIME)
    _assert_equal(table, wanted, "frozen timers")
    parts = pl.concat(again.tables())
    _assert_equal(parts.sort(KEY_GROUP, *_KEYS, TIME), wanted, "frozen timers in parts")
    _check_halves(restore_with, descriptor, table)


def _some_rows(descriptor: StateDescriptor, random: Random) -> pl.DataFrame:
    keys = _some_keys(descriptor, random)[:5]
    rows = [(*random.choice(keys), random.randint(0, 9), n, ["x"] * (n % 3)) for n in range(40)]
    return pl.DataFrame(rows, schema=table_schema(descriptor), orient="row")


def _check_held(make: Make, restore_with: Make, random: Random) -> None:
    descriptor = StateDescriptor("held", StateKind.HELD, _KEYS, _ROW)
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
    _assert_equal(found, frame, "held rows")
    wanted = frame.sort(KEY_GROUP, *_KEYS, EVENT_TIME, maintain_order=True)
    _assert_equal(table, wanted, "frozen held rows")
    _check_halves(restore_with, descriptor, table)


def _check_rows(make: Make, restore_with: Make, random: Random) -> None:
    """Rows leave in order of time and key, those of one time and key as they came."""
    values = {EVENT_TIME: pl.Int64(), "n": pl.Int64(), "tags": pl.List(pl.String())}
    descriptor = StateDescriptor("rows", StateKind.ROWS, _KEYS, values)
    keys = _some_keys(descriptor, random)[:5]
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
    wanted = wanted.sort(KEY_GROUP, *_KEYS, EVENT_TIME, maintain_order=True)
    _assert_equal(frozen.table(), wanted, "frozen rows")
    parts = pl.concat(again.tables())
    _assert_equal(parts.sort(wanted.columns[:4], maintain_order=True), wanted, "rows in parts")
    _check_halves(restore_with, descriptor, wanted)


def _check_frames(make: Make, restore_with: Make, random: Random) -> None:
    values = {ROW_INDEX: pl.Int64(), "n": pl.Int64(), "tags": pl.List(pl.String())}
    descriptor = StateDescriptor("frames", StateKind.FRAMES, _KEYS, values)
    columns = {name: dtype for name, dtype in values.items() if name != ROW_INDEX}
    keys = _some_keys(descriptor, random)[:4]
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
        _assert_equal(pl.concat(again.tables()), table, "frozen frames in parts")
    rows = [(*key, at, *row) for key, held in model.items() for at, row in enumerate(held)]
    wanted = pl.DataFrame(rows, schema=table_schema(descriptor), orient="row")
    _assert_equal(table, wanted.sort(KEY_GROUP, *_KEYS, ROW_INDEX), "frozen frames")
    _check_halves(restore_with, descriptor, table)


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
        order = ["n"] if at % 2 else [EVENT_TIME, KEY_GROUP, *_KEYS]
        taken = _taken_unordered(handle, at) if at % 2 else handle.take_before(at)
        assert (taken is None) == (not early), f"rows before {at} came, or did not"
        if taken is not None:
            rows = pl.DataFrame(early, schema=table_schema(descriptor), orient="row")
            wanted = rows.sort(order, maintain_order=True)
            _assert_equal(taken.select(wanted.columns), wanted, "rows that left")
    return model


def _taken_unordered(handle: RowsHandle, time: Micros) -> pl.DataFrame | None:
    frames = handle.take(time)
    return pl.concat(frames).sort("n") if frames else None


_RUNS = StateDescriptor("runs", StateKind.RUNS, {"id": pl.Int64()}, {"n": pl.Int64()})

Slices = Counter[tuple[int, int]]
"""(slice end, id) -> the sum of what was added."""


def _check_runs(make: Make, restore_with: Make, random: Random) -> None:
    """A slice gives each key once, with the sum of all its runs."""

    def merge(run: pl.DataFrame, within: Iterable[str], same: Iterable[str]) -> pl.DataFrame:
        firsts = [pl.col(name).first() for name in same]
        return run.group_by(list(within)).agg(*firsts, pl.col("n").sum())

    model: Slices = Counter()
    with closing(make(ALL)) as backend:
        handle = cast("RunsHandle", backend.state(_RUNS))
        handle.merge_with(merge)
        for step in range(3 * STEPS):
            rows = [(10 * random.randrange(5), random.randrange(40)) for _ in range(step % 20)]
            handle.append(_run_of(Counter(rows)))
            model.update(rows)
            if random.random() < 0.2:
                _use_runs(handle, model, random)
            ends = sorted({end for end, _ in model})
            assert list(handle.slice_ends()) == ends, f"slices {handle.slice_ends()}, not {ends}"
            if step == STEPS:
                frozen, again, before = *backend.freeze(), *backend.freeze(), Counter(model)
        _take_runs(handle, model, 100)
        assert handle.take_until(Micros(100)) is None, "slices left twice"
    wanted = _run_of(before).sort(KEY_GROUP, "id", SLICE_END)
    _assert_equal(frozen.table(), wanted, "frozen runs")
    _assert_equal(pl.concat(again.tables()), wanted, "frozen runs in parts")
    _check_halves(restore_with, _RUNS, wanted)


def _use_runs(handle: RunsHandle, model: Slices, random: Random) -> None:
    """Read, drop or take some slices."""
    after, until = sorted(random.choices(range(-1, 45), k=2))
    read = handle.read(after, until)
    wanted = Counter({at: n for at, n in model.items() if after < at[0] <= until})
    assert _sums(read) == wanted, f"runs of slices after {after} up to {until} are not all there"
    if random.random() < 0.5:
        _take_runs(handle, model, after)
    else:
        handle.drop_until(after)
        _forget(model, after)


def _take_runs(handle: RunsHandle, model: Slices, time: int) -> None:
    parts = list(handle.take_parts(Micros(time)))
    rows = [row for part in parts for row in part.select(SLICE_END, "id").rows()]
    assert len(rows) == len(set(rows)), "a key came twice from one slice"
    firsts = [min(part.get_column(SLICE_END).to_list()) for part in parts]
    assert firsts == sorted(firsts), "slices came out of order"
    wanted = Counter({at: n for at, n in model.items() if at[0] <= time})
    assert _sums(parts) == wanted, f"slices up to {time} gave other sums"
    _forget(model, time)


def _forget(model: Slices, time: int) -> None:
    for at in [at for at in model if at[0] <= time]:
        del model[at]


def _run_of(sums: Slices) -> pl.DataFrame:
    rows = [(id_ % GROUPS, id_, end, n) for (end, id_), n in sums.items()]
    return pl.DataFrame(rows, schema=table_schema(_RUNS), orient="row")


def _sums(runs: Iterable[pl.DataFrame]) -> Slices:
    sums: Slices = Counter()
    for run in runs:
        for end, id_, n in run.select(SLICE_END, "id", "n").iter_rows():
            sums[end, id_] += n
    return sums


def _check_broadcast(make: Make, restore_with: Make) -> None:
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


def _check_agenda(make: Make) -> None:
    """Every key is given once its time has come, at most a grain late; snapshots have none."""
    descriptor = _CASES[0].descriptor
    keys = _some_keys(descriptor, Random(0))  # noqa: S311  test data
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


def _check_halves(make: Make, descriptor: StateDescriptor, table: pl.DataFrame) -> None:
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
    _assert_equal(pl.concat(found), table, f"table of {descriptor.name!r} restored by halves")


def _check_names(make: Make) -> None:
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
            _assert_equal(each.table(), empty, f"table of {each.descriptor.name!r}, never used")


def _check_shapes(make: Make) -> None:
    """One name cannot stand for two states, in a job or in a snapshot."""
    descriptor = _CASES[0].descriptor
    other = StateDescriptor(descriptor.name, descriptor.kind, _KEYS, {VALUE: pl.String()})
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


def _assert_equal(found: pl.DataFrame, wanted: pl.DataFrame, what: str) -> None:
    try:
        assert_frame_equal(found, wanted)
    except AssertionError as error:
        msg = f"{what} is not what was written: {error}"
        raise AssertionError(msg) from error
