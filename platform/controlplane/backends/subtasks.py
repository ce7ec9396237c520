"""The subtasks of one vertex, asked of the engine when somebody looks at it.

Cost     a look is shared by all who ask within a second, and is three requests, one more per 150
         subtasks, and one per completed checkpoint for the sizes of the state.
Units    rates are rows per second, busy, waiting and idle percent, times epoch ms, sizes bytes.
Missing  None: the engine gave no such figure. `away` says why there is nothing at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from controlplane.backends.asked import asked, client_of
from controlplane.backends.models import Cluster
from controlplane.backends.tokens import Address, address_of
from engine.rest.answers.jobs import Backpressure, SubtaskSummary
from engine.rest.client import EngineClient, NotFound

AT_ONCE = 150
"""Subtasks whose rates are asked for in one request: their names stand in its address."""
REMEMBERED = 256
"""Vertices whose sizes in their last checkpoint are kept."""
END_MS = 2**63 // 2_000
"""Flink's watermarks before the first row and after the last one lie beyond this."""


@dataclass(frozen=True, slots=True)
class SubtaskRow:
    """One subtask."""

    index: int
    state: str
    attempt: int
    host: str
    started_ms: int | None
    rows_in: int
    """Since its attempt began."""
    rows_out: int
    in_rate: float | None
    out_rate: float | None
    busy: int | None
    waiting: int | None
    idle: int | None
    watermark_ms: float | None
    """Nothing earlier comes any more; None for a source, and before the first one."""
    state_bytes: int | None
    """In the last completed checkpoint."""


@dataclass(frozen=True, slots=True)
class Subtasks:
    """All subtasks of a vertex."""

    rows: tuple[SubtaskRow, ...] = ()
    at_ms: int = 0
    away: str = ""
    """Why the engine says nothing."""


@dataclass(frozen=True, slots=True)
class Vertex:
    """Which one: the address of a look."""

    engine: Address
    job_id: str
    vertex_id: str
    checkpoint: int | None
    """The last completed one."""


def look_at(cluster: Cluster, job_id: str, vertex_id: str, checkpoint: int | None) -> Subtasks:
    """The subtasks of a vertex, as they were at most a second ago."""
    vertex = Vertex(address_of(cluster), job_id, vertex_id, checkpoint)
    found = asked(cluster, vertex, lambda engine: _look(engine, vertex))
    return Subtasks(found.value or (), found.at_ms, found.reason)


def _look(engine: EngineClient, vertex: Vertex) -> tuple[SubtaskRow, ...]:
    found = engine.subtasks(vertex.job_id, vertex.vertex_id)
    load = {one.subtask: one for one in engine.backpressure(vertex.job_id, vertex.vertex_id)}
    marks = engine.watermarks(vertex.job_id, vertex.vertex_id)
    rates = _rates(engine, vertex, [one.index for one in found])
    sizes = _sizes(vertex)
    return tuple(
        _row(one, load.get(one.index), marks.get(one.index), rates, sizes) for one in found
    )


def _rates(engine: EngineClient, vertex: Vertex, indexes: Sequence[int]) -> dict[str, str]:
    """`<subtask>.<metric>` to its value."""
    found: dict[str, str] = {}
    for start in range(0, len(indexes), AT_ONCE):
        some = indexes[start : start + AT_ONCE]
        names = [f"{index}.numRecords{way}PerSecond" for index in some for way in ("In", "Out")]
        found |= engine.vertex_metrics(vertex.job_id, vertex.vertex_id, names)
    return found


@lru_cache(maxsize=REMEMBERED)
def _sizes(vertex: Vertex) -> Mapping[int, int]:
    """State of each subtask; a checkpoint that is complete does not change any more."""
    if vertex.checkpoint is None:
        return {}
    try:
        parts = client_of(vertex.engine).checkpoint_subtasks(
            vertex.job_id, vertex.checkpoint, vertex.vertex_id
        )
    except NotFound:  # so long ago that the engine has forgotten it
        return {}
    return {part.index: part.state_bytes for part in parts if part.acknowledged}


def _row(
    one: SubtaskSummary,
    load: Backpressure | None,
    mark: int | None,
    rates: dict[str, str],
    sizes: Mapping[int, int],
) -> SubtaskRow:
    return SubtaskRow(
        index=one.index,
        state=one.status.value,
        attempt=one.attempt,
        host=one.endpoint,
        started_ms=one.start_ms if one.start_ms > 0 else None,
        rows_in=one.counters.read_records,
        rows_out=one.counters.write_records,
        in_rate=_number(rates.get(f"{one.index}.numRecordsInPerSecond")),
        out_rate=_number(rates.get(f"{one.index}.numRecordsOutPerSecond")),
        busy=_percent(load.busy) if load else None,
        waiting=_percent(load.backpressured) if load else None,
        idle=_percent(load.idle) if load else None,
        # Flink's is inclusive: no later row has exactly that time or less.
        watermark_ms=mark + 1 if mark is not None and abs(mark) < END_MS else None,
        state_bytes=sizes.get(one.index),
    )


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else round(float(text), 1)
    except ValueError:
        return None


def _percent(share: float) -> int:
    return round(100 * share)
