"""Celery's side of the schedules."""

from __future__ import annotations

from django.utils import timezone

from controlplane.celery import app
from controlplane.snapshots import schedules


@app.task(name="controlplane.snapshots.tasks.run_due_schedules")
def run_due_schedules() -> None:
    """Start the savepoints that are due."""
    schedules.run_due(timezone.now())
