"""Where a job writes, as its plan says: each sink, its target, and what tells its rows apart.

    plan ── sink ◀── … ◀── window ─▶ Target(kind, place, terms)

Needs    the plan of Headwater's own engine: Flink's does not say what sinks write to.
Order    as in the plan.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from controlplane.replay.comparison.compare import WINDOW_END, Terms

FILES, POINTS = "parquet", "influx"
READABLE = (FILES, POINTS)
WINDOW_START = "window_start"


@dataclass(frozen=True, slots=True)
class Target:
    """One sink."""

    uid: str
    name: str
    kind: str
    place: str
    """Folder or measurement."""
    terms: Terms | None
    """How its rows are compared; None when they cannot be."""
    bucket: str = ""
    """Of points."""
    why_not: str = ""
    """Why they cannot be compared, in one sentence."""
    window: Mapping[str, str] = field(default_factory=dict)
    """What the operator says of itself that made the rows; empty when that was no window."""
    time: str = ""
    """Column of the time of points."""


def targets_of(plan: Mapping[str, Any]) -> tuple[Target, ...]:
    """Every sink of an engine's plan."""
    return tuple(
        _target(plan, vertex, number)
        for vertex in plan.get("vertices", ())
        for number, operator in enumerate(vertex["operators"])
        if operator["kind"] == "sink"
    )


def _target(plan: Mapping[str, Any], vertex: Mapping[str, Any], number: int) -> Target:
    operator = vertex["operators"][number]
    facts = operator["description"]
    kind, place = facts.get("kind", ""), facts.get("target", "")
    window = next((one for one in _before(plan, vertex, number) if "keys" in one), None)
    why_not = _why_not(kind, window)
    terms = None if why_not or window is None else _terms(kind, facts, window)
    return Target(
        uid=operator["uid"],
        name=operator["name"],
        kind=kind,
        place=place,
        terms=terms,
        bucket=facts.get("bucket", ""),
        why_not=why_not,
        window=window if window is not None and "window" in window else {},
        time=facts.get("time", ""),
    )


def _why_not(kind: str, window: Mapping[str, str] | None) -> str:
    if kind == "discard":
        return "nothing is written: the replay is a dry run"
    if kind not in READABLE:
        return f"what a sink of kind {kind or 'unknown'} has written cannot be read back"
    if window is None or "window" not in window:
        return "its rows are no results of windows, so none of them is known to be complete"
    return ""


def _terms(kind: str, facts: Mapping[str, str], window: Mapping[str, str]) -> Terms:
    if kind == POINTS:
        return Terms(_listed(facts["tags"]), "time")
    return Terms((*_listed(window["keys"]), WINDOW_START), WINDOW_END)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(", ")))


def _before(
    plan: Mapping[str, Any], vertex: Mapping[str, Any], number: int
) -> Iterator[Mapping[str, str]]:
    """What the operators before one say of themselves, from the nearest back to its source."""
    for operator in reversed(vertex["operators"][:number]):
        yield operator["description"]
    vertices = {one["id"]: one for one in plan["vertices"]}
    for edge in plan["edges"]:
        if edge["target"] == vertex["id"]:
            yield from _before(plan, vertices[edge["source"]], edge["operator"] + 1)
