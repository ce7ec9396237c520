"""Which backend keeps the state of a job: the setting `state.backend`.

>>> isinstance(StateSettings().new(KeyGroupRange(0, 128)), MemoryBackend)
True
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from engine.errors import ConfigError
from engine.keygroups import KeyGroupRange
from engine.state.budget import Budget
from engine.state.changes import LayerPolicy
from engine.state.contract import StateBackend
from engine.state.memory import MemoryBackend


class BackendKind(StrEnum):
    """Where keyed state lives."""

    MEMORY = "memory"
    ROCKSDB = "rocksdb"


def backend_kind(name: str) -> BackendKind:
    """The backend of a name; Flink's `hashmap` is memory. Raises ConfigError.

    >>> backend_kind("rocksdb"), backend_kind("hashmap")
    (<BackendKind.ROCKSDB: 'rocksdb'>, <BackendKind.MEMORY: 'memory'>)
    """
    known = {"hashmap": BackendKind.MEMORY, **{kind.value: kind for kind in BackendKind}}
    if name not in known:
        msg = f"state.backend is unknown: got {name!r}; pass memory or rocksdb"
        raise ConfigError(msg)
    return known[name]


@dataclass(frozen=True, slots=True)
class StateSettings:
    """How a job keeps its state while it runs. Snapshots do not depend on it."""

    kind: BackendKind = BackendKind.MEMORY
    folder: str | None = None
    """Where RocksDB has its files: the system's folder for temporary files by default."""
    budget: Budget = field(default_factory=Budget)
    """What RocksDB may take of memory, for each subtask of an operator with state."""
    layers: LayerPolicy = field(default_factory=LayerPolicy)
    """Which checkpoints of a state build on earlier ones."""

    def new(self, key_groups: KeyGroupRange) -> StateBackend:
        """An empty backend for one operator subtask."""
        if self.kind is BackendKind.MEMORY:
            return MemoryBackend(key_groups, self.layers)
        from engine.state.rocks import RocksBackend  # a job in memory need not load RocksDB

        folder = None if self.folder is None else Path(self.folder)
        return RocksBackend(key_groups, folder, self.budget, self.layers)
