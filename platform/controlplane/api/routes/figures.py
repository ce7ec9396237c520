"""Figures of a job along time: its history, what it writes, its batches, its metrics."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from ninja import Query, Router

from controlplane.access.lookup import job_for, replay_for
from controlplane.api.auth import ApiRequest
from controlplane.api.schema.figures import (
    HistoryOut,
    MetricNames,
    MetricsOut,
    OutputLines,
    OutputsOut,
    StatisticsOut,
)
from controlplane.jobs.history import history_of
from controlplane.jobs.metric_choice import DEFAULT, chosen_of
from controlplane.jobs.metric_page import figures, metric_page, series_json
from controlplane.jobs.models import Job, Run
from controlplane.jobs.output_page import output_page
from controlplane.jobs.output_rows import output_rows
from controlplane.jobs.queries import current_run
from controlplane.jobs.streaming_queries import SourceLine, plots, streaming_page
from controlplane.metrics.queries import output_choices, output_lines

router = Router(tags=["figures"])
Moment = Annotated[int | None, Query(ge=0, lt=10**15, description="epoch ms")]


class PlainWords:
    """Numbers of a sentence, each with its unit."""

    def length(self, ms: float) -> str:
        """A length of time."""
        return f"{ms:,.0f} ms"

    def rate(self, rows: float) -> str:
        """Rows per second."""
        return f"{rows:,.0f} rows/s"

    def times(self, value: float) -> str:
        """A factor."""
        return f"{value:.1f} times"


@router.get("jobs/{name}/history", response=HistoryOut, summary="How a job ran")
def history(
    request: ApiRequest,
    name: str,
    minutes: Annotated[int, Query(ge=1, le=10_080)] = 10,
    from_ms: Moment = None,
    to_ms: Moment = None,
) -> dict[str, Any]:
    """The last minutes, or from one time to another: series, checkpoints and events."""
    return history_of(job_for(request.auth, name), from_ms, to_ms, minutes)


@router.get("jobs/{name}/output", response=OutputLines, summary="What a job writes, as lines")
def output(
    request: ApiRequest,
    name: str,
    choice: Annotated[str, Query(max_length=300, description="one of `choices`")] = "",
    replay: Annotated[
        int | None, Query(description="id of a replay, to see its output too")
    ] = None,
) -> dict[str, Any]:
    """The latest points of one of the choices; without one, of the most telling."""
    job = job_for(request.auth, name)
    beside = replay_for(request.auth, replay).name if replay is not None else ""
    choices = output_choices(job)
    return {"series": output_lines(choices, choice, beside), "choices": choices}


@router.get("jobs/{name}/outputs", response=OutputsOut, summary="Where a job writes")
def outputs(request: ApiRequest, name: str) -> dict[str, Any]:
    """Each output with its last rows, and what replays write beside it."""
    job, run = _with_run(request, name)
    found = output_page(job, run)
    last = {one.sink.target: one.rows for one in found.outputs}
    told = []
    for row in output_rows(found):
        rows = last.get(row["target"])
        told.append(
            row | {"columns": rows.columns if rows else (), "rows": rows.rows if rows else ()}
        )
    return {"outputs": told, "reason": found.reason}


@router.get("jobs/{name}/statistics", response=StatisticsOut, summary="Streaming statistics")
def statistics(
    request: ApiRequest,
    name: str,
    minutes: Literal["5", "15", "60"] = "5",
    source: Annotated[str, Query(max_length=200, description="uid; none: all together")] = "",
) -> dict[str, Any]:
    """What the batches of its sources came to, and whether it keeps up."""
    job, run = _with_run(request, name)
    found = streaming_page(job, run, minutes, source, PlainWords())
    return plots(found, job) | {"sources": list(map(_source, found.sources))}


@router.get("jobs/{name}/metrics", response=MetricsOut, summary="Metrics along time")
def metrics(
    request: ApiRequest,
    name: str,
    m: Annotated[list[str], Query(description="place|name|subtask: job|kept.in|")] = list(DEFAULT),  # noqa: B006 - a parameter of the query
    minutes: Literal["5", "60", "360", "1440", "10080"] = "60",
) -> dict[str, Any]:
    """At most twelve: kept ones as series, the engine's own ones as they are now."""
    job, run = _with_run(request, name)
    return series_json(figures(job, run, chosen_of(m), minutes))


@router.get("jobs/{name}/metrics/names", response=MetricNames, summary="Which metrics there are")
def metric_names(
    request: ApiRequest,
    name: str,
    where: Annotated[str, Query(max_length=200, description="`job`, or a vertex")] = "job",
) -> dict[str, Any]:
    """What can be asked for, of the job or of one of its vertices."""
    job, run = _with_run(request, name)
    found = metric_page(job, run, (), where, "60")
    return asdict(found) | {"places": dict(found.places)}


def _with_run(request: ApiRequest, name: str) -> tuple[Job, Run | None]:
    job = job_for(request.auth, name)
    return job, current_run(job)


def _source(line: SourceLine) -> dict[str, Any]:
    one, verdict = line.source, line.verdict
    return {
        "uid": one.uid,
        "name": one.name,
        "limit": one.limit,
        "now": line.now,
        "verdict": f"{verdict.head} {verdict.rest}".strip(),
    }
