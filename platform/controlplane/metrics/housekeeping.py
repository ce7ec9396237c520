"""Housekeeping of the embedded store: compaction each minute, expiry now and then."""

from __future__ import annotations

import asyncio
import logging
import sqlite3

from asgiref.sync import sync_to_async

from controlplane.metrics.store import embedded_store
from controlplane.moments import now_ms

log = logging.getLogger(__name__)

COMPACT_EVERY_S = 60.0
EXPIRE_EVERY = 30
"""Compactions: twice an hour is enough for what is kept for days."""


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
