"""A job of the seeded server that can be replayed, and how far its replays have come.

    revenue        reads as fast as rows come in: it is where the clock is
    revenue@r-1    begins where its savepoint was taken; a tick brings it on by `pace` seconds, but
                   never past the live job

The savepoint of two days ago holds state that no version has a place for, and positions in input
that is gone; the newer ones restore as they are.
"""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoint.coordination.stats import CheckpointStats
from engine.checkpoint.format.entries import OperatorEntry, StateEntry
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.restoring.inputs import Gap, Inputs, SourceInput
from engine.elements import Micros, SnapshotKind
from engine.graph.plan import EdgePlan, OperatorKind, OperatorPlan, Plan, VertexPlan
from engine.keygroups import DEFAULT_MAX_PARALLELISM
from engine.state.contract import StateKind
from engine.testing import fake_values as values
from seeded_jobs import START_MS

ID, NAME = "5" * 32, "revenue"
PARALLELISM = 2
SAVEPOINTS = (0.05, 1, 2)
"""Days ago."""
DAY_MS = 86_400_000
SET_BACK_MS = 600_000
"""How far a restart throws a replay back."""
PACE_S = 7_200.0


def place(days: float) -> str:
    """Where the savepoint of so many days ago lies."""
    return f"/data/savepoints/{NAME}-{days}"


def manifest(days: float, stats: CheckpointStats) -> Manifest:
    """What it holds."""
    taken_ms = int(START_MS - days * DAY_MS)
    watermark = Micros(taken_ms * 1_000)
    made = values.manifest(ID, NAME, replace(stats, kind=SnapshotKind.SAVEPOINT))
    operators = tuple(replace(one, watermark=watermark) for one in made.operators)
    lost = (_without_a_place(operators[1], watermark),) if days > 1 else ()
    return replace(made, created_ms=taken_ms, operators=(*operators, *lost))


def _without_a_place(like: OperatorEntry, watermark: Micros) -> OperatorEntry:
    state = StateEntry(
        "sessions", StateKind.MAP, {"user": "String"}, {"rows": "Int64"}, like.states[0].files
    )
    return OperatorEntry(
        uid="late-orders",
        name="late orders",
        vertex="0" * 32,
        parallelism=PARALLELISM,
        max_parallelism=DEFAULT_MAX_PARALLELISM,
        watermark=watermark,
        states=(state,),
    )


def inputs_of(snapshot: Manifest) -> Inputs:
    """What the source says of the input that it would go on with."""
    watermark = snapshot.operators[0].watermark
    if watermark > (START_MS - DAY_MS - 1) * 1_000:
        return {}
    gap = Gap("rows from 1,001 on: no file /data/orders/JFK.parquet", watermark)
    return {"flights": SourceInput({"JFK": gap})}


def with_one_more(plan: Plan) -> Plan:
    """The plan with another sink behind its last vertex."""
    last = plan.vertices[-1]
    sink = OperatorPlan("audit", "audit", OperatorKind.SINK, "sink")
    added = VertexPlan("a" * 32, "audit", last.parallelism, (sink,))
    edge = EdgePlan(last.id, added.id, "rebalance", operator=0)
    return replace(plan, vertices=(*plan.vertices, added), edges=(*plan.edges, edge))


class Replays:
    """How far each one has come."""

    def __init__(self) -> None:
        self.pace_s = PACE_S
        self.reached_ms: dict[str, float] = {}
        """By job."""
        self.restarts: dict[str, int] = {}

    def begin(self, job_id: str, snapshot: Manifest) -> None:
        """One has been started."""
        self.reached_ms[job_id] = snapshot.operators[0].watermark / 1_000

    def tick(self, live_ms: float) -> None:
        """A second has passed."""
        for job_id, reached in self.reached_ms.items():
            self.reached_ms[job_id] = min(live_ms, reached + 1_000 * self.pace_s)

    def set_back(self) -> None:
        """Each is started again, from a checkpoint."""
        for job_id in self.reached_ms:
            self.reached_ms[job_id] -= SET_BACK_MS
            self.restarts[job_id] = self.restarts.get(job_id, 0) + 1
