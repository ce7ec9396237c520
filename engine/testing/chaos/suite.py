"""Histories that are compared with one undisturbed run.

    seed ─▶ schedule ─▶ history ─▶ None, or a report: what was done, what is wrong, how to repeat

Guarantee  the folder of a history that broke the law is kept, with the logs of all processes.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from engine.testing.chaos.history import BrokenLaw, History
from engine.testing.chaos.schedule import Schedule, schedule_of
from engine.testing.chaos.work import write_recording

UNDISTURBED = Schedule(-1, "memory", 1, early=True, deeds=())


class Chaos:
    """Histories with one recording, in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recording = write_recording(folder / "recording.parquet")
        self._expected: dict[str, pl.DataFrame] | None = None

    def undisturbed(self) -> dict[str, pl.DataFrame]:
        """The output that every other history must have."""
        if self._expected is None:
            history = self._history(UNDISTURBED, "undisturbed")
            found = history.run(None)
            empty = [name for name, table in found.items() if table.is_empty()]
            if empty:
                msg = f"undisturbed run wrote nothing to {', '.join(empty)}: nothing would be shown"
                raise BrokenLaw(msg)
            self._expected = found
            history.tidy()
        return self._expected

    def run(self, seed: int) -> str | None:
        """Live the history of a seed; None, or what is wrong with it."""
        schedule = schedule_of(seed)
        expected = self.undisturbed()
        history = self._history(schedule, f"seed-{seed}")
        try:
            history.run(expected)
        except BrokenLaw as broken:
            return (
                f"{schedule}\n{history.story}\n{broken}\n"
                f"its logs are kept in {history.folder}; the same again: make chaos SEEDS={seed}"
            )
        history.tidy()
        return None

    def _history(self, schedule: Schedule, name: str) -> History:
        return History(schedule, self._recording, self._folder / name)
