"""Celery's beat: keeps when each task was due last, in a folder that it makes for itself.

Where it runs alone, nothing else makes the folder, and beat would end at once.
"""

from __future__ import annotations

from pathlib import Path

from celery.beat import PersistentScheduler


class Scheduler(PersistentScheduler):
    """The one of the settings."""

    def setup_schedule(self) -> None:
        """Open what is kept."""
        file = self.schedule_filename  # type: ignore[attr-defined]  # missing in the stubs
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        super().setup_schedule()
