"""How a job takes checkpoints. What became of them is in `engine.checkpoint.coordination.stats`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """`interval_ms` is 0 when a job takes none by itself."""

    interval_ms: int
    timeout_ms: int
    min_pause_ms: int
    max_concurrent: int
    tolerable_failures: int
    state_backend: str
    """E.g. "memory"."""
    storage: str
    """Where they go, for people: e.g. a folder's URL."""
    retained: int
    """How many completed ones are kept."""
