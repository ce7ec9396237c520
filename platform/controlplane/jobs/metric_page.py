"""Metrics of a job that somebody chose: kept ones as series, the engine's own ones as they are now.

    Chosen, of `metric_choice` ─▶ Figure: points of the series store, or what the engine says now

Units    rates are rows per second, lengths of time ms, shares percent, points in time epoch ms.
Cost     at most CHOSEN figures: two reads of the series store each, the plot and the last value, or
         one request per vertex.
Missing  `missing` says why there is no value: no such operator, an engine that is away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from controlplane.backends.metrics import Fact, Spread, fact_of, metric_names, metric_values
from controlplane.jobs.metric_choice import (
    JOB,
    KEPT_MARK,
    KEPT_OF_JOB,
    KEPT_OF_VERTEX,
    Chosen,
)
from controlplane.jobs.models import Job, Run
from controlplane.jobs.plan_view import PlanView, plan_view
from controlplane.metrics.contract import Aggregate, step_for
from controlplane.metrics.store import ENGINE, series_store
from controlplane.moments import now_ms

POINTS = 300


@dataclass(frozen=True, slots=True)
class Figure:
    """A chosen figure with what is known of it."""

    key: str
    label: str
    place: str
    format: str
    help: str
    is_kept: bool
    points: list[tuple[float, float]]
    now: Spread | None
    at_ms: int | None
    """When `now` was so."""
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """A figure on offer."""

    name: str
    label: str
    help: str


@dataclass(frozen=True, slots=True)
class MetricPage:
    """All of it."""

    minutes: str
    places: tuple[tuple[str, str], ...]
    """Id and name: the job, then its vertices."""
    where: str
    kept: tuple[Option, ...]
    live: tuple[Option, ...]
    reason: str
    """Why there is nothing live to choose from; empty when there is."""
    subtasks: int
    figures: tuple[Figure, ...]

    @property
    def keys(self) -> list[str]:
        """What the address names."""
        return [one.key for one in self.figures]


def metric_page(
    job: Job, run: Run | None, chosen: Sequence[Chosen], where: str, minutes: str
) -> MetricPage:
    """The chooser and the figures."""
    plan = plan_view(run.plan) if run else PlanView()
    places = ((JOB, f"Job {job.name}"), *((node.id, node.name) for node in plan.nodes))
    where = where if where in dict(places) else JOB
    live, reason = _on_offer(run, where)
    kept = KEPT_OF_JOB if where == JOB else KEPT_OF_VERTEX
    return MetricPage(
        minutes=minutes,
        places=places,
        where=where,
        kept=tuple(Option(f"{KEPT_MARK}{name}", label, "") for name, (label, _) in kept.items()),
        live=live,
        reason=reason,
        subtasks=next((node.par for node in plan.nodes if node.id == where), 0),
        figures=figures(job, run, chosen, minutes),
    )


def figures(
    job: Job, run: Run | None, chosen: Sequence[Chosen], minutes: str
) -> tuple[Figure, ...]:
    """The chosen figures with their values."""
    names = {node.id: node.name for node in plan_view(run.plan).nodes} if run else {}
    live = _live(run, [one for one in chosen if not one.kept and _known(one, names)])
    found = []
    for one in chosen:
        if not _known(one, names):
            found.append(_blank(one, "", "the job has no such operator now"))
        elif one.kept:
            found.append(_kept_figure(job, one, names, int(minutes)))
        else:
            found.append(replace(live[one.text], place=_place(one, names)))
    return tuple(found)


def series_json(found: Sequence[Figure]) -> dict[str, Any]:
    """What the plots draw."""
    return {
        "at_ms": now_ms(),
        "figures": [
            {
                "key": one.key,
                "label": f"{one.label}, {one.place}",
                "format": one.format,
                "kept": one.is_kept,
                "points": one.points,
                "now": None if one.now is None else [one.now.low, one.now.mean, one.now.high],
                "at_ms": one.at_ms,
                "missing": one.missing,
            }
            for one in found
        ],
    }


def _known(one: Chosen, names: Mapping[str, str]) -> bool:
    return one.where == JOB or one.where in names


def _place(one: Chosen, names: Mapping[str, str]) -> str:
    place = "job" if one.where == JOB else names[one.where]
    return f"{place}, subtask {one.subtask}" if one.subtask else place


def _on_offer(run: Run | None, where: str) -> tuple[tuple[Option, ...], str]:
    if run is None or run.is_terminal:
        return (), "the job does not run"
    vertex_id = None if where == JOB else where
    answer = metric_names(run.cluster, run.engine_job_id, vertex_id)
    options = (Option(name, name, fact_of(name, vertex_id).help) for name in answer.value or ())
    return tuple(options), answer.reason


def _kept_figure(job: Job, one: Chosen, names: Mapping[str, str], minutes: int) -> Figure:
    table = KEPT_OF_JOB if one.where == JOB else KEPT_OF_VERTEX
    if one.kept not in table:
        return _blank(one, _place(one, names), "no figure of that name is kept")
    label, shape = table[one.kept]
    points = _points(job, one, minutes, step_for(minutes * 60_000, POINTS))
    # The last value itself, and its age: the last step is a mean that began a while ago.
    last = _points(job, one, minutes, None)[-1:]
    at_ms, value = last[0] if last else (None, None)
    return Figure(
        key=one.text,
        label=label,
        place=_place(replace(one, subtask=""), names),
        format=shape,
        help="Kept by the control plane, a value per second.",
        is_kept=True,
        points=points,
        now=None if value is None else Spread(value, value, value, value),
        at_ms=None if at_ms is None else int(at_ms),
        missing="" if points else "nothing was kept in this time",
    )


def _points(job: Job, one: Chosen, minutes: int, step_ms: int | None) -> list[tuple[float, float]]:
    """Means of steps, oldest first; without a step the last value alone."""
    until, span = now_ms(), minutes * 60_000
    where = {"job": job.name, "purpose": "live"}
    if one.where != JOB:
        where["vertex"] = one.where
    found = series_store().query(
        ENGINE,
        JOB if one.where == JOB else "operator",
        one.kept,
        where=where,
        start_ms=until - span,
        stop_ms=until,
        step_ms=step_ms,
        aggregate=Aggregate.MEAN,
        limit=1 if step_ms is None else 2 * POINTS,
    )
    points = sorted(point for series in found for point in series.points)
    return [
        (at, float(value))
        for at, value in points
        if not isinstance(value, str) and math.isfinite(value)
    ]


def _live(run: Run | None, chosen: Sequence[Chosen]) -> dict[str, Figure]:
    """By vertex, one request each; when one finds the engine away, the others are not asked."""
    found: dict[str, Figure] = {}
    reason = "" if run is not None and not run.is_terminal else "the job does not run"
    for where in dict.fromkeys(one.where for one in chosen):
        here = [one for one in chosen if one.where == where]
        values: Mapping[str, Spread] = {}
        at_ms = None
        if run is not None and not reason:
            asked = tuple(one.asked_as for one in here)
            answer = metric_values(run.cluster, run.engine_job_id, here[0].vertex_id, asked)
            values, at_ms = answer.value or {}, answer.at_ms
            reason = answer.reason
        for one in here:
            why = reason or "the engine knows no number of that name here"
            found[one.text] = _live_figure(one, values.get(one.asked_as), at_ms, why)
    return found


def _live_figure(one: Chosen, spread: Spread | None, at_ms: int | None, why: str) -> Figure:
    fact = fact_of(one.name, one.vertex_id)
    blank = _blank(one, "", why, fact)
    if spread is None:
        return blank
    scaled = (spread.low, spread.mean, spread.high, spread.total)
    now = Spread(*(value * fact.factor for value in scaled))
    return replace(blank, now=now, at_ms=at_ms, missing="")


def _blank(one: Chosen, place: str, missing: str, fact: Fact | None = None) -> Figure:
    shape, about = (fact.format, fact.help) if fact else ("plain", "")
    return Figure(one.text, one.name, place, shape, about, False, [], None, None, missing)
