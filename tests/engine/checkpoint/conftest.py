"""A plan with a source, a keyed state and a sink, and snapshots of it on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import polars as pl
import pytest

from engine.checkpoint.format.entries import OperatorEntry, SubtaskSnapshot, merge_parts
from engine.checkpoint.format.frozen import OperatorSnapshot, TaskSnapshot
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.format.writer import write_manifest, write_snapshot
from engine.checkpoint.storage.addresses import open_folder
from engine.elements import KEY_GROUP, Barrier, Micros, SnapshotKind
from engine.graph.jobgraph import TaskId
from engine.graph.plan import EdgePlan, OperatorKind, OperatorPlan, Plan, StatePlan, VertexPlan
from engine.keygroups import range_of
from engine.operators.sources.source import SplitState
from engine.state.contract import FrozenState, StateDescriptor, StateKind
from engine.version import VERSION

COUNTS = StateDescriptor(
    "counts", StateKind.VALUE, {"k": pl.String()}, {"n": pl.Int64(), "at": pl.Datetime("us", "UTC")}
)
ROWS = pl.DataFrame(
    {
        KEY_GROUP: range(128),
        "k": [f"key {n}" for n in range(128)],
        "n": range(128),
        "at": range(128),
    },
    schema={KEY_GROUP: pl.UInt16, "k": pl.String, "n": pl.Int64, "at": pl.Datetime("us", "UTC")},
)

MakePlan = Callable[..., Plan]
TakeSnapshot = Callable[..., Manifest]


class Frozen(FrozenState):
    """A table as it was."""

    descriptor = COUNTS

    def __init__(self, rows: pl.DataFrame) -> None:
        self._rows = rows

    def table(self) -> pl.DataFrame:
        return self._rows


def planned(parallelism: int = 2, **changes: object) -> Plan:
    """The plan of the job; changes: max_parallelism, states, uid of the counting operator."""
    states = changes.get(
        "states",
        (StatePlan("counts", "value", {"k": "String"}, {"n": "Int64", "at": "Datetime(us, UTC)"}),),
    )
    uid = str(changes.get("uid", "count"))
    reading = OperatorPlan("read", "read", OperatorKind.SOURCE, "source")
    counting = OperatorPlan(
        uid, "count", OperatorKind.TRANSFORM, "count", states=cast("tuple[StatePlan, ...]", states)
    )
    writing = OperatorPlan("out", "out", OperatorKind.SINK, "sink")
    return Plan(
        name="counts",
        max_parallelism=cast("int", changes.get("max_parallelism", 128)),
        checkpoint_interval_ms=None,
        vertices=(
            VertexPlan("a", "read", parallelism, (reading,)),
            VertexPlan("b", "count → out", parallelism, (counting, writing)),
        ),
        edges=(EdgePlan("a", "b", "hash", 0),),
    )


def taken(folder: Path, parallelism: int = 2) -> Manifest:
    """Write a snapshot of the job at this parallelism, and return its manifest."""
    plan, at = planned(parallelism), open_folder(str(folder))
    barrier = Barrier(7, SnapshotKind.SAVEPOINT, triggered_ms=1_000, folder=str(folder))
    acks = [
        write_snapshot(
            TaskSnapshot(task, barrier, operators, Micros(1_004_000), Micros(1_006_000)), at, 3
        )
        for task, operators in _tasks(parallelism)
    ]
    manifest = _manifest(plan, acks)
    write_manifest(manifest, at)
    return manifest


def _tasks(parallelism: int) -> list[tuple[TaskId, tuple[OperatorSnapshot, ...]]]:
    whole = range_of(0, 1, 128)
    tasks = []
    for subtask in range(parallelism):
        ours = range_of(subtask, parallelism, 128)
        splits = {f"split-{subtask}": SplitState({"row": subtask}, Micros(100 + subtask))}
        counting = (
            OperatorSnapshot(
                "count", Micros(90 + subtask), ours, (Frozen(ROWS[ours.lo : ours.hi]),)
            ),
            OperatorSnapshot("out", Micros(90), ours, committables=(f"staged {subtask}",)),
        )
        reading = (OperatorSnapshot("read", Micros(100), whole, splits=splits),)
        tasks += [(TaskId("a", subtask), reading), (TaskId("b", subtask), counting)]
    return tasks


def _manifest(plan: Plan, acks: list[SubtaskSnapshot]) -> Manifest:
    entries = []
    for vertex in plan.vertices:
        for operator in vertex.operators:
            parts = [part for ack in acks for part in ack.operators if part.uid == operator.uid]
            merged = merge_parts(parts)
            entries.append(
                OperatorEntry(
                    operator.uid,
                    operator.name,
                    vertex.id,
                    vertex.parallelism,
                    128,
                    merged.watermark,
                    merged.states,
                    merged.splits,
                    merged.committables,
                )
            )
    return Manifest(
        job_id="f" * 32,
        job_name="counts",
        plan_hash=plan.hash,
        checkpoint_id=7,
        kind=SnapshotKind.SAVEPOINT,
        created_ms=2_000,
        engine_version=VERSION,
        operators=tuple(entries),
    )


@pytest.fixture
def make_plan() -> MakePlan:
    return planned


@pytest.fixture
def take_snapshot() -> TakeSnapshot:
    return taken


@pytest.fixture
def all_rows() -> pl.DataFrame:
    return ROWS
