"""How a job takes checkpoints: values, checked where settings are read (`cluster/settings/`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """How a job takes checkpoints."""

    directory: str
    """Folder that gets one folder `chk-<id>` per checkpoint."""
    interval_ms: int | None = 1_000
    """None: only on request, and the final one."""
    incremental: bool = True
    """Whether checkpoints may build on earlier ones."""
    timeout_ms: int = 60_000
    min_pause_ms: int = 0
    max_concurrent: int = 1
    """Checkpoints under way at a time; a savepoint may be beside them."""
    tolerable_failures: int = 3
    """Failures in a row that do not restart the job: a short fault of storage is no reason to."""
    patience_ms: int = 0
    """Nor do more of them, before nothing has succeeded for so long: a full disk needs a person,
    so a job that checkpoints five times a second should not restart within one because of it."""

    @property
    def concurrent(self) -> int:
        """How many may be under way: a pause between two means one at a time, as in Flink."""
        return 1 if self.min_pause_ms else self.max_concurrent

    def folder(self, checkpoint_id: int) -> str:
        """Where a checkpoint lies."""
        return f"{self.directory.rstrip('/')}/chk-{checkpoint_id}"
