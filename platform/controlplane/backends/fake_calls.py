"""Calls of the engine in memory: each is noted, and fails or loses its answer when told to."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from controlplane.backends.errors import EngineAway, EngineError


@dataclass
class FakeCalls:
    """The part of a `FakeEngine` that every call goes through."""

    calls: list[str] = field(default_factory=list)
    away: bool = False
    _faults: dict[str, deque[EngineError]] = field(default_factory=lambda: defaultdict(deque))
    _lost_answers: set[str] = field(default_factory=set)

    def fail(self, call: str, error: EngineError) -> None:
        """Let the next call of that name fail before it does anything."""
        self._faults[call].append(error)

    def drop_answer(self, call: str) -> None:
        """Let the next call of that name work, and its answer get lost."""
        self._lost_answers.add(call)

    def _enter(self, call: str) -> None:
        self.calls.append(call)
        if self.away:
            msg = "the engine does not answer"
            raise EngineAway(msg)
        if self._faults[call]:
            raise self._faults[call].popleft()

    def _leave(self, call: str) -> None:
        if call in self._lost_answers:
            self._lost_answers.discard(call)
            msg = "the connection broke before the answer came"
            raise EngineAway(msg)
