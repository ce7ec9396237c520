"""The jobs of the seeded server: graphs and figures that are the same each time.

    orders   eleven operators, one of them skewed, busy and held up for by those before it
    wide     three hundred operators
    many     one operator with 1,600 subtasks

Units    of `Op`: rows per second over all subtasks, percent of the busiest subtask, ms of watermark
         delay, bytes of state over all subtasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import md5

from engine.checkpoint.coordination.stats import (
    CheckpointStats,
    SubtaskCheckpoint,
    VertexCheckpoint,
)
from engine.graph.plan import EdgePlan, OperatorKind, OperatorPlan, Plan, VertexPlan
from engine.rest.model.jobs import SubtaskDetails, TaskStatus, TaskTotals, VertexDetails

START_MS = 1_796_011_920_000
"""30 November 2026, 04:12: what the clock of the server shows at its first look."""
MAX_PARALLELISM = 32_768
WIDE, MANY = 300, 1_600
LAYER = 20
"""Operators side by side in the wide graph."""


@dataclass(frozen=True, slots=True)
class Op:
    """One operator; `chain` are the names of those in the same vertex, itself first."""

    name: str
    kind: OperatorKind
    par: int
    rows_in: float
    rows_out: float
    busy: float
    waiting: float = 0.0
    delay_ms: float = 1_000.0
    state: float = 0.0
    hot: int | None = None
    """Subtask that takes four times what the others do."""
    chain: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Of its vertex."""
        return md5(self.name.encode(), usedforsecurity=False).hexdigest()


SOURCE, SINK, STEP = OperatorKind.SOURCE, OperatorKind.SINK, OperatorKind.TRANSFORM
ORDERS = (
    Op("orders", SOURCE, 16, 0, 412e3, 22, 71, 1.1e3, 2.1e6, None, ("parse", "valid")),
    Op("customers-cdc", SOURCE, 8, 0, 4.1e3, 9, 48, 900, 1.2e6, None, ("decode",)),
    Op("enrich-join", STEP, 32, 416e3, 388e3, 98, 0, 148e3, 241e9, 11, ("null-filter",)),
    Op("payments", SOURCE, 16, 0, 96e3, 18, 2, 1.0e3, 1.9e6, None, ("parse",)),
    Op("payment-match join", STEP, 32, 484e3, 379e3, 54, 0, 151e3, 68e9),
    Op("fx-rates", SOURCE, 1, 0, 320, 2, 0, 400, 84e3),
    Op("fx-convert", STEP, 16, 379e3, 379e3, 37, 0, 151e3, 410e3, None, ("tag-late",)),
    Op("orders-enriched", SINK, 16, 379e3, 0, 31, 0, 152e3, 38e6),
    Op("hourly-revenue window", STEP, 16, 379e3, 2.4e3, 44, 0, 152e3, 8.7e9),
    Op("late-orders", SINK, 2, 12, 0, 1, 0, 152e3, 4e3),
    Op("revenue-iceberg", SINK, 8, 2.4e3, 0, 12, 0, 153e3, 12e6),
)
ORDERS_EDGES = (
    ("orders", "enrich-join", "hash"),
    ("customers-cdc", "enrich-join", "hash"),
    ("enrich-join", "payment-match join", "hash"),
    ("payments", "payment-match join", "hash"),
    ("payment-match join", "fx-convert", "rebalance"),
    ("fx-rates", "fx-convert", "broadcast"),
    ("fx-convert", "orders-enriched", "forward"),
    ("fx-convert", "hourly-revenue window", "hash"),
    ("hourly-revenue window", "revenue-iceberg", "rebalance"),
    ("hourly-revenue window", "late-orders", "rebalance"),
)


def wide() -> tuple[tuple[Op, ...], tuple[tuple[str, str, str], ...]]:
    """Layers of operators; each takes from one or two of the layer before."""
    ops = tuple(_wide_op(number) for number in range(WIDE))
    feeds = ((n - LAYER, n) for n in range(LAYER, WIDE))
    across = ((n - LAYER + 1, n) for n in range(LAYER, WIDE, 3) if (n + 1) % LAYER)
    edges = ((ops[a].name, ops[b].name, "hash") for a, b in sorted([*feeds, *across]))
    return ops, tuple(edges)


def _wide_op(number: int) -> Op:
    kind = SOURCE if number < LAYER else SINK if number >= WIDE - LAYER else STEP
    rows = 1_000.0 + 37 * number
    return Op(f"step-{number:03}", kind, 2, rows, rows, 5 + number % 60, state=1e6 * (number % 9))


