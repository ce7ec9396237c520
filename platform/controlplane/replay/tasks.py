"""Celery's side of replays."""

from __future__ import annotations

from django.utils import timezone

from controlplane.celery import app
from controlplane.replay.comparison import looking


@app.task(name="controlplane.replay.tasks.compare_outputs")
def compare_outputs() -> None:
    """Compare what replays and live jobs have written since the last time."""
    looking.look_at_all(timezone.now())
