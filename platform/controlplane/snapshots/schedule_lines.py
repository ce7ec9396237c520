"""Schedules as pages show them: with their next runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from controlplane.jobs.models import Job
from controlplane.snapshots.models import SavepointSchedule
from controlplane.snapshots.queries import schedules
from controlplane.snapshots.schedule_options import timing_of, window_words

NEXT_RUNS = 5


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """One schedule."""

    schedule: SavepointSchedule
    next_runs: tuple[datetime, ...]
    """Jitter included; none while it rests."""

    @property
    def conditions(self) -> str:
        """When it does not run, or runs later, in a few words."""
        one = self.schedule
        windows = [window_words(window) for window in one.blackouts]
        words = [
            f"not {', '.join(windows)} {one.zone}" if windows else "",
            f"up to {one.jitter_s} s later" if one.jitter_s else "",
            "not while the newest checkpoint has failed" if one.skip_unhealthy else "",
            "not while event time stands still" if one.skip_unchanged else "",
            "a late run is left out" if one.late == one.Late.SKIP else "",
        ]
        return "; ".join(filter(None, words))


def schedule_lines(job: Job) -> tuple[ScheduleLine, ...]:
    """Its schedules, the next due first."""
    return tuple(ScheduleLine(one, tuple(next_runs(one))) for one in schedules(job))


def next_runs(schedule: SavepointSchedule) -> list[datetime]:
    """When it is due, five times; never while it rests."""
    if not schedule.enabled:
        return []
    try:
        planned = schedule.planned_at
        later = timing_of(schedule).next_runs(planned, planned, NEXT_RUNS - 1)
    except ValueError:  # its time zone is gone: at its next run it is put to rest
        later = []
    return [schedule.next_run_at, *later]
