"""Figures of a job: its graph, its series, what it writes, and what happened to it.

Units    as their names say: `_ms` is epoch ms or ms, rates are rows per second, shares percent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ninja import Field, Schema

Points = list[tuple[float, float]]
Rows = Sequence[Sequence[Any]]


class ChangeOut(Schema):
    """One thing that happened to a job."""

    id: str
    at_ms: int
    job: str
    title: str
    text: str
    page: str = Field(description="which page of the job says more")


class BarOut(Schema):
    """One checkpoint, or the longest of a few that ran one after the other."""

    run: int
    checkpoint: int
    status: str
    trigger_ms: int
    dur_ms: int | None
    failure: str
    of: int = Field(description="how many it stands for")


class HistoryOut(Schema):
    """How a job ran, and what happened; points are (epoch ms, value)."""

    from_ms: int
    to_ms: int
    rate: Points
    delay: Points
    out: Points
    busy: Points
    waiting: Points
    checkpoints: list[BarOut]
    events: list[ChangeOut]


class ChoiceOut(Schema):
    """Something of a job's output that can be told as lines."""

    value: str
    label: str


class LineOut(Schema):
    """One line; points are (epoch ms, value)."""

    name: str
    points: Points


class OutputLines(Schema):
    """What a job writes, as lines."""

    series: list[LineOut]
    choices: list[ChoiceOut]


class OutputOut(Schema):
    """One place that a job writes to, or a replay beside it."""

    output: str
    kind: str
    target: str
    replay: str | None = Field(None, description="whose shadow output it is")
    files: int | None
    size_bytes: int | None
    series: int | None
    newest_written_ms: float | None
    newest_event_ms: float | None
    reason: str = Field(description="why little or nothing is known of it")
    columns: Rows = Field(description="names and types of the last rows")
    rows: Rows = Field(description="the last ones, as text, newest last")


class OutputsOut(Schema):
    """All of them."""

    outputs: list[OutputOut]
    reason: str = Field(description="why the engine told nothing of the sinks")


class NodeOut(Schema):
    """A vertex of the graph, with its latest figures."""

    id: str
    name: str
    kind: str
    parallelism: int
    chain: Sequence[str] = Field(description="names of its operators")
    figures: dict[str, Any]


class EdgeOut(Schema):
    """Where rows go, and how they are shared out."""

    source: str
    target: str
    ship: str


class GraphOut(Schema):
    """The graph of the job's newest run; empty when it was never started."""

    nodes: list[NodeOut]
    edges: list[EdgeOut]


class SubtaskOut(Schema):
    """One subtask of an operator."""

    index: int
    host: str
    state: str
    rate: float | None
    rows_in: int | None
    rows_out: int | None
    busy: float | None
    waiting: float | None
    idle: float | None
    wm_ms: float | None = Field(description="its watermark")
    bytes: int | None = Field(description="size of its state")


class FailureOut(Schema):
    """One failure, and what followed."""

    at: datetime
    error: str
    sentence: str
    domain: str
    operator: str
    task: str
    task_manager: str
    run: int
    version: int
    replay: str
    restarted_at: datetime | None
    restored_checkpoint: int | None
    restored_path: str
    verdict: str
    echoes: int
    cause: str = Field(description="the same for failures that differ in values only")
    trace: str


class SourceOut(Schema):
    """One source, with its figures over the last third of the time."""

    uid: str
    name: str
    limit: float | None = Field(description="rows per second that it may read at most")
    now: Mapping[str, float | None]
    verdict: str = Field(description="whether it keeps up, in one sentence")


class StatisticsOut(Schema):
    """What the batches of a job's sources came to, by steps."""

    reason: str = Field(description="why there is nothing; empty when there is")
    at_ms: int
    step_s: int | None = None
    time_ms: list[int]
    series: Mapping[str, Sequence[float | None]]
    delay: Points = Field(description="watermark delay of the job, (epoch ms, ms)")
    sources: list[SourceOut]


class FigureOut(Schema):
    """A metric along time, or as it is now: (lowest, mean, highest) over subtasks."""

    key: str = Field(description="as it is asked for")
    label: str
    format: str = Field(description="rate, count, bytes, dur (ms), percent, time or plain")
    kept: bool
    points: Points
    now: tuple[float, float, float] | None
    at_ms: int | None
    missing: str = Field(description="why there is no value")


class MetricsOut(Schema):
    """The metrics that were asked for."""

    at_ms: int
    figures: list[FigureOut]


class MetricName(Schema):
    """A metric on offer."""

    name: str
    label: str
    help: str


class MetricNames(Schema):
    """What can be asked of a job, or of one of its vertices."""

    where: str
    places: dict[str, str] = Field(description="`job`, then the vertices: id to name")
    kept: list[MetricName]
    live: list[MetricName]
    reason: str = Field(description="why nothing live is on offer")
