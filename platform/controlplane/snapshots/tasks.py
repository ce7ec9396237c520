"""Celery's side of the schedules."""

from __future__ import annotations

from django.utils import timezone

from controlplane.celery import app
from controlplane.snapshots import schedules


@app.task(name="controlplane.snapshots.tasks.run_due_schedules")
def run_due_schedules() -> None:
    """Note how the last savepoints ended, and start those that are due."""
    schedules.refresh_results()
    schedules.run_due(timezone.now())
