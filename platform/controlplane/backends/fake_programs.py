"""Programs of the engine in memory: artifacts, and what a savepoint gives back to them.

engine.drops = {"daily": 12}             an operator of its savepoints that no job has
engine.gaps = {"flights": "…"}           a source whose input is not there any more
engine.refuses_restore = "…"             no job starts from a savepoint
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.backends.contract import Preflight, RestoreRow, SourceInput, Start
from controlplane.backends.errors import EngineRefused, Unsupported
from controlplane.backends.fake_snapshots import FakeSnapshots


@dataclass
class FakePrograms(FakeSnapshots):
    """The part of a `FakeEngine` that reads job files and compares them with savepoints."""

    artifacts: dict[str, Path] = field(default_factory=dict)
    refuses_restore: str = ""
    """When set, no job starts from a savepoint, for this reason."""
    drops: Mapping[str, int] = field(default_factory=dict)
    """Operators (uid to rows) of its savepoints that no job has."""
    gaps: Mapping[str, str] = field(default_factory=dict)
    """What sources (by uid) have no more of the input that a restore needs."""
    unsure: Sequence[str] = ()
    """Sources that do not know what input they have."""
    refuses_artifact: tuple[str, str] = ("", "")
    """Part of a name and a reason: no artifact whose id has that part is started."""
    compares: bool = True
    """Whether it can compare a snapshot with a graph."""

    def upload(self, filename: str, content: Path) -> str:
        """Keep the path."""
        self._enter("upload")
        artifact_id = f"{content.name[:12]}_{filename}"
        self.artifacts[artifact_id] = content
        self._leave("upload")
        return artifact_id

    def check(self, artifact_id: str, arguments: Sequence[str], parallelism: int) -> None:
        """Refuse a file that does not parse."""
        self._enter("check")
        self._parse(artifact_id)
        self._leave("check")

    def preflight(self, request: Start) -> Preflight:
        """One operator that restores, or the reason why not; and what is dropped."""
        self._enter("preflight")
        if not self.compares:
            msg = "the engine cannot compare a snapshot with a job"
            raise Unsupported(msg)
        self._parse(request.artifact_id)
        self._stored(request.savepoint_path)
        refusals = [self.refuses_restore] if self.refuses_restore else []
        outcome = "incompatible" if refusals else "restored"
        row = RestoreRow(
            uid="daily",
            name="daily",
            state="panes",
            outcome=outcome,
            sentence=self.refuses_restore or "panes restores 12 rows",
            rows=12,
            allowed=not refusals,
        )
        lost = [self._dropped(uid, allowed=uid in request.allow_non_restored) for uid in self.drops]
        lost += [self._gone(uid, uid in request.accept_missing_input) for uid in self.gaps]
        refusals += [one.sentence for one in lost if not one.allowed]
        gone = [SourceInput(uid, [text], 0) for uid, text in self.gaps.items()]
        inputs = [*gone, *(SourceInput(uid, [], 1) for uid in self.unsure)]
        return Preflight(not refusals, [row, *lost], refusals, inputs)

    def _gone(self, uid: str, allowed: bool) -> RestoreRow:
        sentence = f"operator {uid}: input is not there any more: {self.gaps[uid]}; accept that"
        return RestoreRow(uid, uid, None, "missing_input", sentence, 0, allowed)

    def _dropped(self, uid: str, *, allowed: bool) -> RestoreRow:
        rows = self.drops[uid]
        sentence = f"operator {uid}: {rows} rows would be lost; allow it"
        return RestoreRow(uid, uid, None, "dropped", sentence, rows, allowed)

    def _parse(self, artifact_id: str) -> None:
        if artifact_id not in self.artifacts:
            msg = f"artifact {artifact_id} does not exist; upload it again"
            raise EngineRefused(msg)
        if not artifact_id.endswith(".py"):
            return
        try:
            ast.parse(self.artifacts[artifact_id].read_text())
        except SyntaxError as error:
            msg = f"{artifact_id} cannot be read: {error.msg} in line {error.lineno}; correct it"
            raise EngineRefused(msg) from None

    def _check_restore(self, path: str) -> None:
        self._stored(path)
        if self.refuses_restore:
            raise EngineRefused(self.refuses_restore)
