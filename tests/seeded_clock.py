"""The clock of the seeded server: it stands still until it is told to tick."""

from __future__ import annotations

from datetime import UTC, datetime

import django.utils.timezone

import controlplane.moments
from seeded_jobs import START_MS

ticks = 0


def now_ms() -> int:
    """What the server takes for the time."""
    return START_MS + 1_000 * ticks


def now() -> datetime:
    """The same, as Django wants it."""
    return datetime.fromtimestamp(now_ms() / 1_000, UTC)


def show_everywhere() -> None:
    """Make it the clock of this process, before anybody imports the others by name."""
    controlplane.moments.now_ms = now_ms
    django.utils.timezone.now = now
