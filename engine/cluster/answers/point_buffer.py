"""Points that wait to be sent, in chunks, while the newest ones matter more than the oldest.

    add ──▶ [ oldest … newest ], bounded ──take──▶ a chunk ──put_back, when it could not be sent
                 └── the oldest give way, and are counted

Guarantee  every point that was added is waiting, taken, or counted as dropped.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

CHUNK = 5_000
"""Points in one request: the size that InfluxDB's documentation recommends."""

MOST = 100_000
"""Points that wait at most, some 20 MB: minutes of a small cluster."""


class Buffer:
    """Points that wait, oldest first, at most so many. Any thread."""

    def __init__(self, most: int = MOST) -> None:
        self.dropped = 0
        """Points that were lost, for want of room or because they were refused."""
        self.news = threading.Event()
        self._waiting: deque[str] = deque()
        self._most = most
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, points: Sequence[str]) -> None:
        """Keep points; the oldest give way when there is no room."""
        with self._changing:
            self._waiting.extend(points)
            while len(self._waiting) > self._most:
                self._waiting.popleft()
                self.dropped += 1
        self.news.set()

    def take(self) -> list[str]:
        """Take the oldest chunk; nobody else does."""
        with self._changing:
            self.news.clear()
            return [self._waiting.popleft() for _ in range(min(CHUNK, len(self._waiting)))]

    def put_back(self, points: Sequence[str]) -> None:
        """Keep a chunk that could not be sent, as far as there is room by now."""
        with self._changing:
            room = max(0, self._most - len(self._waiting))
            self.dropped += max(0, len(points) - room)
            self._waiting.extendleft(reversed(points[-room:] if room else []))

    def drop(self, points: Sequence[str]) -> None:
        """Count points that nobody will take."""
        with self._changing:
            self.dropped += len(points)
