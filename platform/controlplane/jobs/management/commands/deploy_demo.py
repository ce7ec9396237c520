"""`manage.py deploy_demo`: the demo jobs, when they are not there yet."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from controlplane.jobs.bootstrap import bootstrap
from controlplane.jobs.demo import demo_jobs, deploy_demo
from controlplane.live.control import default_port


class Command(BaseCommand):
    """Create and start the demo jobs."""

    requires_system_checks: list[str] = []  # `check` is for tests; a start is to be quick
    help = "Create and start the demo jobs flights and sensors, unless they exist."

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it; again does no harm."""
        admin, team, _cluster = bootstrap(settings.HEADWATER_ENGINE_URL)
        jobs = demo_jobs(
            settings.BASE_DIR / "examples",
            settings.HEADWATER_HOME,
            timezone.now(),
            default_port(),
            settings.HEADWATER_DEMO_SPEED,
        )
        fresh = deploy_demo(jobs, team, admin)
        named = ", ".join(fresh)
        self.stdout.write(f"deployed {named}" if fresh else "the demo jobs are there already")