MANY_OPS = (
    Op("clicks", SOURCE, 4, 0, 1.6e6, 40, delay_ms=800),
    Op("per user", STEP, MANY, 1.6e6, 80e3, 97, delay_ms=4e3, state=900e9, hot=711),
    Op("store", SINK, 4, 80e3, 0, 11, delay_ms=5e3),
)
MANY_EDGES = (("clicks", "per user", "hash"), ("per user", "store", "rebalance"))
DOOMED_OPS = (
    Op("returns", SOURCE, 2, 0, 1.4e3, 12),
    Op("refunds", SINK, 2, 1.4e3, 0, 7),
)
DOOMED_EDGES = (("returns", "refunds", "hash"),)


def plan(name: str, ops: tuple[Op, ...], edges: tuple[tuple[str, str, str], ...]) -> Plan:
    """The graph."""
    ids = {op.name: op.id for op in ops}
    return Plan(
        name=name,
        max_parallelism=MAX_PARALLELISM,
        checkpoint_interval_ms=10_000,
        vertices=tuple(_vertex_plan(op) for op in ops),
        edges=tuple(
            EdgePlan(ids[source], ids[target], shape, operator=0) for source, target, shape in edges
        ),
    )


def _vertex_plan(op: Op) -> VertexPlan:
    names = (op.name, *op.chain)
    kinds = (op.kind, *(STEP for _ in op.chain))
    operators = tuple(
        OperatorPlan(f"{op.name}.{name}".replace(" ", "-"), name, kind, kind.value)
        for name, kind in zip(names, kinds, strict=True)
    )
    return VertexPlan(op.id, " → ".join(names), op.par, operators)


def vertices(ops: tuple[Op, ...], tick: int) -> tuple[VertexDetails, ...]:
    """Every subtask with its figures after `tick` seconds."""
    return tuple(
        VertexDetails(op.id, op.name, op.par, MAX_PARALLELISM, tuple(_subtasks(op, tick)))
        for op in ops
    )


def share(op: Op, index: int) -> float:
    """Of the mean load of a subtask: near one, but four for the hot one."""
    return 4.1 if index == op.hot else 0.92 + 0.02 * ((index * 7) % 9)


def _subtasks(op: Op, tick: int) -> Iterator[SubtaskDetails]:
    wave = 1 + 0.02 * ((tick * 3) % 7) / 7 if tick else 1.0
    for index in range(op.par):
        part = share(op, index) * wave / op.par
        load = 1.0 if op.hot in (None, index) else 0.34
        busy, waiting = op.busy * 10 * load, op.waiting * 10
        watermark = START_MS + tick * 1_000 - op.delay_ms * (1 if op.hot in (None, index) else 0.1)
        yield SubtaskDetails(
            index=index,
            status=TaskStatus.RUNNING,
            endpoint=f"tm-{1 + index * 7 % 24:02}",
            task_manager_id=f"tm-{1 + index * 7 % 24:02}",
            start_ms=START_MS - 3_600_000,
            totals=TaskTotals(int(op.rows_in * part * 3_600), int(op.rows_out * part * 3_600)),
            metrics={
                "numRecordsInPerSecond": round(op.rows_in * part, 1),
                "numRecordsOutPerSecond": round(op.rows_out * part, 1),
                f"{op.name}.numRecordsOutPerSecond": round(op.rows_out * part, 1),
                f"{op.name}.numRecordsInPerSecond": round(op.rows_in * part, 1),
                "busyTimeMsPerSecond": round(busy),
                "backPressuredTimeMsPerSecond": round(waiting),
                "idleTimeMsPerSecond": max(0, 1_000 - round(busy) - round(waiting)),
            },
            input_watermark=None if op.kind is SOURCE else int(watermark * 1_000),
            output_watermark=int(watermark * 1_000),
        )


def with_parts(ops: tuple[Op, ...], stats: CheckpointStats, slow: int) -> CheckpointStats:
    """The checkpoint with a part of each subtask; `slow` times as slow as usual."""
    parts = tuple(
        VertexCheckpoint(
            op.id,
            op.par,
            tuple(_part(op, index, stats.triggered_ms, slow) for index in range(op.par)),
        )
        for op in ops
    )
    took = max(part.duration_ms for vertex in parts for part in vertex.subtasks)
    return replace(stats, vertices=parts, duration_ms=took)


def _part(op: Op, index: int, triggered_ms: int, slow: int) -> SubtaskCheckpoint:
    size = int(op.state * share(op, index) / op.par)
    delay = int((20 + op.delay_ms / 400) * slow)
    align, sync = int(4 + op.waiting * 3 + 40 * (index == op.hot)) * slow, 2 + index % 3
    write = int(12 + size / 4e7) * slow
    return SubtaskCheckpoint(
        index=index,
        ack_ms=triggered_ms + delay + align + sync + write,
        duration_ms=delay + align + sync + write,
        start_delay_ms=delay,
        alignment_ms=align,
        sync_ms=sync,
        async_ms=write,
        state_bytes=size,
        checkpointed_bytes=size // 9,
        operator_bytes={op.name: size},
    )
