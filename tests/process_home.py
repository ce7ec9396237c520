"""A database, a Redis and processes of the platform that tests kill, in a home of their own."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

from controlplane.supervisor.redis_server import redis_argv, redis_binary
from engine.testing.cluster import PATIENCE_S

CHECKOUT = Path(__file__).resolve().parents[1]


class ProcessHome:
    """Runs programs of the checkout against one database; ends what it began."""

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if "HEADWATER" not in name}
        self.environment = kept | {
            "HEADWATER_HOME": str(home),
            "HEADWATER_REDIS_URL": f"unix://{home / 'redis.sock'}",
            "DJANGO_SETTINGS_MODULE": "controlplane.settings",
            "PYTHONPATH": os.pathsep.join(map(str, (CHECKOUT, CHECKOUT / "platform", "tests"))),
            **environment,
        }
        self._begun: list[subprocess.Popen[bytes]] = []

    def __enter__(self):
        self.begin(*redis_argv(redis_binary(), self.home / "redis.sock", self.home))
        self.run("manage.py", "migrate", "-v0")
        return self

    def __exit__(self, *_):
        for process in reversed(self._begun):
            process.kill()
            process.wait()

    def run(self, *arguments: str) -> None:
        """Python with these arguments, to its end."""
        command = [sys.executable, *arguments]
        subprocess.run(command, cwd=CHECKOUT, env=self.environment, check=True)

    def begin(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.home / "log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=CHECKOUT, env=self.environment, stdout=log, stderr=log
            )
        self._begun.append(process)
        return process

    def rows(self, query: str) -> list[tuple]:
        database = self.home / "controlplane.sqlite3"
        with sqlite3.connect(database, timeout=PATIENCE_S) as connection:
            return connection.execute(query).fetchall()
