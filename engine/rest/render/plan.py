"""A plan as Flink draws it, and as the engine knows it.

Flink's form has one node per vertex and no edges of its own: a node lists its inputs.
"""

from __future__ import annotations

import json
from typing import Any

from engine.graph.plan import EdgePlan, Plan, VertexPlan


def flink_plan(job_id: str, plan: Plan) -> dict[str, object]:
    """The body of `/jobs/:id/plan`, without its wrapper."""
    return {
        "jid": job_id,
        "name": plan.name,
        "type": "STREAMING",
        "nodes": [_node(vertex, plan) for vertex in plan.vertices],
    }


def engine_plan(plan: Plan) -> dict[str, Any]:
    """The plan in the engine's own form: operators with their states, edges, warnings."""
    return dict(json.loads(plan.to_json()))


def _node(vertex: VertexPlan, plan: Plan) -> dict[str, object]:
    node: dict[str, object] = {
        "id": vertex.id,
        "operator": "",
        "parallelism": vertex.parallelism,
        "operator_strategy": "",
        "description": _description(vertex),
        "optimizer_properties": {},
    }
    inputs = [_input(edge) for edge in plan.edges if edge.target == vertex.id]
    return node | {"inputs": inputs} if inputs else node


def _input(edge: EdgePlan) -> dict[str, object]:
    return {
        "id": edge.source,
        "num": edge.port,
        "exchange": "pipelined_bounded",
        "ship_strategy": edge.partitioning.upper(),
    }


def _description(vertex: VertexPlan) -> str:
    head, *chained = (operator.name for operator in vertex.operators)
    return "".join([f"{head}<br/>", *(f"+- {name}<br/>" for name in chained)])
