"""Who gets which slots: pure bookkeeping, no processes.

    register(name, slots)   allocate(attempt, n) ─▶ slots | Shortage   release(attempt)   lose(name)

A slot holds one slice of a whole job: one subtask of every vertex that is parallel enough. So a
job needs as many slots as its widest vertex. Slots are taken from the emptiest task managers, so
that a job at parallelism 2 on two of them survives the loss of either, and uses both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Allocation:
    """One slot of a task manager, held by slot `index` of an attempt."""

    attempt_id: str
    index: int
    task_manager: str


@dataclass(frozen=True, slots=True)
class Shortage:
    """Not enough slots now."""

    needed: int
    free: int

    def __str__(self) -> str:
        return f"waits for {self.needed} slot{'s' * (self.needed != 1)}, {self.free} free"


@dataclass(slots=True)
class SlotPool:
    """Slots of all task managers."""

    _slots: dict[str, int] = field(default_factory=dict)
    _held: list[Allocation] = field(default_factory=list)

    def register(self, task_manager: str, slots: int) -> None:
        """Add a task manager, all of its slots free."""
        self.lose(task_manager)
        self._slots[task_manager] = slots

    def lose(self, task_manager: str) -> set[str]:
        """Remove a task manager; return the attempts that held slots of it."""
        self._slots.pop(task_manager, None)
        hit = {held.attempt_id for held in self._held if held.task_manager == task_manager}
        self._held = [held for held in self._held if held.task_manager != task_manager]
        return hit

    def allocate(self, attempt_id: str, count: int) -> Sequence[Allocation] | Shortage:
        """Take `count` slots, or none at all."""
        free = self.free()
        if sum(free.values()) < count:
            return Shortage(count, sum(free.values()))
        taken = []
        for index in range(count):
            emptiest = max(sorted(free), key=free.__getitem__)
            free[emptiest] -= 1
            taken.append(Allocation(attempt_id, index, emptiest))
        self._held += taken
        return taken

    def release(self, attempt_id: str) -> None:
        """Give back every slot of an attempt."""
        self._held = [held for held in self._held if held.attempt_id != attempt_id]

    def free(self) -> dict[str, int]:
        """Free slots by task manager."""
        free = dict(self._slots)
        for held in self._held:
            free[held.task_manager] -= 1
        return free

    def holds(self, allocation: Allocation) -> bool:
        """Whether a slot is still held; it is not when its task manager was lost meanwhile."""
        return allocation in self._held

    def held_on(self, task_manager: str) -> Sequence[Allocation]:
        """Allocations on one task manager."""
        return [held for held in self._held if held.task_manager == task_manager]

    @property
    def task_managers(self) -> Mapping[str, int]:
        """Slots by task manager."""
        return self._slots
