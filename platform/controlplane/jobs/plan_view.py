"""The picture of a plan: what the engine's plan JSON means as nodes and edges.

    {"nodes": [{"id", "description", "parallelism", "inputs": [{"id", "ship_strategy"}]}]}

Flink sends a `description` with HTML entities and line breaks for the whole chain; the first part
is the name that people know.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_BREAKS = re.compile(r"<br\s*/?>", re.IGNORECASE)
_ARROWS = re.compile(r"\s*->\s*")
ICONS = {"source": "src", "sink": "sink", "window": "win", "join": "join", "process": "proc"}
_PREFIX = re.compile(r"^(Source|Sink):\s*")
_WORDS = (("window", "window"), ("join", "join"), ("co-process", "join"))


@dataclass(frozen=True, slots=True)
class PlanNode:
    """One vertex."""

    id: str
    name: str
    kind: str
    """source, sink, window, join or process: picks the icon."""
    par: int
    chain: tuple[str, ...]
    """Names of its operators."""

    @property
    def icon(self) -> str:
        """Icon of its kind."""
        return ICONS[self.kind]


@dataclass(frozen=True, slots=True)
class PlanEdge:
    """Rows go from `source` to `target`, shared out by `ship`."""

    source: str
    target: str
    ship: str


@dataclass(frozen=True, slots=True)
class PlanView:
    """A whole plan."""

    nodes: tuple[PlanNode, ...] = ()
    edges: tuple[PlanEdge, ...] = ()


def plan_view(stored: Mapping[str, Any]) -> PlanView:
    """The plan as `/jobs/:id/plan` gave it, with or without its envelope."""
    plan = stored.get("plan", stored)
    raw = [node for node in plan.get("nodes", ()) if "id" in node]
    feeding = {str(source["id"]) for node in raw for source in node.get("inputs") or ()}
    nodes = tuple(_node(node, feeds=str(node["id"]) in feeding) for node in raw)
    edges = tuple(
        PlanEdge(str(source["id"]), str(node["id"]), _ship(source))
        for node in raw
        for source in node.get("inputs") or ()
    )
    return PlanView(nodes, edges)


def _node(node: Mapping[str, Any], *, feeds: bool) -> PlanNode:
    chain = chain_names(str(node.get("description") or node.get("operator") or node["id"]))
    kind = "source" if not node.get("inputs") else "process" if feeds else "sink"
    if kind == "process":
        text = " ".join(chain).lower()
        kind = next((kind for word, kind in _WORDS if word in text), "process")
    return PlanNode(
        str(node["id"]), " → ".join(chain), kind, int(node.get("parallelism") or 1), chain
    )


def chain_names(description: str) -> tuple[str, ...]:
    """Names of the operators of a chain: one a line, or joined by arrows."""
    plain = html.unescape(html.unescape(description)).replace("→", "->")
    parts = (part for line in _BREAKS.split(plain) for part in _ARROWS.split(line))
    names = (_PREFIX.sub("", part.strip(" :+-")) for part in parts)
    return tuple(name for name in names if name) or (description,)


def _ship(source: Mapping[str, Any]) -> str:
    return re.sub(r"[^a-z]", "", str(source.get("ship_strategy") or "forward").lower())
