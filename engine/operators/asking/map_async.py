"""Map async: a coroutine per row, many at a time, for what must be asked of another service.

    rows ──state──▶ waiting ──ask──▶ up to `capacity` at a time ──answer──▶ rows out, state cleared

Guarantee  rows whose answers are awaited are in every snapshot, and are asked again after a
         restore: each row has one result in the output, though the service may be asked twice.
Order    ordered: rows leave as they came. Unordered: as answers come, but not past a watermark.
         After a restore at another parallelism, rows of one old subtask stay together.
Late     rows keep their event time and their lateness.
Exempt   from the law of the same output: what the service answers, and whether it does in time.
Cost     some 20 µs per request; `rows_per_call` asks for many rows at once. While as many rows are
         in flight as `capacity` allows, no input is taken: that is backpressure. A barrier waits
         behind the batches before it, so a capacity too small for the service delays checkpoints.
Errors   FunctionError with the row for what the function raises, RequestFailed for what it raises
         of the world (OSError) and for no answer in time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast

import polars as pl

from engine.elements import EVENT_TIME, ROW_WATERMARK, Micros
from engine.errors import FunctionError, RequestFailed
from engine.functions.row_class import RowClass
from engine.keygroups import range_of
from engine.operators.asking.contract import AsyncOperator
from engine.operators.asking.in_flight import Entry, InFlight
from engine.operators.asking.requests import Answer, Control, Request
from engine.operators.contract import Context
from engine.operators.expressions import raised, shortened
from engine.operators.records.rows import check_nulls, rows_of, values_of
from engine.operators.records.rows_out import RowsOut
from engine.state.contract import StateDescriptor, StateKind
from engine.state.handles import DELETED, ValueHandle

AsyncFunction = Callable[[Any], Coroutine[Any, Any, object]]

IN_FLIGHT = "rows.in_flight"
NUMBER = "async_number"
"""Column of the state: the order of the rows of a subtask."""

_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class Asking:
    """How rows are asked for."""

    capacity: int = 100
    """Rows that may be in flight."""
    timeout: Micros | None = None
    """For one answer, with all its retries, µs."""
    ordered: bool = True
    rows_per_call: int | None = None
    """None: the function takes one row. Otherwise it takes a list of so many at most."""
    retries: int = 0
    retry_after: Micros | None = None
    on_timeout: Callable[[Any], object] | None = None
    """What a row gives that has no answer in time; None: that fails."""


class MapAsync(AsyncOperator):
    """Calls an asynchronous function."""

    name: ClassVar[str] = "map_async"

    def __init__(
        self,
        function: AsyncFunction,
        label: str,
        taken: Mapping[str, pl.DataType],
        schema: Mapping[str, pl.DataType],
        asking: Asking,
        *,
        takes: RowClass | None = None,
        gives: RowClass | None = None,
    ) -> None:
        """`taken`: columns of the input. `takes`, `gives`: classes of the rows; None for dicts."""
        self.function = function
        self.label = label
        self.schema = dict(schema)
        self.asking = asking
        self.takes = takes
        self.gives = gives
        self._taken = dict(taken)
        self._step = f"{self.name} {label!r}"
        self._state = StateDescriptor(
            IN_FLIGHT,
            StateKind.VALUE,
            {NUMBER: pl.Int64()},
            {**self._taken, ROW_WATERMARK: pl.Int64()},
        )
        self._flight = InFlight(ordered=asking.ordered)
        self._unasked: deque[Entry] = deque()
        self._asked: dict[int, Sequence[Entry]] = {}
        self._running = 0
        self._requests = self._next = self._group = 0

    @property
    def states(self) -> Sequence[StateDescriptor]:
        """The rows in flight, by the key group of the subtask that took them and their number."""
        return (self._state,)

    @property
    def in_flight(self) -> int:
        """Rows that have not left yet."""
        return len(self._flight)

    @property
    def is_full(self) -> bool:
        """Whether `capacity` is reached."""
        return len(self._flight) >= self.asking.capacity

    def hold(self, element: Control) -> bool:
        """Keep an element behind the rows that it came behind."""
        return self._flight.hold(element)

    def open(self, ctx: Context) -> None:
        """Ask again for the rows of the snapshot: for those of the key groups that are ours."""
        ours = range_of(ctx.subtask, ctx.parallelism, ctx.max_parallelism)
        self._group = ours.lo
        handle = self._handle(ctx)
        found = sorted(handle.items(), key=lambda held: held[0])
        # Rows are not partitioned by key, so every subtask is given all of them.
        handle.put_many({key: DELETED for key, _ in found if key[0] not in ours})
        own = [(key, values) for key, values in found if key[0] in ours]
        self._next = max((key[1] + 1 for key, _ in own), default=0)
        frame = pl.DataFrame([values for _, values in own], dict(self._state.values), orient="row")
        self._begin(self._entries(frame, [key for key, _ in own]), ctx)

    def on_batch(self, frame: pl.DataFrame, port: int, ctx: Context) -> None:
        """Remember the rows, and ask for as many as may be asked for."""
        check_nulls(frame, self.takes, self._step)
        numbers = range(self._next, self._next + frame.height)
        self._next += frame.height
        keys = [(self._group, number) for number in numbers]
        # Read apart from the rows, so that nothing which a function changes is remembered changed.
        values = zip(*(_values(frame, name) for name in self._state.values), strict=True)
        self._handle(ctx).put_many(dict(zip(keys, values, strict=True)))
        self._begin(self._entries(frame, keys), ctx)

    def _entries(self, frame: pl.DataFrame, keys: Sequence[tuple[int, int]]) -> list[Entry]:
        times, marks = _values(frame, EVENT_TIME), _values(frame, ROW_WATERMARK)
        made = rows_of({name: _values(frame, name) for name in self._taken}, self.takes)
        return [
            Entry(key, row, time, mark)
            for key, row, time, mark in zip(keys, made, times, marks, strict=True)
        ]

    def _begin(self, entries: Sequence[Entry], ctx: Context) -> None:
        self._flight.add(entries)
        self._unasked.extend(entries)
        self._ask(ctx)

    def _ask(self, ctx: Context) -> None:
        """Ask for waiting rows, as far as there is room."""
        most = self.asking.rows_per_call or 1
        while self._unasked and self._running < self.asking.capacity:
            count = min(most, len(self._unasked), self.asking.capacity - self._running)
            entries = [self._unasked.popleft() for _ in range(count)]
            rows = [entry.row for entry in entries]
            given = rows[0] if self.asking.rows_per_call is None else rows
            self._requests += 1
            self._asked[self._requests] = entries
            self._running += count
            call = partial(_called, self.function, given, self.asking)
            ctx.ask(Request(self._requests, call, self.asking.timeout))

    def on_answers(self, answers: Sequence[Answer], ctx: Context) -> None:
        """Send the rows that may leave now, and the elements that they held up."""
        for answer in answers:
            entries = self._asked.pop(answer.number)
            self._running -= len(entries)
            for entry, outcome in zip(entries, self._outcomes(entries, answer), strict=True):
                self._flight.finish(entry, outcome)
        for leaving in self._flight.take():
            if isinstance(leaving, list):
                self._send(leaving, ctx)
            else:
                ctx.release(leaving)
        self._ask(ctx)

    def _outcomes(self, entries: Sequence[Entry], answer: Answer) -> list[Iterable[Any]]:
        """What each row of a request gives."""
        rows = [entry.row for entry in entries]
        if answer.timed_out and self.asking.on_timeout is not None:
            return [several(self._instead(row)) for row in rows]
        if answer.timed_out:
            msg = (
                f"{self._step} got no answer within {self.asking.timeout} µs: row "
                f"{shortened(rows[0])}; allow a longer timeout, or give rows with on_timeout"
            )
            raise RequestFailed(msg)
        if answer.error is not None:
            raise self._fault(rows[0], answer.error)
        if self.asking.rows_per_call is None:
            return [several(answer.value)]
        value = answer.value
        if not isinstance(value, list) or len(value) != len(rows):
            msg = (
                f"{self._step} gave {shortened(value)} for {len(rows)} rows: first row "
                f"{shortened(rows[0])}; give a list of what each row gives"
            )
            raise FunctionError(msg)
        return [several(each) for each in value]

    def _instead(self, row: Any) -> object:
        assert self.asking.on_timeout is not None
        try:
            return self.asking.on_timeout(row)
        except (Exception, SystemExit) as error:
            raise self._fault(row, error) from error

    def _fault(self, row: Any, error: BaseException) -> FunctionError | RequestFailed:
        fault = RequestFailed if isinstance(error, OSError) else FunctionError
        remedy = "fix the function, filter such rows, or pass retries=…"
        made = fault(f"{self._step} {raised(error)}: row {shortened(row)}; {remedy}")
        made.__cause__ = error
        return made

    def _send(self, entries: Sequence[Entry], ctx: Context) -> None:
        out = RowsOut(self._step, self.schema, lambda origin: entries[origin].row, self.gives)
        with out.explained():
            out.collect(entry.outcome for entry in entries)
        if out.height:
            ctx.emit(out.frame(self._stamps(entries)))
        self._handle(ctx).put_many({entry.key: DELETED for entry in entries})

    def _stamps(self, entries: Sequence[Entry]) -> pl.DataFrame:
        columns = []
        if EVENT_TIME in self._taken:
            times = [entry.time for entry in entries]
            columns.append(pl.Series(EVENT_TIME, times, dtype=pl.Int64))
        marks = [entry.mark for entry in entries]
        if any(mark is not None for mark in marks):
            columns.append(pl.Series(ROW_WATERMARK, marks, dtype=pl.Int64))
        return pl.DataFrame(columns)

    def _handle(self, ctx: Context) -> ValueHandle:
        return cast("ValueHandle", ctx.state(self._state))

    def describe(self) -> Mapping[str, str]:
        """Short facts for people."""
        order = "ordered" if self.asking.ordered else "unordered"
        return {"function": self.label, "order": order, "capacity": str(self.asking.capacity)}


def _values(frame: pl.DataFrame, name: str) -> list[Any]:
    return values_of(frame.get_column(name)) if name in frame.columns else [None] * frame.height


async def _called(function: AsyncFunction, given: Any, asking: Asking) -> object:
    for _ in range(asking.retries):
        with suppress(Exception):
            return await function(given)
        await asyncio.sleep((asking.retry_after or 0) / _MICROS)
    # The last attempt is the one that may fail.
    return await function(given)


def several(given: Any) -> Iterable[Any]:
    """A row, several in a list, or none, as several.

    >>> several(None), several({"n": 1}), several([{"n": 1}, {"n": 2}])
    ((), ({'n': 1},), [{'n': 1}, {'n': 2}])
    """
    if given is None:
        return ()
    return given if isinstance(given, list | tuple) else (given,)
