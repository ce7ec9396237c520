"""Requests of one subtask: coroutines in an event loop, on a thread of its own.

    subtask's thread ──start──▶ event loop: one asyncio task per request ──▶ answers ──news──┐
                     ◀──────────────────────────── take: all that came meanwhile ◀───────────┘

The busier the subtask, the more answers it takes at a time. The thread is started with the first
request, so that a subtask without any has none.

Errors   whatever a coroutine raises is an answer. What it leaves running is cancelled at the end.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from engine.operators.asking.requests import Answer, Request

MICROS = 1_000_000

CLOSE_S = 1.0
"""A coroutine that does not end when it is cancelled is left to the end of the process."""


class RequestLoop:
    """Runs requests until it is closed. Its methods are for the thread that owns the subtask."""

    def __init__(self, news: Callable[[], None], name: str) -> None:
        """`news` says that there are answers; it is called on the thread of the loop."""
        self._news = news
        self._answers: deque[Answer] = deque()
        self._told = False
        self._running: set[asyncio.Task[None] | asyncio.Task[Answer]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    def start(self, requests: Sequence[Request]) -> None:
        """Begin to run some more."""
        self._loop.call_soon_threadsafe(self._begin, requests)

    def take(self) -> list[Answer]:
        """Take the answers that have come."""
        # First, so that an answer which comes from now on is told of again.
        self._told = False
        return [self._answers.popleft() for _ in range(len(self._answers))]

    def close(self) -> None:
        """Cancel what runs, and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_S)

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for task in self._running:
            task.cancel()
        with suppress(RuntimeError):  # a coroutine stopped the loop itself
            self._loop.run_until_complete(asyncio.gather(*self._running, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _begin(self, requests: Sequence[Request]) -> None:
        for request in requests:
            task = self._loop.create_task(self._run(request))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, request: Request) -> None:
        limit = None if request.timeout is None else request.timeout / MICROS
        call = self._loop.create_task(_awaited(request))
        self._running.add(call)
        call.add_done_callback(self._running.discard)
        # From outside: a coroutine that ignores its cancellation must not keep the row waiting.
        await asyncio.wait((call,), timeout=limit)
        if call.done():
            self._tell(call.result())
        else:
            call.cancel()
            self._tell(Answer(request.number, error=TimeoutError(), timed_out=True))

    def _tell(self, answer: Answer) -> None:
        self._answers.append(answer)
        if not self._told:
            self._told = True
            self._news()


async def _awaited(request: Request) -> Answer:
    """The answer to a request, whatever comes: without one the row would wait for ever."""
    try:
        return Answer(request.number, await request.call())
    except BaseException as error:  # noqa: BLE001 the operator judges it
        return Answer(request.number, error=error)
