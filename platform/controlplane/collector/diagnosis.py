"""What holds a job back: the busy operator right behind those that wait for it.

    orders ──▶ enrich ──▶ sink     orders waits most of its time, enrich works and waits for none:
    waits      busy                enrich holds the job back

A look may be unlucky, so it is said after five that agree, and until five have not. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.backends.sightings import JobSighting, VertexSighting
from controlplane.live.topics import Payload

WAITS, BUSY, SKEWED = 50.0, 60.0, 2.0
"""Percent of its time that one waits, or works; times the mean that a subtask takes."""
LOOKS = 5
NAMED = 2
"""Waiting operators that are named."""


@dataclass(slots=True)
class HeldBack:
    """The opinion on one run, from look to look."""

    _said: str = ""
    """Vertex that is said to hold the job back; empty is none."""
    _thought: str = ""
    _looks: int = 0

    def tell(self, seen: JobSighting) -> Payload | None:
        """Add a look; which vertex holds the job back, and a sentence."""
        found = culprit(seen)
        thought = found.id if found else ""
        self._looks = self._looks + 1 if thought == self._thought else 1
        self._thought = thought
        if self._looks >= LOOKS:
            self._said = thought
        said = next((vertex for vertex in seen.vertices if vertex.id == self._said), None)
        return None if said is None else {"vertex": said.id, "text": sentence(seen, said)}


def culprit(seen: JobSighting) -> VertexSighting | None:
    """The busiest of those that others wait for; None when nobody waits."""
    vertices = {vertex.id: vertex for vertex in seen.vertices}
    candidates = [
        vertex
        for vertex in seen.vertices
        if (vertex.busy or 0.0) >= BUSY and not _waits(vertex) and _waiting(seen, vertex, vertices)
    ]
    return max(candidates, key=lambda vertex: vertex.busy or 0.0, default=None)


def sentence(seen: JobSighting, held_by: VertexSighting) -> str:
    """Who waits, and whether one subtask has too much to do; without figures that change."""
    vertices = {vertex.id: vertex for vertex in seen.vertices}
    waiting = _waiting(seen, held_by, vertices)
    names = " and ".join(seen.name_of(one) for one in waiting[:NAMED]) or "the step before it"
    verb = "wait" if len(waiting) > 1 else "waits"
    text = f"held back by {seen.name_of(held_by.id)}, for which {names} {verb}"
    if (held_by.skew or 0.0) >= SKEWED:
        text += f"; one of its subtasks takes about {round(held_by.skew or 0)} times the mean"
    return text


def _waits(vertex: VertexSighting) -> bool:
    return (vertex.backpressured or 0.0) > WAITS


def _waiting(
    seen: JobSighting, vertex: VertexSighting, vertices: Mapping[str, VertexSighting]
) -> list[str]:
    inputs = seen.node(vertex.id).get("inputs") or ()
    before = [str(one["id"]) for one in inputs]
    return [one for one in before if one in vertices and _waits(vertices[one])]
