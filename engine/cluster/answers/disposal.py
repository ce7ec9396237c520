"""Deleting savepoints that a client has named."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.checkpoint.format.manifest import METADATA, Manifest
from engine.checkpoint.restoring.restore import load_manifest
from engine.checkpoint.storage.addresses import open_folder
from engine.checkpoint.storage.folder import Folder
from engine.cluster.answers.places import Place
from engine.cluster.background import Background
from engine.cluster.jobs.operations import What
from engine.cluster.jobs.registry import Jobs
from engine.elements import SnapshotKind
from engine.errors import HeadwaterError, RestoreError


class Disposals:
    """Deletions that are under way."""

    def __init__(self, jobs: Jobs, place: Callable[[str], Place]) -> None:
        """`place` says where an address leads; Raises Forbidden."""
        self._jobs = jobs
        self._place = place
        self._work = Background()

    def start(self, path: str) -> str:
        """Begin to delete a savepoint's folder and return a trigger id. Raises Forbidden."""
        place = self._place(path)
        trigger_id, _ = self._jobs.operations.begin(What.DISPOSAL, None, None)
        self._work.start(self._dispose(trigger_id, place))
        return trigger_id

    async def _dispose(self, trigger_id: str, place: Place) -> None:
        try:
            manifest = await asyncio.to_thread(load_manifest, place.url, place.open)
            self._check(manifest, place.url)
            await asyncio.to_thread(_delete, open_folder(place.url))
        except HeadwaterError as error:
            self._jobs.operations.finish(trigger_id, failure=str(error))
        else:
            self._jobs.operations.finish(trigger_id)

    def _check(self, manifest: Manifest, path: str) -> None:
        """Refuse what the engine owns, and what a job would need to start again."""
        if manifest.kind is not SnapshotKind.SAVEPOINT:
            msg = (
                f"folder {path} is a checkpoint: the engine deletes it; dispose of savepoints only"
            )
            raise RestoreError(msg)
        for master in self._jobs.masters:
            needed = master.needed_snapshot
            if needed is not None and open_folder(needed).url == path:
                msg = (
                    f"savepoint {path} is needed by job {master.row.job_id}: it would restart from "
                    "it; wait for its next checkpoint, or cancel the job"
                )
                raise RestoreError(msg)


def _delete(folder: Folder) -> None:
    """The manifest goes last: a deletion that stopped halfway can be asked for again."""
    folder.remove([name for name in folder.files() if name != METADATA])
    folder.delete()
