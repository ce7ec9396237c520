"""Operator harness: one operator without a job, for tests of operators and of user functions.

>>> from engine.operators.columns.filter import Filter
>>> harness = OperatorHarness(Filter(pl.col("delay") > 15))
>>> harness.push([{"delay": 20}, {"delay": 5}])
>>> harness.outputs["main"]
[{'delay': 20}]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
import polars as pl

from engine.elements import KEY_GROUP, MAX_TIME, MIN_TIME, Micros, Watermark
from engine.keygroups import DEFAULT_MAX_PARALLELISM, KeyGroupRange, key_groups, range_of
from engine.operators.asking.contract import AsyncOperator
from engine.operators.asking.requests import Answer, Control, Request
from engine.operators.contract import MAIN, Context, Operator
from engine.state.contract import StateBackend, StateDescriptor
from engine.state.memory import MemoryBackend

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class HarnessSnapshot:
    """What a snapshot of the operator holds."""

    watermark: Micros
    tables: Mapping[str, pl.DataFrame]
    """Canonical table per state."""


class _HarnessContext(Context):
    """Keeps what the operator emits and counts."""

    def __init__(self, backend: StateBackend, watermark: Micros) -> None:
        self.key_groups = backend.key_groups
        self.watermark = watermark
        self.frames: dict[str, list[pl.DataFrame]] = defaultdict(list)
        self.counters: Counter[str] = Counter()
        self.now = MIN_TIME
        self.wake_at = MAX_TIME
        self.requests: list[Request] = []
        self.released: list[Control] = []
        self._backend = backend

    def emit(self, frame: pl.DataFrame, tag: str = MAIN) -> None:
        """Keep rows for the test."""
        if frame.height:
            self.frames[tag].append(frame)

    def state(self, descriptor: StateDescriptor) -> object:
        """The handle of a state."""
        return self._backend.state(descriptor)

    def wake(self, time: Micros) -> None:
        """Have the operator called when the test lets the clock reach a time."""
        self.wake_at = min(self.wake_at, time)

    def ask(self, request: Request) -> None:
        """Keep a request for the test to answer."""
        self.requests.append(request)

    def release(self, element: Control) -> None:
        """Keep an element that the operator let go."""
        self.released.append(element)

    def count(self, metric: str, amount: int) -> None:
        """Add to a counter."""
        self.counters[metric] += amount


class OperatorHarness:
    """One subtask of an operator, fed by a test."""

    def __init__(
        self,
        operator: Operator,
        *,
        keys: Mapping[int, Sequence[str]] | Sequence[str] = (),
        subtask: int = 0,
        parallelism: int = 1,
        max_parallelism: int = DEFAULT_MAX_PARALLELISM,
        restored: Sequence[HarnessSnapshot] = (),
        new_backend: Callable[[KeyGroupRange], StateBackend] = MemoryBackend,
    ) -> None:
        """Open a copy of the operator, as a worker would.

        `keys`: columns that rows are partitioned by, or those per port; pushed rows then get
        their key group, and those that belong to another subtask are left out.
        `restored`: snapshots of all subtasks of an earlier run; each takes its own key groups.
        `new_backend`: what keeps its state.
        """
        self._operator = _copy(operator)
        self._keys = keys if isinstance(keys, Mapping) else {0: keys, 1: keys}
        backend = new_backend(range_of(subtask, parallelism, max_parallelism))
        self._backend = backend
        for descriptor in self._operator.states:
            for snapshot in restored:
                backend.restore(descriptor, snapshot.tables[descriptor.name])
        watermark = min((snapshot.watermark for snapshot in restored), default=MIN_TIME)
        self._ctx = _HarnessContext(backend, watermark)
        self._ctx.subtask, self._ctx.parallelism = subtask, parallelism
        self._ctx.max_parallelism = max_parallelism
        self._operator.open(self._ctx)

    @property
    def outputs(self) -> dict[str, list[dict[str, Any]]]:
        """All rows emitted so far, by tag."""
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for tag, frames in self._ctx.frames.items():
            found[tag] = [row for frame in frames for row in frame.to_dicts()]
        return found

    @property
    def frames(self) -> Mapping[str, list[pl.DataFrame]]:
        """All frames emitted so far, by tag."""
        return self._ctx.frames

    @property
    def counters(self) -> Mapping[str, int]:
        """What the operator has counted."""
        return self._ctx.counters

    def push(self, rows: pl.DataFrame | Rows, port: int = 0) -> None:
        """Feed one batch."""
        frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows)
        keys = self._keys.get(port, ())
        if keys and frame.height and KEY_GROUP not in frame.columns:
            frame = frame.with_columns(key_groups(frame, keys, self._ctx.max_parallelism))
        if KEY_GROUP in frame.columns:
            lo, hi = self._ctx.key_groups.lo, self._ctx.key_groups.hi
            frame = frame.filter(pl.col(KEY_GROUP).is_between(lo, hi, closed="left"))
        if frame.height:
            self._operator.on_batch(frame, port, self._ctx)

    def advance(self, watermark: int) -> None:
        """Let event time reach `watermark`; earlier ones change nothing, as in a job."""
        if self._holds(Watermark(Micros(watermark))):
            return
        if watermark > self._ctx.watermark:
            self._ctx.watermark = Micros(watermark)
            self._operator.on_watermark(Micros(watermark), self._ctx)

    def _holds(self, element: Watermark) -> bool:
        return isinstance(self._operator, AsyncOperator) and self._operator.hold(element)

    def answer(self, answers: Sequence[Answer]) -> None:
        """Tell the operator what came of its requests."""
        assert isinstance(self._operator, AsyncOperator), "only these have requests"
        self._operator.on_answers(answers, self._ctx)

    def tick(self, now: int) -> None:
        """Let processing time reach `now`."""
        ctx = self._ctx
        ctx.now = Micros(now)
        while ctx.wake_at <= now:
            ctx.wake_at = MAX_TIME
            self._operator.on_processing_time(ctx.now, ctx)

    def flush(self) -> None:
        """Have the operator emit what it holds back, as before a barrier and before idleness."""
        self._operator.flush(self._ctx)

    @property
    def requests(self) -> list[Request]:
        """What the operator asked for. A test takes them away when it answers."""
        return self._ctx.requests

    @property
    def released(self) -> list[Control]:
        """The elements that went on, of those that the operator held."""
        return self._ctx.released

    def snapshot(self) -> HarnessSnapshot:
        """Take what a barrier would take, through the canonical tables."""
        self.flush()
        tables = {frozen.descriptor.name: frozen.table() for frozen in self._backend.freeze()}
        empty = [state for state in self._operator.states if state.name not in tables]
        fresh = MemoryBackend(self._ctx.key_groups)
        for descriptor in empty:
            tables[descriptor.name] = fresh.state(descriptor).freeze().table()
        return HarnessSnapshot(self._ctx.watermark, tables)


def _copy(operator: Operator) -> Operator:
    """What a worker makes of an operator that was pickled into the job graph."""
    raw: bytes = cloudpickle.dumps(operator)  # type: ignore[no-untyped-call]
    copied: Operator = cloudpickle.loads(raw)
    return copied
