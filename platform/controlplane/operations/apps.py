"""Makes the Celery application the one that tasks are sent through, in every process."""

from __future__ import annotations

from django.apps import AppConfig


class OperationsConfig(AppConfig):
    """Operations."""

    name = "controlplane.operations"

    def ready(self) -> None:
        """Without this a web process would send its tasks to Celery's default broker."""
        from controlplane import celery  # noqa: F401
