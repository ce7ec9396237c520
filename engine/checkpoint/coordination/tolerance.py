"""How many checkpoints may fail in a row before the job restarts.

failed(now) ──▶ too many in a row, and for too long? ◀── succeeded() begins anew
"""

from __future__ import annotations

from engine.checkpoint.coordination.config import CheckpointConfig


class Tolerance:
    """Counts failures in a row."""

    def __init__(self, config: CheckpointConfig) -> None:
        self._config = config
        self._failures = 0
        self._since_ms = 0

    def succeeded(self) -> None:
        """Forgive everything so far."""
        self._failures = 0

    def failed(self, now_ms: int) -> bool:
        """Count one more; whether that is too many."""
        self._failures += 1
        if self._failures == 1:
            self._since_ms = now_ms
        is_patient = now_ms - self._since_ms < self._config.patience_ms
        return self._failures > self._config.tolerable_failures and not is_patient
