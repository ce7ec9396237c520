"""How the job manager's store is written: promises at once, the past as soon as there is room.

    now      on disk when it returns, and what waits with it        what a promise rests on
    written  survives a kill; a loss of power after `on_disk`       checkpoints
    soon     at once if there is room, else with a later write      the diary
    next     with whatever is written next                          statistics

Order   one thread, the event loop's: each call is one short transaction.
Errors  StorageError from `now` and `written` when the disk is full; the others keep in memory, in
        order, what could not be written: a job must not stop because of its diary.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import deque
from contextlib import suppress
from pathlib import Path

from engine.cluster.store.flushing import Flushing
from engine.cluster.store.rows import Write
from engine.cluster.store.schema import connect
from engine.errors import StorageError

log = logging.getLogger(__name__)

FREE_PAGES = 256
"""A megabyte: less is soon used again, and needs no work."""


class Ledger:
    """The file, and what still waits to be written to it. Owned by one thread."""

    def __init__(self, path: Path) -> None:
        """Open the file, or begin one. Raises ConfigError."""
        self._db = connect(path)
        self._db.row_factory = sqlite3.Row
        self._path = path
        self._flushing = Flushing(path)
        self._later: deque[Write] = deque()
        """Writes for which there was no room yet."""

    def close(self) -> None:
        """Close the file."""
        self.catch_up()
        self._db.close()

    def catch_up(self) -> None:
        """Write what there was no room for, if there is now. To be called now and then."""
        try:
            self._write_late()
        except sqlite3.Error as error:
            log.debug("%s", error)

    def give_room_back(self) -> None:
        """Return pages that rows have left to the disk, if there are many."""
        (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
        if free > FREE_PAGES:
            with suppress(sqlite3.OperationalError):  # it takes room in the journal first
                self._db.execute("PRAGMA incremental_vacuum").fetchall()

    def _now(self, statement: str, values: tuple[object, ...]) -> None:
        """Write what a promise rests on, and what waits for it. Raises StorageError."""
        try:
            self._write_late((statement, values))
        except sqlite3.OperationalError as error:
            msg = f"store {self._path} cannot be written: {error}; make room on its disk"
            raise StorageError(msg) from error

    def _written(self, statement: str, values: tuple[object, ...]) -> None:
        """Write what a promise rests on that is given after `on_disk`. Raises StorageError.

        It survives a kill at once, but a loss of power only then.
        """
        self._db.execute("PRAGMA synchronous=NORMAL")
        try:
            self._now(statement, values)
        finally:
            self._db.execute("PRAGMA synchronous=FULL")

    async def on_disk(self) -> None:
        """Wait, with others, until everything written survives a loss of power.

        Raises StorageError.
        """
        await self._flushing.on_disk()

    def _soon(self, statement: str, values: tuple[object, ...]) -> None:
        """Write at once if there is room, else later."""
        self._all_soon((statement, values))

    def _with_next(self, *writes: Write) -> None:
        """Write all of these with whatever is written next: they are not worth a flush."""
        self._later.extend(writes)

    def _all_soon(self, *writes: Write) -> None:
        """Write all of these together."""
        self._later.extend(writes)
        try:
            self._write_late()
        except sqlite3.OperationalError as error:
            log.warning("store %s: %d writes wait: %s", self._path, len(self._later), error)

    def _write_late(self, *promises: Write) -> None:
        """Write all that waits in one transaction, which costs one flush."""
        if not self._later and not promises:
            return
        self._db.execute("BEGIN")
        try:
            for write in (*self._later, *promises):
                self._write_past(*write)
            self._db.execute("COMMIT")
        except sqlite3.Error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._later.clear()

    def _write_past(self, statement: str, values: tuple[object, ...]) -> None:
        try:
            self._db.execute(statement, values)
        except sqlite3.IntegrityError as error:  # e.g. its job was forgotten: nobody will ask
            log.warning("store %s: what is past was not written: %s", self._path, error)

    def _one(self, query: str, *values: object) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._db.execute(query, values).fetchone()
        return row
