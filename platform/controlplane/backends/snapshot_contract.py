"""What the control plane asks of an engine about savepoints that exist: to read, verify, delete.

Long looks (verification, comparison) are begun under an id of our choice and polled: asked twice,
the engine looks once. Deletions have an id of the engine's.

Errors   as in `contract.py`; NoSnapshot when there is nothing where the savepoint should be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Verification:
    """Where a verification stands; `done` and `total` are bytes."""

    finished: bool
    done: int = 0
    total: int = 0
    problems: Sequence[str] = ()
    """A sentence per file that is missing, torn or altered."""
    failure: str = ""
    """Why there is no result, in one sentence."""


@dataclass(frozen=True, slots=True)
class StateDelta:
    """One state of one operator on both sides; numbers are rows."""

    uid: str
    state: str
    equal: int
    changed: int
    only_left: int
    only_right: int
    reason: str
    """Why rows could not be compared one by one; empty when they were."""
    examples: Sequence[Mapping[str, Any]] = ()
    """Some rows that differ: identity, then `left` and `right`, each a row or None."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Where a comparison stands; `done` and `total` are rows."""

    finished: bool
    done: int = 0
    total: int = 0
    states: Sequence[StateDelta] = ()
    moved_splits: int = 0
    """Splits of sources whose place differs."""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class StateRows:
    """Some rows of one state."""

    columns: Mapping[str, str]
    """Names to types."""
    rows: Sequence[Sequence[Any]]
    truncated: bool
    """There are more."""


@dataclass(frozen=True, slots=True)
class StoredFolder:
    """A folder where savepoints are kept that has something in it."""

    location: str
    is_complete: bool
    """Whether it has a manifest: what is incomplete can never be restored."""
    size_bytes: int
    changed_ms: int
    """When anything in it was written last."""


class SnapshotKeeper(Protocol):
    """The part of an engine that looks after savepoints."""

    def verify(self, location: str, trigger_id: str) -> None:
        """Begin to read every byte of a savepoint. Raises NoSnapshot."""

    def verification(self, trigger_id: str) -> Verification:
        """Where it stands. Raises UnknownTrigger."""

    def compare(self, left: str, right: str, trigger_id: str) -> None:
        """Begin to compare two savepoints, row by row. Raises NoSnapshot."""

    def comparison(self, trigger_id: str) -> Comparison:
        """Where it stands. Raises UnknownTrigger."""

    def read_state(
        self, location: str, uid: str, state: str, key: Mapping[str, str], limit: int
    ) -> StateRows:
        """At most `limit` rows of one state; those of `key`, when it names columns."""

    def dispose(self, location: str) -> str:
        """Begin to delete a savepoint with its files; the id to poll."""

    def disposal(self, trigger_id: str) -> str | None:
        """None while it goes on, then the reason why it failed, or "". Raises UnknownTrigger."""

    def stored(self, root: Path) -> Sequence[StoredFolder]:
        """What lies in our folder of savepoints, sorted. EngineRefused: it cannot be listed."""

    def clear(self, location: str, root: Path) -> None:
        """Remove what is left of a savepoint that has no manifest, below `root`."""
