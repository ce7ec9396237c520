"""What a subtask needs to know of its place in the job.

    JobGraph --wiring.py--> TaskSpec, one per subtask --> Task, in a worker or the simulation

Shapes   channels are numbered from 0, inputs and outputs apart, for each subtask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.graph.jobgraph import JobEdge, JobVertex, TaskId
from engine.keygroups import KeyGroupRange, range_of
from engine.state.backends import StateSettings
from engine.state.contract import StateBackend

BackendMaker = Callable[[KeyGroupRange], StateBackend]


@dataclass(frozen=True, slots=True)
class OutputEdge:
    """One edge that leaves the vertex, and the output channels of this subtask on it."""

    edge: JobEdge
    channels: tuple[int, ...]
    """One per subtask of the target, in order; a single one on a forward edge."""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """One subtask of a vertex, with its channels."""

    job_id: str
    attempt_id: str
    vertex: JobVertex
    subtask: int
    max_parallelism: int
    inputs: tuple[int, ...]
    """Port of the head operator, per input channel. Empty for a source."""
    outputs: tuple[OutputEdge, ...]
    keyed: bool = False
    """Whether rows arrive partitioned by key, so that this subtask owns a range of key groups."""
    state: StateSettings = field(default_factory=StateSettings)
    watermark_group: str | None = None
    """The group of a source that waits for other subtasks, and tells how far it is."""

    @property
    def id(self) -> TaskId:
        """Which subtask this is."""
        return TaskId(self.vertex.id, self.subtask)

    @property
    def key_groups(self) -> KeyGroupRange:
        """The key groups of this subtask; all of them when it is not keyed."""
        if self.keyed:
            return range_of(self.subtask, self.vertex.parallelism, self.max_parallelism)
        return KeyGroupRange(0, self.max_parallelism)
