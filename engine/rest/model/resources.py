"""Task managers that the job manager starts itself, as the service knows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LocalTaskManager:
    """One that is wanted; whether it has joined is told by the list of task managers."""

    name: str
    pid: int | None
    """None while it is lost: it is started again in a second, unless lost ones are left lost."""


@dataclass(frozen=True, slots=True)
class LocalResources:
    """All of them."""

    respawn: bool
    """Whether one that was lost is started again."""
    task_managers: tuple[LocalTaskManager, ...]
