"""What a job manager forgets, so that after many years it is as small as after a day.

    ended jobs     beyond `jobstore.max-capacity`, or `jobstore.expiration-time` after their end:
                   rows, graph and plan, logs; and checkpoints, as the job's own setting says
    operations     done as long ago
    artifacts      that no job needs, beyond the newest few
    environments   likewise

Guarantee  nothing goes that a living job needs: no code, no packages, and no checkpoint that it
           would start again from. Savepoints are people's, and never go.
Order      a job's rows go before its files: whatever dies in between, the files without rows are
           swept by the next job manager.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from engine.clock import now_ms
from engine.cluster.forgetting import Rules, forgettable
from engine.cluster.jobs.deployment import DIGITS, log_name
from engine.cluster.jobs.master import JobMaster
from engine.cluster.jobs.registry import Jobs
from engine.cluster.programs.artifacts import Artifacts
from engine.cluster.settings.job_settings import keeps_checkpoints
from engine.cluster.store.store import Store
from engine.errors import StorageError

log = logging.getLogger(__name__)

LOOK_S = 60.0
PAUSE_S = 1.0
"""Between two cleanings, when jobs end all the time."""
ARTIFACTS_KEPT = 200
"""Uploads that no job needs; one that is about to be run is among the newest."""


class Retention:
    """Forgets, each minute and when jobs end."""

    def __init__(
        self, home: Path, store: Store, jobs: Jobs, artifacts: Artifacts, rules: Rules
    ) -> None:
        self._home = home
        self._store = store
        self._jobs = jobs
        self._artifacts = artifacts
        self._rules = rules
        self._cleaning = asyncio.Lock()

    async def watch(self) -> None:
        """Clean up now and then. Runs for ever."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._jobs.ended.wait(), LOOK_S)
            self._jobs.ended.clear()
            try:
                await self.clean(now_ms())
            except StorageError as error:
                log.warning("nothing is forgotten for now: %s", error)
            await asyncio.sleep(PAUSE_S)

    async def sweep(self) -> None:
        """Delete files of no job and halves of uploads: what a killed job manager has left.

        To be called before anyone can submit or upload.
        """
        known = [row.job_id for row in self._store.jobs()]
        begins = {job_id[:DIGITS] for job_id in known}
        logs = (self._home / "logs").glob("job-*-*.log")
        left = [
            *(path for path in (self._home / "jobs").glob("*") if path.name not in known),
            *(path for path in logs if path.name.split("-")[1] not in begins),
            *(self._home / "artifacts").glob(".*.partial"),
            *(self._home / "environments").glob(".*.partial"),
        ]
        await asyncio.to_thread(_delete, left)

    async def clean(self, at_ms: int) -> None:
        """Forget whatever is due. Raises StorageError when the store cannot be written."""
        async with self._cleaning:
            await self._clean(at_ms)

    async def _clean(self, at_ms: int) -> None:
        masters = list(self._jobs.masters)
        ended = [(one.life.end_ms, one.row.job_id) for one in masters if one.life.status.terminal]
        living = [one for one in masters if not one.life.status.terminal]
        for job_id in forgettable(ended, self._rules, at_ms):
            await self._forget(self._jobs.find(job_id), living)
        self._store.forget_operations(at_ms - self._rules.expiration_ms)
        await self._clean_programs(living)
        self._store.give_room_back()

    async def _forget(self, master: JobMaster, living: Sequence[JobMaster]) -> None:
        row = master.row
        if not keeps_checkpoints(row.settings, master.life.status):
            if self._is_needed(master, living):
                return  # it goes once that job has checkpoints enough of its own
            await master.snapshots.dispose()
        self._store.forget_job(row.job_id)
        self._jobs.forget(row.job_id)
        slots = range(master.plan.slots)
        logs = [self._home / "logs" / log_name(row.job_id, slot) for slot in slots]
        await asyncio.to_thread(_delete, [Path(row.folder), *logs])

    def _is_needed(self, master: JobMaster, living: Sequence[JobMaster]) -> bool:
        """Whether another job has a checkpoint of this one, or would start again from it."""
        directory = master.snapshots.settings.config.directory
        if self._store.has_snapshots_below(directory, but_of=master.row.job_id):
            return True
        begun = (one for one in living if (one.row.restore_path or "").startswith(directory))
        return any((one.needed_snapshot or "").startswith(directory) for one in begun)

    async def _clean_programs(self, living: Sequence[JobMaster]) -> None:
        codes = {one.row.code for one in living}
        for artifact_id in self._artifacts.replaced(codes, ARTIFACTS_KEPT):
            self._artifacts.delete(artifact_id)
        environments = self._artifacts.environments
        left = [
            *self._artifacts.unused(codes),
            *environments.replaced({one.row.python for one in living}),
        ]
        # Out of sight at once, so that nobody finds half of one.
        await asyncio.to_thread(_delete, [_hidden(path) for path in left])


def _hidden(path: Path) -> Path:
    target = path.with_name(f".{path.name.lstrip('.')}.{secrets.token_hex(4)}.partial")
    return path.rename(target)


def _delete(paths: Sequence[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink(missing_ok=True)
