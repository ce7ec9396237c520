"""How asking an engine can fail.

EngineError
 +-- EngineAway        nobody answered, or not in time: ask again
 +-- EngineRefused     it answered no; `message` is its reason, one sentence
 +-- UnknownJob        it does not know the job (any more)
 +-- UnknownTrigger    it does not know the savepoint's trigger id (any more)
 +-- NoSnapshot        there is nothing (any more) where a savepoint should be
 +-- Unsupported       it has no such ability: Apache Flink lacks some of ours
"""

from __future__ import annotations


class EngineError(Exception):
    """Asking the engine failed; `message` is one sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class EngineAway(EngineError):
    """Nobody answered, or not in time; it may answer later."""


class EngineRefused(EngineError):
    """The engine said no, and why."""


class UnknownJob(EngineRefused):
    """The engine does not know the job (any more)."""


class NoSnapshot(EngineRefused):
    """There is nothing (any more) where a savepoint should be."""


class UnknownTrigger(EngineRefused):
    """The engine does not know the trigger id: those die with its job manager."""


class Unsupported(EngineRefused):
    """The engine cannot do this at all; ask for it in another way."""
