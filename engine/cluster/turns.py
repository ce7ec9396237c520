"""Turns on the event loop: of many who have work at one moment, one a pass.

    50 reports at once ──mine()──▶ one ─ REST, timers, sockets ─▶ one ─ … ─▶ one

An event loop runs all that is ready before it looks at its sockets again. What fifty jobs bring at
one moment takes a tenth of a second, which whoever asks for something else would have to wait.

Order    first come, first served.
Cost     a pass of the loop, some 50 µs.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """Gives one turn a pass. Belongs to one event loop."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def mine(self) -> None:
        """Wait for one's turn, and have it until the next `await`."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            loop.call_soon(self._give)
        await turn

    def _give(self) -> None:
        turn = self._waiting[0]
        if not turn.done():  # it was cancelled otherwise
            turn.set_result(None)
        self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._give)
