"""What a process of the control plane counts of itself.

    code ──count──▶ measures() ──look──▶ `/metrics` of the process, points of measurement `process`

Guarantee  counters only grow while the process lives; gauges go up and down.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from functools import cache

COUNTERS: Mapping[str, tuple[str, str]] = {
    "points_written": ("counter", "Points that were kept."),
    "points_refused": ("counter", "Points of requests that were not kept."),
    "write_requests_refused": ("counter", "Requests to write that were not answered with 204."),
    "series_points_lost": ("counter", "Points of the platform itself that no store took."),
    "socket_clients": ("gauge", "Tabs that are connected."),
}
"""What is counted, how it may move, and what it means."""


class Measures:
    """Counters of one process. Any thread."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, name: str, by: int = 1) -> None:
        """Something has happened, so many times; `name` is one of COUNTERS."""
        with self._lock:
            self._counts[name] += by

    def look(self) -> Mapping[str, int]:
        """All counters since the process began."""
        with self._lock:
            return dict(self._counts)


@cache
def measures() -> Measures:
    """Those of this process."""
    return Measures()
