"""The programs that make up the platform: how each is started, and how one sees that it is ready.

redis    engine    (job manager, which keeps two task managers)    no need of each other
web      worker    beat    collector    control                    need the database, and redis
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from controlplane.supervisor.layout import CHECKOUT, Layout, engine_environment
from controlplane.supervisor.ports import HOST
from controlplane.supervisor.redis_server import redis_argv

Probe = Callable[[], Awaitable[bool]]


async def always() -> bool:
    """For programs that need not be waited for."""
    return True


@dataclass(frozen=True, slots=True)
class Program:
    """One program."""

    name: str
    argv: list[str]
    is_ready: Probe = always
    environment: Mapping[str, str] = field(default_factory=dict)
    """What it is told beyond what all are told."""


def redis(layout: Layout, binary: str) -> Program:
    """The Redis-compatible server."""
    argv = redis_argv(binary, layout.redis_socket, layout.home / "redis")
    return Program("redis", argv, lambda: _answers_ping(layout.redis_socket))


def engine(layout: Layout, port: int) -> Program:
    """The job manager, which starts its task managers."""
    argv = [
        *python("-m", "engine.cluster.jobmanager"),
        *("--home", str(layout.home / "engine")),
        *("--runtime-dir", str(layout.runtime)),
        *("--snapshots", str(layout.home / "savepoints")),
        # A job that the engine has lost goes on from checkpoints that are nobody's any more.
        *("--snapshots", str(layout.home / "engine" / "checkpoints")),
        *("--host", HOST, "--port", str(port)),
        *("--task-managers", "2", "--slots", "4"),
    ]
    return Program(
        "engine", argv, lambda: _answers_http(port, "/overview"), engine_environment(layout)
    )


def web(port: int) -> Program:
    """Pages, the socket and the write endpoint."""
    argv = [
        *python("-m", "uvicorn", "controlplane.asgi:application"),
        *("--host", HOST, "--port", str(port)),
        *("--lifespan", "off", "--no-access-log", "--log-level", "info"),
        # Open sockets never end by themselves: the browser reconnects to the next server.
        *("--timeout-graceful-shutdown", "2", "--ws-max-size", "65536"),
    ]
    return Program("web", argv, lambda: _answers_http(port, "/api/v2/ping"))


def worker() -> Program:
    """Celery's worker."""
    options = ("--concurrency", "2", "--loglevel", "info", "--hostname", "worker@headwater")
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    return Program("worker", python("-m", "celery", *_CELERY, "worker", *options, *quiet))


def beat() -> Program:
    """Celery's clock."""
    return Program(
        "beat", python("-m", "celery", *_CELERY, "beat", "--loglevel", "info", "--pidfile=")
    )


def collector() -> Program:
    """The process that watches engines."""
    return Program("collector", manage("collect"))


def control(port: int) -> Program:
    """The line server that control streams come from."""
    return Program(
        "control",
        python("-m", "controlplane.supervisor.control_server", "--port", str(port)),
        lambda: _accepts(port),
    )


def python(*arguments: str) -> list[str]:
    """The Python that runs the supervisor."""
    return [sys.executable, *arguments]


def manage(*arguments: str) -> list[str]:
    """A management command."""
    return python(str(CHECKOUT / "manage.py"), *arguments)


_CELERY = ("--app", "controlplane.celery", "--workdir", str(CHECKOUT))


async def _answers_ping(socket: Path) -> bool:
    try:
        reader, writer = await asyncio.open_unix_connection(str(socket))
    except OSError:
        return False
    try:
        writer.write(b"PING\r\n")
        # While it loads its file it answers -LOADING.
        return (await reader.readline()).startswith(b"+PONG")
    except OSError:
        return False
    finally:
        writer.close()


async def _answers_http(port: int, path: str) -> bool:
    """Whether any HTTP answer comes: which one does not matter."""
    try:
        reader, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
        return (await reader.readline()).startswith(b"HTTP/1.1 ")
    except OSError:
        return False
    finally:
        writer.close()


async def _accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True
