"""What the collector does for the series: it measures the platform, and keeps the store tidy.

every 10 s    points about the control plane and about itself
each minute   compaction of the embedded store, and now and then expiry
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3

from asgiref.sync import sync_to_async
from django.db import DatabaseError
from django.utils import timezone

from controlplane.metrics.keeping import Keeping, tell_of_process
from controlplane.metrics.platform import platform_points
from controlplane.metrics.store import PLATFORM, embedded_store
from controlplane.moments import now_ms

log = logging.getLogger(__name__)

MEASURE_EVERY_S = 10.0
COMPACT_EVERY_S = 60.0
EXPIRE_EVERY = 30
"""Compactions: twice an hour is enough for what is kept for days."""


async def measure_platform() -> None:
    """Write points about the control plane. Runs for ever."""
    keeping = Keeping()
    while True:
        try:
            points = await sync_to_async(platform_points)(timezone.now())
        except DatabaseError as error:  # busy or away; the next look comes soon
            log.warning("the control plane could not be measured: %s", error)
        else:
            await sync_to_async(keeping.keep, thread_sensitive=False)(PLATFORM, points)
            await sync_to_async(tell_of_process, thread_sensitive=False)()
        await asyncio.sleep(MEASURE_EVERY_S)


async def keep_house() -> None:
    """Pack points into blocks, and forget those of long ago. Runs for ever."""
    rounds = 0
    while True:
        try:
            await sync_to_async(_once, thread_sensitive=False)(expires=rounds % EXPIRE_EVERY == 0)
        except sqlite3.Error as error:  # a full disk; the next round may find room
            log.warning("series could not be compacted: %s", error)
        rounds += 1
        await asyncio.sleep(COMPACT_EVERY_S)


def _once(*, expires: bool) -> None:
    store, at_ms = embedded_store(), now_ms()
    store.compact(at_ms)
    if expires:
        store.expire(at_ms)
