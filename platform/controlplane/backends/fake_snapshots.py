"""Savepoints of the engine in memory: looks, deletions, and storage that fails when told to.

    engine.storage = fault          asked at every touch of storage: "" or why it fails
    engine.damage[location] = …     sentences that a verification finds
    engine.lose(location)           its files are gone
    engine.leave(location)          files without a manifest

Order    a long look or a deletion is over after `looks_until_done` polls, as a savepoint is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.backends.contract import SavepointSummary
from controlplane.backends.errors import EngineRefused, NoSnapshot, UnknownTrigger
from controlplane.backends.fake_calls import FakeCalls
from controlplane.backends.snapshot_contract import (
    Comparison,
    StateDelta,
    StateRows,
    StoredFolder,
    Verification,
)

CONTENTS = {
    "engine_version": "0.1.0",
    "format_version": 2,
    "job_name": "flights",
    "engine_job_id": "a" * 32,
    "plan_hash": "0c1a",
    "operators": [
        {
            "uid": "daily",
            "name": "daily",
            "parallelism": 1,
            "max_parallelism": 128,
            "states": [
                {
                    "name": "panes",
                    "kind": "value",
                    "rows": 12,
                    "size_bytes": 4096,
                    "keys": {"carrier": "String"},
                    "values": {"n": "Int64"},
                }
            ],
        }
    ],
}


def healthy() -> str:
    """Storage that works."""
    return ""


@dataclass
class FakeLook:
    """A long look, or a deletion, on its way."""

    places: tuple[str, ...]
    looks_until_done: int
    outcome: str | None = None
    """Of a deletion that is over: why it failed, or "": it is remembered."""


@dataclass
class FakeSnapshots(FakeCalls):
    """The part of a `FakeEngine` that looks after savepoints."""

    savepoints: dict[str, SavepointSummary] = field(default_factory=dict)
    checkpoints: dict[str, str] = field(default_factory=dict)
    """Job id to the folder of its newest checkpoint."""
    remains: dict[str, int] = field(default_factory=dict)
    """Folders without a manifest, and their bytes."""
    damage: dict[str, list[str]] = field(default_factory=dict)
    needed: dict[str, str] = field(default_factory=dict)
    """Locations that jobs of the engine would restart from, and its reason not to delete them."""
    storage: Callable[[], str] = healthy
    looks_until_done: int = 1
    looks: dict[str, FakeLook] = field(default_factory=dict)

    def lose(self, location: str) -> None:
        """Let its files be gone."""
        del self.savepoints[location]

    def leave(self, location: str, size_bytes: int = 4096) -> None:
        """Let a savepoint that never became complete lie there."""
        self.remains[location] = size_bytes

    def savepoint(self, location: str) -> SavepointSummary:
        """What was noted when it completed."""
        self._enter("savepoint")
        return self._stored(location)

    def verify(self, location: str, trigger_id: str) -> None:
        """Begin."""
        self._look("verify", trigger_id, location)

    def verification(self, trigger_id: str) -> Verification:
        """A look at it, which brings it one step on."""
        look = self._step("verification", trigger_id)
        (location,) = look.places
        size = self._stored(location).size_bytes or 0
        if look.looks_until_done >= 0:
            return Verification(False, 0, size)
        if fault := self.storage():
            return Verification(True, size, size, failure=fault)
        return Verification(True, size, size, tuple(self.damage.get(location, ())))

    def compare(self, left: str, right: str, trigger_id: str) -> None:
        """Begin."""
        self._look("compare", trigger_id, left, right)

    def comparison(self, trigger_id: str) -> Comparison:
        """A look at it; two savepoints differ in a row when their event times do."""
        look = self._step("comparison", trigger_id)
        left, right = (self._stored(place) for place in look.places)
        if look.looks_until_done >= 0:
            return Comparison(False, 0, 12)
        changed = int(left.event_time != right.event_time)
        example = {"carrier": "UA", "left": {"n": 1}, "right": {"n": 2}}
        delta = StateDelta("daily", "panes", 12 - changed, changed, 0, 0, "", [example] * changed)
        return Comparison(True, 12, 12, (delta,), 2 * changed)

    def read_state(
        self, location: str, uid: str, state: str, key: Mapping[str, str], limit: int
    ) -> StateRows:
        """Twelve carriers, or one."""
        self._enter("read_state")
        self._stored(location)
        if (uid, state) != ("daily", "panes"):
            msg = f"operator {uid!r} has no state {state!r}; it has panes"
            raise EngineRefused(msg)
        rows = [[f"c{number}", number] for number in range(12)]
        found = [row for row in rows if not key or row[0] == key.get("carrier")]
        return StateRows({"carrier": "String", "n": "Int64"}, found[:limit], len(found) > limit)

    def dispose(self, location: str) -> str:
        """Begin to delete it."""
        self._enter("dispose")
        trigger_id = f"{len(self.looks) + 1:032x}"
        self.looks[trigger_id] = FakeLook((location,), self.looks_until_done)
        self._leave("dispose")
        return trigger_id

    def disposal(self, trigger_id: str) -> str | None:
        """A look at it, which brings it one step on."""
        look = self._step("disposal", trigger_id)
        if look.looks_until_done >= 0:
            return None
        if look.outcome is None:
            look.outcome = self._delete(look.places[0])
        return look.outcome

    def stored(self, root: Path) -> Sequence[StoredFolder]:
        """Everything below that folder."""
        self._enter("stored")
        if fault := self.storage():
            raise EngineRefused(fault)
        whole = {path: found.size_bytes or 0 for path, found in self.savepoints.items()}
        folders = [
            *(StoredFolder(path, True, size, 0) for path, size in whole.items()),
            *(StoredFolder(path, False, size, 0) for path, size in self.remains.items()),
        ]
        below = [one for one in folders if one.location.startswith(f"{root}/")]
        return tuple(sorted(below, key=lambda folder: folder.location))

    def clear(self, location: str, root: Path) -> None:
        """Remove files without a manifest."""
        self._enter("clear")
        if fault := self.storage():
            raise EngineRefused(fault)
        self.remains.pop(location, None)

    def _look(self, call: str, trigger_id: str, *places: str) -> None:
        self._enter(call)
        for place in places:
            self._stored(place)
        self.looks.setdefault(trigger_id, FakeLook(places, self.looks_until_done))
        self._leave(call)

    def _step(self, call: str, trigger_id: str) -> FakeLook:
        self._enter(call)
        look = self.looks.get(trigger_id)
        if look is None:
            msg = f"there is no {call} operation with trigger id {trigger_id}"
            raise UnknownTrigger(msg)
        look.looks_until_done -= 1
        return look

    def _delete(self, location: str) -> str:
        if location not in self.savepoints:
            return f"snapshot is not there: no folder {location}; check the path"
        if reason := self.needed.get(location):
            return reason
        if fault := self.storage():
            return fault
        del self.savepoints[location]
        return ""

    def _stored(self, location: str) -> SavepointSummary:
        if location in self.remains:
            msg = f"folder {location} is not a snapshot: it has no _metadata; choose another"
            raise EngineRefused(msg)
        if location in self.checkpoints.values() and location not in self.savepoints:
            number = int(location.rpartition("-")[2])
            return SavepointSummary(location, "", number, None, None, {})
        if location not in self.savepoints:
            msg = f"snapshot is not there: no folder {location}; check the path"
            raise NoSnapshot(msg)
        return self.savepoints[location]
