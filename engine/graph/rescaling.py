"""Another parallelism for the vertices of a job that was built already.

    graph, plan ──{uid of the head: parallelism}──▶ the same chains and edges, with other numbers

Nothing is built again: no job file runs, so its constants stay what they were, and state is found
by uid and dealt out by key group as in any restore.

Order    rows that pass forward stay in their subtask, so both ends need the same parallelism.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from engine.errors import ConfigError
from engine.graph.jobgraph import JobGraph, Partitioning
from engine.graph.plan import Plan

Parallelism = Mapping[str, int]
"""By uid of the vertex's head."""


def parallelism_of(plan: Plan) -> Parallelism:
    """The present one of every vertex."""
    return {vertex.operators[0].uid: vertex.parallelism for vertex in plan.vertices}


def of_all(plan: Plan, parallelism: int) -> Parallelism:
    """One for the whole job: what most vertices have changes, what the author chose apart stays."""
    present = parallelism_of(plan)
    counts = Counter(present.values())
    usual = max(counts, key=lambda value: (counts[value], value))
    return {uid: parallelism if was == usual else was for uid, was in present.items()}


def rescaled_plan(plan: Plan, wanted: Parallelism) -> Plan:
    """The plan at another parallelism. Raises ConfigError when the job cannot run so."""
    unknown = sorted(set(wanted) - set(parallelism_of(plan)))
    if unknown:
        known = ", ".join(parallelism_of(plan))
        msg = f"{unknown[0]!r} heads no vertex of the job: it has {known}; name one of them"
        raise ConfigError(msg)
    vertices = tuple(
        replace(vertex, parallelism=wanted.get(vertex.operators[0].uid, vertex.parallelism))
        for vertex in plan.vertices
    )
    changed = replace(plan, vertices=vertices)
    _check(changed)
    return changed


def rescaled_graph(graph: JobGraph, wanted: Parallelism) -> JobGraph:
    """The graph at another parallelism, one that its plan allows."""
    vertices = tuple(
        replace(vertex, parallelism=wanted.get(vertex.operators[0].uid, vertex.parallelism))
        for vertex in graph.vertices
    )
    return replace(graph, vertices=vertices)


def _check(plan: Plan) -> None:
    for vertex in plan.vertices:
        if not 1 <= vertex.parallelism <= plan.max_parallelism:
            msg = (
                f"parallelism of {vertex.name!r} is out of range: got {vertex.parallelism}; "
                f"pass 1 to {plan.max_parallelism}, the job's max_parallelism"
            )
            raise ConfigError(msg)
    vertices = {vertex.id: vertex for vertex in plan.vertices}
    for edge in plan.edges:
        source, target = vertices[edge.source], vertices[edge.target]
        if edge.partitioning == Partitioning.FORWARD and source.parallelism != target.parallelism:
            msg = (
                f"{target.name!r} takes rows forward from {source.name!r}: got parallelism "
                f"{target.parallelism} and {source.parallelism}; make them equal"
            )
            raise ConfigError(msg)
