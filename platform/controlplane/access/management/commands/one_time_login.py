"""`manage.py one_time_login [NAME]`: the path of a link that logs one person in, once."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from controlplane.access.logins import issue_login


class Command(BaseCommand):
    """Print a one-time login."""

    requires_system_checks: list[str] = []  # `check` is for tests; a start is to be quick
    help = "Print the path of a link that logs one person in, once, within 15 minutes."

    def add_arguments(self, parser: CommandParser) -> None:
        """Who it is for."""
        parser.add_argument("name", nargs="?", default="admin", help="user name, default admin")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the link."""
        user = User.objects.filter(username=options["name"], is_active=True).first()
        if user is None:
            msg = f"there is no active user {options['name']}; run `manage.py bootstrap` first"
            raise CommandError(msg)
        self.stdout.write(f"/login/once/{issue_login(user, timezone.now())}/")
