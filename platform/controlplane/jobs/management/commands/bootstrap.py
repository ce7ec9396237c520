"""`manage.py bootstrap`: database, static files, first admin, team and engine."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from controlplane.jobs.bootstrap import bootstrap


class Command(BaseCommand):
    """Make a fresh home ready, or bring an old one up to date."""

    requires_system_checks: list[str] = []  # `check` is for tests; a start is to be quick
    help = "Create or update the database, collect static files, and add what a login needs."

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it; again does no harm."""
        call_command("migrate", interactive=False, verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        bootstrap(settings.HEADWATER_ENGINE_URL)
        self.stdout.write("the database is ready")
