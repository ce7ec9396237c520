"""The job graph: vertices of chained operators, and the edges between them.

    Vertex "flights → daily.partial"  ──hash(carrier, origin)──▶  Vertex "daily → files, points"
      operators in topological order; the first is the head,         parallelism subtasks each
      others are fed inside the chain, without a channel

It is made once, when a job is submitted, and pickled: constants of the job file (such as the time
it was submitted) are the same in every attempt. What the job manager needs, and people see, is the
plan (`plan.py`), which is plain JSON: the job manager never unpickles a graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from engine.elements import Micros
from engine.operators.contract import MAIN, Operator
from engine.operators.sink import SinkOperator
from engine.operators.sources.source import SourceOperator
from engine.state.backends import StateSettings

AnyOperator = Operator | SourceOperator | SinkOperator


class Partitioning(StrEnum):
    """Which subtask of the target gets a row."""

    FORWARD = "forward"
    HASH = "hash"
    REBALANCE = "rebalance"
    """Each batch to the next subtask in turn."""
    RESCALE = "rescale"
    """As rebalance, among the few subtasks that are the source's share."""
    BROADCAST = "broadcast"


@dataclass(frozen=True, slots=True)
class Feed:
    """A chained operator takes what an earlier one of the same vertex emits under `tag`."""

    operator: int
    """Index of the earlier operator in the vertex."""
    port: int = 0
    tag: str = MAIN


@dataclass(frozen=True, slots=True)
class ChainedOperator:
    """One operator in a vertex. The head has no feeds."""

    uid: str
    name: str
    operator: AnyOperator
    feeds: tuple[Feed, ...] = ()


@dataclass(frozen=True, slots=True)
class JobVertex:
    """A chain of operators that runs as `parallelism` subtasks."""

    id: str
    """32 hex digits, derived from the uid of the head: stable across versions of a job."""
    name: str
    parallelism: int
    operators: tuple[ChainedOperator, ...]
    watermark_group: str | None = None
    """Sources that wait for each other have the same one; None when it waits for nobody."""


@dataclass(frozen=True, slots=True)
class JobEdge:
    """What an operator of the source emits under `tag`, led to a port of the target's head."""

    source: str
    operator: int
    target: str
    partitioning: Partitioning
    port: int = 0
    tag: str = MAIN
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class TaskId:
    """One subtask of a vertex."""

    vertex: str
    subtask: int

    def __str__(self) -> str:
        return f"{self.vertex[:8]}/{self.subtask}"


@dataclass(frozen=True, slots=True)
class JobGraph:
    """A whole job, ready to be deployed."""

    name: str
    max_parallelism: int
    vertices: tuple[JobVertex, ...]
    """In topological order."""
    edges: tuple[JobEdge, ...]
    checkpoint_interval: Micros | None = None
    """How often the engine takes a checkpoint; None: only when asked."""
    warnings: tuple[str, ...] = ()
    """What the author should know, though the job can run."""
    state: StateSettings = field(default_factory=StateSettings)
    """Which backend keeps its state."""
