"""`manage.py collect`: watch every engine, until asked to end."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand

from controlplane.collector.collector import Collector


class Command(BaseCommand):
    """Mirrors what engines say into the database, and tells the pages."""

    help = "watch every engine: states, checkpoints, figures"

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until SIGTERM or Ctrl-C."""
        logging.getLogger("httpx").setLevel(logging.WARNING)  # it has a line for every request
        asyncio.run(_run())


async def _run() -> None:
    collecting = asyncio.create_task(Collector().run())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, collecting.cancel)
    with suppress(asyncio.CancelledError):
        await collecting
