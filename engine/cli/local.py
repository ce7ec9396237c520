"""Commands that read job files here: the graph of one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from engine.graph.plan import OperatorPlan, Plan, plan_of
from engine.stream.capture import capture
from engine.stream.recording import PARALLELISM


def plan(options: argparse.Namespace) -> None:
    """Run a job file up to its `execute()` and print the graph."""
    settings = dict(options.settings)
    if options.parallelism is not None:
        settings[PARALLELISM] = str(options.parallelism)
    planned = plan_of(capture(Path(options.file), options.args, settings))
    print(planned.to_json() if options.json else "\n".join(_drawn(planned)))


def _drawn(planned: Plan) -> Iterator[str]:
    yield f"job {planned.name}, max parallelism {planned.max_parallelism}"
    names = {vertex.id: vertex.name for vertex in planned.vertices}
    for vertex in planned.vertices:
        yield ""
        yield f"{vertex.name}  (x {vertex.parallelism})"
        for edge in planned.edges:
            if edge.target == vertex.id:
                keys = f"({', '.join(edge.keys)})" if edge.keys else ""
                yield f"  takes {edge.partitioning}{keys} from {names[edge.source]}"
        for operator in vertex.operators:
            yield f"  {operator.kind:9} {operator.uid}{_states(operator)}"
    for warning in planned.warnings:
        yield f"warning: {warning}"


def _states(operator: OperatorPlan) -> str:
    if not operator.states:
        return ""
    return "  keeps " + ", ".join(f"{state.name} ({state.kind})" for state in operator.states)
