"""The part of the engine in memory that looks into snapshots: manifests without files.

Every savepoint is whole, and two of them hold the same rows; a state has columns and no rows.
"""

from __future__ import annotations

from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.inspection.difference_report import Difference, StateDifference
from engine.checkpoint.inspection.questions import StateQuestion, StateRows
from engine.checkpoint.inspection.reading import Snapshot, schema_of
from engine.checkpoint.inspection.verification import Verification
from engine.checkpoint.storage.addresses import open_folder
from engine.errors import SnapshotMissing
from engine.rest.errors import operation_not_found
from engine.rest.model.snapshots import InspectionStatus


class FakeSnapshots:
    """Implements what `EngineService` says about snapshots."""

    def __init__(self) -> None:
        self.manifests: dict[str, Manifest] = {}
        self._inspections: dict[str, list[InspectionStatus]] = {}
        """What polls answer: all but the last once."""

    async def savepoint(self, path: str) -> Manifest:
        """The manifest of a savepoint that was taken here."""
        if path not in self.manifests:
            msg = f"snapshot is not there: no folder {path}; check the path"
            raise SnapshotMissing(msg)
        return self.manifests[path]

    async def verify_savepoint(self, path: str, trigger_id: str | None) -> str:
        """Find it whole."""
        snapshot = await self._opened(path)
        files = [file for _, state in snapshot.states() for file in state.files]
        size = snapshot.manifest.size_bytes
        found = Verification(len(files), size, ())
        return self._begin(trigger_id, InspectionStatus(True, size, size, found.to_json()))

    async def verification(self, trigger_id: str) -> InspectionStatus:
        """Where a verification stands."""
        return self._stands("verification", trigger_id)

    async def compare_savepoints(
        self, left: str, right: str, examples: int, trigger_id: str | None
    ) -> str:
        """Find all rows of the left one in both."""
        first, _ = await self._opened(left), await self._opened(right)
        states = [(entry.uid, state) for entry, state in first.states()]
        found = Difference(
            tuple(StateDifference(uid, state.name, state.rows) for uid, state in states), ()
        )
        rows = sum(state.rows for _, state in states)
        return self._begin(trigger_id, InspectionStatus(True, rows, rows, found.to_json()))

    async def comparison(self, trigger_id: str) -> InspectionStatus:
        """Where a comparison stands."""
        return self._stands("comparison", trigger_id)

    async def read_state(self, path: str, question: StateQuestion) -> StateRows:
        """The columns of a state."""
        state = (await self._opened(path)).state(question.operator, question.state)
        return StateRows({name: str(dtype) for name, dtype in schema_of(state).items()}, ())

    async def _opened(self, path: str) -> Snapshot:
        return Snapshot(await self.savepoint(path), open_folder(path))

    def _begin(self, trigger_id: str | None, result: InspectionStatus) -> str:
        trigger = trigger_id or f"{len(self._inspections):032x}"
        first = InspectionStatus(finished=False, total=result.total)
        self._inspections.setdefault(trigger, [first, result])
        return trigger

    def _stands(self, what: str, trigger_id: str) -> InspectionStatus:
        answers = self._inspections.get(trigger_id)
        if answers is None:
            raise operation_not_found(what, trigger_id)
        return answers.pop(0) if len(answers) > 1 else answers[0]
