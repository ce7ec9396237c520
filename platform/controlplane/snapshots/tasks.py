"""Celery's side of savepoints."""

from __future__ import annotations

from django.utils import timezone

from controlplane.celery import app
from controlplane.snapshots import housekeeping, schedules, strays


@app.task(name="controlplane.snapshots.tasks.run_due_schedules")
def run_due_schedules() -> None:
    """Start the savepoints that are due."""
    schedules.run_due(timezone.now())


@app.task(name="controlplane.snapshots.tasks.keep_house")
def keep_house() -> None:
    """Mark, delete and verify what is due."""
    housekeeping.keep_house(timezone.now())


@app.task(name="controlplane.snapshots.tasks.scan_storage")
def scan_storage() -> None:
    """Compare the catalogue with what is stored."""
    strays.scan_all(timezone.now())
