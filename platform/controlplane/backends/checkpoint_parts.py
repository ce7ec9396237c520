"""What each operator and subtask put into one checkpoint, asked when somebody looks.

Cost     one request, and one per operator for its subtasks (the 40 slowest, if there are more); a
         checkpoint that has ended is asked for once.
Units    durations ms from the trigger, sizes bytes. None: the engine did not say.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from controlplane.backends.asked import client_of
from controlplane.backends.models import Cluster
from controlplane.backends.registry import FAKE
from controlplane.backends.tokens import address_of
from engine.rest.answers.checkpoints import CheckpointConfig, PartSummary, SubtaskPart
from engine.rest.client import ClientError, EngineClient, NotFound

__all__ = ["CheckpointParts", "OperatorPart", "SubtaskPart", "config_of", "parts_of"]

WITH_SUBTASKS = 40
REMEMBERED = 64
FORGOTTEN = (
    "the engine keeps the details of its newest checkpoints only: of this one the totals are left"
)
NOT_ASKED = "this engine has no details of checkpoints"


@dataclass(frozen=True, slots=True)
class OperatorPart:
    """The part of one operator."""

    vertex: str
    subtasks: int
    acknowledged: int
    duration_ms: int | None
    written_bytes: int
    state_bytes: int
    parts: tuple[SubtaskPart, ...] = ()
    """Those that have acknowledged; empty when they were not asked for."""
    missing: tuple[int, ...] = ()
    """Indexes of those that have not."""

    def longest(self, phase: str) -> int | None:
        """The longest of one phase over the subtasks, such as `alignment_ms`."""
        return max((getattr(part, phase) for part in self.parts), default=None)


@dataclass(frozen=True, slots=True)
class CheckpointParts:
    """The parts of all operators."""

    operators: tuple[OperatorPart, ...] = ()
    why_not: str = ""
    """Why there is nothing to show."""


_ended: OrderedDict[tuple[str, str, int], CheckpointParts] = OrderedDict()


def parts_of(cluster: Cluster, job_id: str, checkpoint_id: int, *, ended: bool) -> CheckpointParts:
    """The parts of a checkpoint; `ended` says that they do not change any more."""
    if cluster.url.startswith(FAKE):
        return CheckpointParts(why_not=NOT_ASKED)
    key = cluster.url, job_id, checkpoint_id
    if key in _ended:
        return _ended[key]
    try:
        found = _ask(client_of(address_of(cluster)), job_id, checkpoint_id)
    except NotFound:
        return CheckpointParts(why_not=FORGOTTEN)
    except ClientError as error:
        return CheckpointParts(why_not=str(error))
    if ended:
        _ended[key] = found
        while len(_ended) > REMEMBERED:
            _ended.popitem(last=False)
    return found


def config_of(cluster: Cluster, job_id: str) -> CheckpointConfig | None:
    """How the job takes checkpoints, as its engine says; None when it does not."""
    if cluster.url.startswith(FAKE):
        return None
    try:
        return client_of(address_of(cluster)).checkpoint_config(job_id)
    except ClientError:
        return None


def _ask(engine: EngineClient, job_id: str, checkpoint_id: int) -> CheckpointParts:
    found = engine.checkpoint(job_id, checkpoint_id)
    slowest = sorted(found.vertices, key=lambda vertex: -found.vertices[vertex].duration_ms)
    wanted = set(slowest[:WITH_SUBTASKS])
    return CheckpointParts(
        tuple(
            _operator(
                vertex,
                part,
                engine.checkpoint_subtasks(job_id, checkpoint_id, vertex)
                if vertex in wanted
                else (),
            )
            for vertex, part in found.vertices.items()
        )
    )


def _operator(vertex: str, part: PartSummary, subtasks: Sequence[SubtaskPart]) -> OperatorPart:
    return OperatorPart(
        vertex=vertex,
        subtasks=part.subtasks,
        acknowledged=part.acknowledged,
        duration_ms=part.duration_ms if part.duration_ms >= 0 else None,
        written_bytes=part.checkpointed_bytes,
        state_bytes=part.state_bytes,
        parts=tuple(one for one in subtasks if one.acknowledged),
        missing=tuple(one.index for one in subtasks if not one.acknowledged),
    )
