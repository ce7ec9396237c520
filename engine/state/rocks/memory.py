"""What the states of one subtask hold in memory before it goes to disk.

    append --hold(bytes)--> too much? --> the state that holds most is told to shrink

Cost     a state shrinks by what it holds, so each row is written once for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod


class Shrinking(ABC):
    """A state that can give memory back."""

    @abstractmethod
    def shrink(self) -> int:
        """Give memory back, at least half of it; returns how many bytes are still held."""


class ColumnMemory:
    """Bytes held by each state, of a budget for all."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held: dict[Shrinking, int] = {}

    @property
    def held_bytes(self) -> int:
        """What all states hold."""
        return sum(self._held.values())

    def hold(self, state: Shrinking, size_bytes: int) -> None:
        """Note what a state holds now, and have states shrink while it is too much for all."""
        self._held[state] = size_bytes
        while self.held_bytes > self._limit:
            largest = max(self._held, key=lambda each: self._held[each])
            before, self._held[largest] = self._held[largest], largest.shrink()
            if self._held[largest] >= before:
                return
