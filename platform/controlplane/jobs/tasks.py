"""Celery's side of keeping jobs running."""

from __future__ import annotations

from django.utils import timezone

from controlplane.celery import app
from controlplane.jobs import reconciler


@app.task(name="controlplane.jobs.tasks.keep_running")
def keep_running() -> None:
    """Start wanted jobs again that do not run."""
    reconciler.reconcile(timezone.now())
