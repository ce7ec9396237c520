"""Savepoints of an engine behind REST: looks into them, and deletions. See `snapshot_contract.py`.

Flink can only delete them: whatever else is asked of it is refused, with a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from controlplane.backends import local_storage
from controlplane.backends.asking import asking
from controlplane.backends.errors import UnknownTrigger
from controlplane.backends.snapshot_contract import (
    Comparison,
    StateDelta,
    StateRows,
    StoredFolder,
    Verification,
)
from engine.checkpoint.inspection.difference_report import StateDifference
from engine.checkpoint.inspection.questions import StateQuestion
from engine.rest.client import EngineClient

EXAMPLES = 3
"""Rows of each state that a comparison shows."""


class RestSnapshots:
    """The part of a `RestBackend` that looks after savepoints."""

    _quick: EngineClient

    def verify(self, location: str, trigger_id: str) -> None:
        """Begin under our id."""
        with asking():
            self._quick.verify_savepoint(location, trigger_id)

    def verification(self, trigger_id: str) -> Verification:
        """Poll."""
        with asking(UnknownTrigger):
            found = self._quick.verification(trigger_id)
        problems = found.result.problems if found.result else ()
        return Verification(found.finished, found.done, found.total, problems, found.failure or "")

    def compare(self, left: str, right: str, trigger_id: str) -> None:
        """Begin under our id."""
        with asking():
            self._quick.compare_savepoints(left, right, EXAMPLES, trigger_id)

    def comparison(self, trigger_id: str) -> Comparison:
        """Poll."""
        with asking(UnknownTrigger):
            found = self._quick.comparison(trigger_id)
        states = found.result.states if found.result else ()
        splits = found.result.splits if found.result else ()
        return Comparison(
            found.finished,
            found.done,
            found.total,
            tuple(map(_delta, states)),
            len(splits),
            found.failure or "",
        )

    def read_state(
        self, location: str, uid: str, state: str, key: Mapping[str, str], limit: int
    ) -> StateRows:
        """Ask for rows; the engine takes at most half a minute."""
        with asking():
            found = self._quick.read_state(
                location, StateQuestion(uid, state, dict(key), limit=limit)
            )
        return StateRows(found.columns, found.rows, found.truncated)

    def dispose(self, location: str) -> str:
        """Begin; the engine refuses what a job of its own would restart from."""
        with asking():
            return self._quick.dispose_savepoint(location)

    def disposal(self, trigger_id: str) -> str | None:
        """Poll."""
        with asking(UnknownTrigger):
            status = self._quick.disposal_status(trigger_id)
        return (status.failure or "") if status.done else None

    def stored(self, root: Path) -> Sequence[StoredFolder]:
        """List our own folder: no engine can, and it is on this machine or nowhere."""
        return local_storage.stored(root)

    def clear(self, location: str, root: Path) -> None:
        """Remove it here."""
        local_storage.clear(location, root)


def _delta(found: StateDifference) -> StateDelta:
    return StateDelta(
        uid=found.uid,
        state=found.state,
        equal=found.equal,
        changed=found.changed,
        only_left=found.only_left,
        only_right=found.only_right,
        reason=found.reason,
        examples=found.examples,
    )
