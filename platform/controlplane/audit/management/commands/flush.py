"""`manage.py flush`: Django's own, which empties every table, the audit log among them.

Whoever asks for it means it; afterwards the log is append-only again.
"""

from __future__ import annotations

from typing import Any

from django.core.management.commands import flush
from django.db import connections

from controlplane.audit.append_only import protect, unprotect


class Command(flush.Command):
    """Empty the database."""

    def handle(self, **options: Any) -> None:
        """Let the log be emptied too, and protect it again whatever comes."""
        connection = connections[options["database"]]
        unprotect(connection)
        try:
            super().handle(**options)
        finally:
            protect(connection)
