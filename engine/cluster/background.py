"""Work on the event loop that nobody awaits: kept alive, and its failures are heard."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

log = logging.getLogger(__name__)

OnError = Callable[[BaseException], None]


def say_loudly(error: BaseException) -> None:
    """Log a failure with its stack: it is a bug of ours."""
    log.error("work in the background failed", exc_info=error)


class Background:
    """Tasks of one owner."""

    def __init__(self, on_error: OnError = say_loudly) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_error = on_error

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Begin some work."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(error)

    async def done(self) -> None:
        """Wait until nothing is under way, also what was begun meanwhile."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def end(self) -> None:
        """Cancel what is under way, and wait until it has ended."""
        for task in self._tasks:
            task.cancel()
        await self.done()
