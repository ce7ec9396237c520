"""Celery's side of alerts."""

from __future__ import annotations

from django.utils import timezone

from controlplane.alerts import delivery, evaluation
from controlplane.celery import app


@app.task(name="controlplane.alerts.tasks.evaluate")
def evaluate() -> None:
    """Look at every rule."""
    evaluation.evaluate(timezone.now())


@app.task(name="controlplane.alerts.tasks.deliver")
def deliver() -> None:
    """Tell what is due."""
    delivery.deliver_due(timezone.now())
