"""The folders in which clients may look: those of the engine, of its jobs, and what is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.cluster.answers.places import Places
from engine.cluster.jobs.registry import Jobs
from engine.cluster.settings.job_settings import SAVEPOINT_DIR, directory_of
from engine.cluster.store.store import Store


def places_of(jobs: Jobs, store: Store, savepoints: Path, more: Sequence[str]) -> Places:
    """`savepoints`: the folder of those that are asked for without another; `more`: allowed too."""

    def configured() -> Iterator[str]:
        yield str(savepoints)
        yield from more
        for master in jobs.masters:
            yield master.snapshots.settings.config.directory.rpartition("/")[0]
            yield directory_of(master.row.settings, SAVEPOINT_DIR, savepoints)

    def recorded() -> Iterator[str]:
        for master in jobs.masters:
            yield from store.snapshot_paths(master.row.job_id)
            if master.row.restore_path is not None:
                yield master.row.restore_path

    return Places(configured, recorded)
