"""What the store of a job manager knows of snapshots, and their files: it outlives the process.

    reserve(id) ──▶ begin(barrier) ──▶ record ──newer ones are complete──▶ replaced ──▶ discard
                                └────▶ abort, discard_folder

Guarantee  as in a cluster: an id is never used again, a replaced checkpoint is forgotten before its
           files go, and what a job manager had begun and not recorded its successor deletes.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.checkpoint.coordination.effects import WriteManifest
from engine.checkpoint.format.shared import SharedFiles, shared_folder, shared_names
from engine.checkpoint.restoring.restore import load_manifest
from engine.elements import Barrier
from engine.testing.memory import MemoryStorage
from engine.testing.weather import Weather

CHECKPOINTS = "memory"
"""The folder with a folder of each checkpoint."""

RETAINED = 2
"""Completed checkpoints that are kept: few, so that many are deleted."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A snapshot from which a restart would begin."""

    checkpoint_id: int
    folder: str

    @property
    def is_checkpoint(self) -> bool:
        """Whether it may be deleted; savepoints belong to people."""
        return self.folder.startswith(f"{CHECKPOINTS}/")


class Records:
    """The snapshots of one job, over all its job managers."""

    def __init__(self, storage: MemoryStorage, weather: Weather) -> None:
        self.snapshots: list[Recorded] = []
        """Newest last."""
        self.next_id = 1
        """Of the first checkpoint of the next attempt."""
        self._storage = storage
        self._weather = weather
        self._shared = SharedFiles()

    @property
    def replaced(self) -> list[Recorded]:
        """The checkpoints that may be deleted, oldest first."""
        return [each for each in self.snapshots[:-RETAINED] if each.is_checkpoint]

    def begin(self, barrier: Barrier) -> None:
        """A snapshot begins, and no other will ever have its id. Raises StorageError."""
        self._weather.before_write(f"id {barrier.checkpoint_id}")
        self.next_id = barrier.checkpoint_id + 1
        self._shared.begin(barrier.checkpoint_id, barrier.base)

    def record(self, written: WriteManifest) -> None:
        """A restart may begin at a snapshot from now on. Raises StorageError."""
        if written.is_recoverable:
            self._weather.before_write(f"record {written.checkpoint_id}")
            self.snapshots.append(Recorded(written.checkpoint_id, written.folder))
        self._shared.complete(written.checkpoint_id, shared_names(written.manifest.files))

    def abort(self, checkpoint_id: int) -> None:
        """A snapshot came to nothing."""
        self._shared.abort(checkpoint_id)

    def discard_folder(self, folder: str) -> None:
        """Delete what was written of a snapshot that came to nothing."""
        for each in (folder, shared_folder(folder)):
            if each is not None:
                self._storage.open(each).delete()

    def retire(self) -> None:
        """Delete the oldest replaced checkpoint, and what only it needed."""
        oldest = self.replaced[0]
        self.snapshots.remove(oldest)
        self._storage.open(oldest.folder).delete()
        self._shared.retire(oldest.checkpoint_id)
        self._storage.open(f"{CHECKPOINTS}/shared").remove(self._shared.unneeded)
        self._shared.unneeded.clear()

    def recover(self) -> None:
        """A job manager is gone; its successor counts anew, and deletes what is not recorded."""
        self._shared = SharedFiles()
        kept = {each.folder.rpartition("/")[2] for each in self.snapshots if each.is_checkpoint}
        for each in self.snapshots:
            if each.is_checkpoint:
                manifest = load_manifest(each.folder, self._storage.open)
                self._shared.complete(each.checkpoint_id, shared_names(manifest.files))
        for name in {*self._storage.open(CHECKPOINTS).children()} - {"shared"} - kept:
            self._storage.open(f"{CHECKPOINTS}/{name}").delete()
        shared = self._storage.open(f"{CHECKPOINTS}/shared")
        shared.remove({*shared.files()} - self._shared.needed)
