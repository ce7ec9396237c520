"""The files of one job's snapshots in storage: what is deleted, and when.

    aborted            its folder, and what it has put into the shared one
    replaced           its folder, then the shared files that no other checkpoint needs
    claimed, replaced  the same, in the folders of the job that it was taken from
    of a job that is   all of them, unless a person or another job has something among them
    forgotten
    of a job manager   found and deleted by its successor, together with shared files that nobody
    that was killed    needs

Guarantee  while it is not known what retained checkpoints need, none that was complete is deleted.
Order      a replaced checkpoint is recorded as such before its files go: nobody begins there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Set

from engine.checkpoint.coordination.stats import CheckpointLog
from engine.checkpoint.format.manifest import Manifest
from engine.checkpoint.format.shared import SharedFiles, shared_folder, shared_names
from engine.checkpoint.restoring.restore import load_manifest
from engine.checkpoint.storage.addresses import open_folder
from engine.cluster.store.rows import SnapshotRow
from engine.cluster.store.store import Store
from engine.elements import Barrier
from engine.errors import HeadwaterError, RestoreError, SnapshotCorrupt, StorageError

log = logging.getLogger(__name__)


class SnapshotFiles:
    """Deletes what a job does not need any more. On the event loop; storage in threads."""

    def __init__(self, job_id: str, directory: str, store: Store, history: CheckpointLog) -> None:
        """`directory`: that of the job's checkpoints."""
        self._job_id = job_id
        self._directory = directory.rstrip("/")
        self._store = store
        self._history = history
        self._shared = SharedFiles()
        self._counted = False
        """Whether it is known what checkpoints need that were there before."""
        self._deleting = asyncio.Lock()

    def begin(self, barrier: Barrier) -> None:
        """A snapshot is under way; a checkpoint may name files of its base."""
        self._shared.begin(barrier.checkpoint_id, barrier.base)

    def complete(self, manifest: Manifest) -> None:
        """A snapshot is recorded; a savepoint needs no shared file."""
        self._shared.complete(manifest.checkpoint_id, shared_names(manifest.files))

    def abort(self, checkpoint_id: int) -> None:
        """A snapshot came to nothing."""
        self._shared.abort(checkpoint_id)

    async def discard(self, folder: str) -> None:
        """Delete what subtasks have written of a snapshot that came to nothing."""
        for each in (folder, shared_folder(folder)):
            if each is not None:
                await self._delete(each)
        async with self._deleting:
            # What only this one might have built on.
            await self._delete_unneeded()

    async def retire(self, retained: int) -> None:
        """Delete checkpoints that newer ones have replaced, and shared files without use."""
        async with self._deleting:
            if not await self._count():
                return
            replaced = self._store.replaced_checkpoints(self._job_id, retained)
            try:
                for row in replaced:
                    self._store.discard(self._job_id, row.checkpoint_id)
                if replaced:
                    await self._store.on_disk()
            except StorageError as error:
                log.warning("%s", error)  # the next one will try again
                return
            for row in replaced:
                self._history.discarded(row.checkpoint_id)
                if await self._delete_replaced(row):
                    self._store.forget_snapshot(self._job_id, row.checkpoint_id)
            await self._delete_unneeded()

    async def dispose(self) -> None:
        """Delete every checkpoint of a job that is forgotten, and its folder if all are gone."""
        await self.retire(0)
        try:
            if not set(await self._children(self._directory)) - {"shared"}:
                await self._delete(self._directory)
        except HeadwaterError as error:
            log.warning("%s", error)

    async def sweep(self, next_id: int) -> None:
        """Delete what a job manager had begun, and did not live to record: ids below `next_id`."""
        known = self._store.snapshot_paths(self._job_id)
        ours = {f"chk-{id_}" for id_ in range(1, next_id)}
        async with self._deleting:
            try:
                for name in await self._children(self._directory):
                    if name in ours and f"{self._directory}/{name}" not in known:
                        await self._delete(f"{self._directory}/{name}")
                if await self._count():
                    await self._delete_unknown(ours)
            except HeadwaterError as error:
                log.warning("%s", error)

    async def _delete_unknown(self, ours: Set[str]) -> None:
        shared = open_folder(f"{self._directory}/shared")
        found = await asyncio.to_thread(shared.files)
        unknown = {name for name in found if name.split("/")[0] in ours}
        await asyncio.to_thread(shared.remove, unknown - self._shared.needed)

    async def _delete_replaced(self, row: SnapshotRow) -> bool:
        if not self._is_ours(row):
            return await self._delete_claimed(row.path)
        if not await self._delete(row.path):
            return False
        self._shared.retire(row.checkpoint_id)
        return True

    async def _delete_unneeded(self) -> None:
        names = frozenset(self._shared.unneeded)
        if names and await self._remove(f"{self._directory}/shared", names):
            self._shared.unneeded -= names

    async def _delete_claimed(self, folder: str) -> bool:
        """Shared files first: without the manifest nobody would know them."""
        try:
            names = await asyncio.to_thread(_of_nobody_else, folder)
        except StorageError as error:
            log.warning("%s", error)
            return False
        parent = folder.rstrip("/").rpartition("/")[0]
        removed = not names or await self._remove(f"{parent}/shared", names)
        return removed and await self._delete(folder)

    async def _count(self) -> bool:
        """Find out what checkpoints need that were complete before this process began."""
        if self._counted:
            return True
        for row in self._store.replaced_checkpoints(self._job_id, 0):
            if row.discarded or not self._is_ours(row):
                continue
            try:
                self.complete(await asyncio.to_thread(load_manifest, row.path))
            except (RestoreError, SnapshotCorrupt) as error:
                log.warning("%s", error)  # nobody can begin there: it needs nothing
            except StorageError as error:
                log.warning("%s", error)
                return False
        self._counted = True
        return True

    def _is_ours(self, row: SnapshotRow) -> bool:
        return row.path == f"{self._directory}/chk-{row.checkpoint_id}"

    async def _children(self, folder: str) -> list[str]:
        return await asyncio.to_thread(open_folder(folder).children)

    async def _delete(self, folder: str) -> bool:
        try:
            await asyncio.to_thread(open_folder(folder).delete)
        except HeadwaterError as error:
            log.warning("%s", error)
            return False
        return True

    async def _remove(self, folder: str, names: Set[str]) -> bool:
        try:
            await asyncio.to_thread(open_folder(folder).remove, names)
        except HeadwaterError as error:
            log.warning("%s", error)
            return False
        return True


def _of_nobody_else(folder: str) -> Set[str]:
    """The shared files of a checkpoint that none beside it needs. Raises StorageError."""
    parent, _, own = folder.rstrip("/").rpartition("/")
    names = _shared_by(folder)
    if names:
        others = (name for name in open_folder(parent).children() if name != own)
        names -= set().union(*(_shared_by(f"{parent}/{name}") for name in others))
    return names


def _shared_by(folder: str) -> Set[str]:
    """What a snapshot needs; nothing, where nobody can begin. Raises StorageError."""
    try:
        return shared_names(load_manifest(folder).files)
    except (RestoreError, SnapshotCorrupt):
        return frozenset()
