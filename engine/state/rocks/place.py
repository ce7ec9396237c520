"""Where one state on disk lives, and what it may use."""

from __future__ import annotations

from dataclasses import dataclass

from engine.state.budget import Budget
from engine.state.changes import LayerPolicy
from engine.state.rocks.memory import ColumnMemory
from engine.state.rocks.store import Store


@dataclass(frozen=True, slots=True)
class Place:
    """What a state gets from its backend."""

    prefix: bytes
    """All its addresses begin so."""
    store: Store
    memory: ColumnMemory
    budget: Budget
    groups: tuple[int, int]
    """Key groups [lo, hi) of the subtask."""
    layers: LayerPolicy
    """When checkpoints build on earlier ones."""
