"""Waiting for the disk together: what many have written goes there in one flush, in a thread.

    write, on_disk ─┐
    write, on_disk ─┼─▶ one fsync of the write-ahead log ─▶ all go on
    write, on_disk ─┘   (whoever writes meanwhile shares the next one)

SQLite appends a transaction to its log when it is written, and waits for the disk only if it is
told to. That wait takes milliseconds, or a second on a busy disk: the event loop must not have it
for each checkpoint of each job.

Guarantee  what was written before `on_disk` was called survives a loss of power once it returns.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from engine.cluster.turns import Turns
from engine.errors import StorageError

LOG_BYTES = 4 << 20
"""Then pages go from the log into the file, which is as slow as a flush."""


class Flushing:
    """Flushes the log of one SQLite file. Belongs to one event loop."""

    def __init__(self, path: Path) -> None:
        self.count = 0
        """How often the disk was waited for."""
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._next: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self._turns = Turns()

    async def on_disk(self) -> None:
        """Wait until everything that was written is on disk. Raises StorageError."""
        if self._next is None:
            self._next = asyncio.create_task(self._flush())
        await asyncio.shield(self._next)
        await self._turns.mine()  # all whom it let go on come at this moment

    async def _flush(self) -> None:
        async with self._turn:
            self._next = None  # what is written from now on may come too late for this one
            self.count += 1
            try:
                await asyncio.to_thread(self._sync)
            except (OSError, sqlite3.Error) as error:
                msg = f"store {self._path} cannot be flushed: {error}; check its disk"
                raise StorageError(msg) from error

    def _sync(self) -> None:
        try:
            descriptor = os.open(self._log, os.O_RDONLY)
        except FileNotFoundError:
            return  # a store in memory
        try:
            os.fsync(descriptor)
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        if size > LOG_BYTES:
            with closing(sqlite3.connect(self._path)) as other, suppress(sqlite3.OperationalError):
                other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
