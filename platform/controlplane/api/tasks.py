"""Celery's side of the API."""

from __future__ import annotations

from controlplane.api import keys
from controlplane.celery import app


@app.task(name="controlplane.api.tasks.forget_answers")
def forget_answers() -> None:
    """Delete answers that were kept long enough."""
    keys.forget_answers()
