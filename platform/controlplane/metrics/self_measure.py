"""What a process of the control plane counts of itself, until somebody reads it.

    code ──count, observe──▶ measures() ──taken──▶ points of measurement `controlplane`
                                        ──look──▶ `/metrics`

Guarantee  a count is never lost between two readings; counters only grow while the process lives.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from functools import cache


class Measures:
    """Counters of one process. Any thread."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, name: str, by: int = 1) -> None:
        """Something has happened, so many times."""
        with self._lock:
            self._counts[name] += by

    def look(self) -> Mapping[str, int]:
        """All counters since the process began."""
        with self._lock:
            return dict(sorted(self._counts.items()))


@cache
def measures() -> Measures:
    """Those of this process."""
    return Measures()
