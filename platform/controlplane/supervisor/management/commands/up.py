"""`manage.py up`: the whole platform on one machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from controlplane.supervisor import layout, ports
from controlplane.supervisor.home_lock import HomeInUse, home_lock
from controlplane.supervisor.redis_server import NoSuchServer, redis_binary
from controlplane.supervisor.startup import Addresses, Platform, StartFailed

CONTROL_PORT = 8082


class Command(BaseCommand):
    """Starts every process of the platform, keeps them alive, and ends them all on Ctrl-C."""

    help = "start the whole platform on this machine"
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Ports, folder, demo."""
        parser.add_argument("--port", type=int, default=8000, help="of the dashboard (8000)")
        parser.add_argument("--engine-port", type=int, default=8081, help="of the engine (8081)")
        parser.add_argument(
            "--control-port", type=int, default=CONTROL_PORT, help="of control streams (8082)"
        )
        parser.add_argument("--home", type=Path, help="folder of everything that is kept")
        parser.add_argument(
            "--demo", action="store_true", help="with the demo jobs; takes the next free ports"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until asked to end."""
        home = Path(options["home"] or settings.HEADWATER_HOME).absolute()
        try:
            binary = redis_binary()
            if binary is None:
                msg = (
                    "no Redis server found for this platform; install valkey-server or redis-server"
                )
                raise CommandError(msg)
            with home_lock(home):
                asyncio.run(self._run(home, binary, options))
        except (HomeInUse, NoSuchServer, ports.PortTaken, StartFailed) as problem:
            raise CommandError(str(problem)) from None

    async def _run(self, home: Path, binary: str, options: dict[str, Any]) -> None:
        places = layout.make_layout(home)
        addresses = self._addresses(options)
        environment = layout.environment(
            places,
            web_url=addresses.web,
            engine_url=addresses.engine,
            control_port=addresses.control_port,
        )
        platform = Platform(places, addresses, environment, binary, self._say, demo=options["demo"])
        await platform.run()

    def _addresses(self, options: dict[str, Any]) -> Addresses:
        """Ports that are free. Raises PortTaken."""
        chosen: dict[str, int] = {}
        used: set[int] = set()
        for name in ("port", "engine_port", "control_port"):
            option = f"--{name.replace('_', '-')}"
            wanted = options[name]
            chosen[name] = ports.choose(wanted, option, search=options["demo"], used=used)
            if chosen[name] != wanted:
                self._say(f"port {wanted} is taken by another program: using {chosen[name]}")
        return Addresses(chosen["port"], chosen["engine_port"], chosen["control_port"])

    def _say(self, line: str) -> None:
        # READY leads its line: scripts and tests wait for it.
        self.stdout.write(line if line.startswith("READY ") else f"headwater: {line}")
        sys.stdout.flush()
