"""The collector: a watcher per engine, and the housekeeping that needs none.

    clusters in the database ──every 5 s──▶ watchers ──every 1 s──▶ look

Guarantee  nothing is kept only here: killed at any moment, the next collector goes on.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import suppress

from asgiref.sync import sync_to_async
from django.db import DatabaseError

from controlplane.collector import figures, mirror
from controlplane.collector.board import Board
from controlplane.collector.watcher import Watcher
from controlplane.live import topics
from controlplane.live.publish import apublish_all
from controlplane.live.topics import Payload
from controlplane.metrics.housekeeping import keep_house, measure_platform

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
TIDY_EVERY_S = 5.0
AFTER_A_FAULT_S = 5.0
"""How long an engine is left alone after a fault of ours, so that the log stays readable."""


class Collector:
    """Watches every engine until it is cancelled."""

    def __init__(self) -> None:
        self._board = Board()
        self._watchers: dict[tuple[int, str, str], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Watch and tidy up."""
        house = [asyncio.create_task(work()) for work in (keep_house, measure_platform)]
        try:
            while True:
                with suppress(DatabaseError, sqlite3.Error):  # the next round comes soon
                    await self._tidy()
                await asyncio.sleep(TIDY_EVERY_S)
        finally:
            tasks = [*house, *self._watchers.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _tidy(self) -> None:
        """Watch new engines, leave removed ones, show jobs that have no run."""
        # An engine at another address, or with another token, is another one to watch.
        clusters = {
            (cluster.pk, cluster.url, cluster.sealed_token): cluster
            for cluster in await sync_to_async(mirror.clusters)()
        }
        for key in set(self._watchers) - set(clusters):
            self._watchers.pop(key).cancel()
        for key, cluster in clusters.items():
            if key not in self._watchers:
                watcher = Watcher(cluster, self._board)
                self._watchers[key] = asyncio.create_task(_watch(watcher))
        await self._show_resting()

    async def _show_resting(self) -> None:
        rows: Payload = {}
        news: list[tuple[str, Payload]] = []
        for job_id, state in (await sync_to_async(mirror.resting_jobs)()).items():
            rows[str(job_id)], record = figures.at_rest(state)
            self._board.row(job_id, rows[str(job_id)])
            self._board.position(job_id, None)
            news.append((topics.job(job_id), record))
        for job_id in self._board.keep(await sync_to_async(mirror.job_ids)()):
            rows[str(job_id)] = None
        await apublish_all([(topics.FLEET, rows), *news])


async def _watch(watcher: Watcher) -> None:
    clock = asyncio.get_running_loop().time
    try:
        while True:
            began = clock()
            try:
                await watcher.look()
            except Exception:
                log.exception("watching %s failed", watcher.cluster.name)
                await asyncio.sleep(AFTER_A_FAULT_S)
            await asyncio.sleep(max(0.05, began + LOOK_EVERY_S - clock()))
    finally:
        await watcher.close()
