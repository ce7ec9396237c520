"""A job's plan as `Run.plan` keeps it, and as pages draw it: Flink's own shape."""

from __future__ import annotations

from typing import Any

from engine.rest.answers.jobs import JobPlan


def plan_json(plan: JobPlan) -> dict[str, Any]:
    """The plan in Flink's own shape, as `Run.plan` keeps it."""
    return {
        "name": plan.name,
        "nodes": [
            {
                "id": node.id,
                "parallelism": node.parallelism,
                "description": " -> ".join(node.operators),
                "operators": list(node.operators),
                "inputs": [
                    {"id": edge.source, "num": edge.port, "ship_strategy": edge.ship_strategy}
                    for edge in node.inputs
                ],
            }
            for node in plan.nodes
        ],
    }
