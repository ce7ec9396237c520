"""For tests: a Redis server that lives as long as a `with` block."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from controlplane.supervisor.redis_server import redis_argv, redis_binary


@contextmanager
def running_redis() -> Iterator[str]:
    """Start one in a folder of its own; yields its URL."""
    binary = redis_binary()
    if binary is None:
        msg = "no Redis server for this platform; install redis-server or valkey-server"
        raise RuntimeError(msg)
    with tempfile.TemporaryDirectory(prefix="hw-redis-") as folder:
        socket = Path(folder) / "redis.sock"
        argv = redis_argv(binary, socket, Path(folder))
        server = subprocess.Popen(argv, stdout=subprocess.DEVNULL)  # noqa: S603 - ours
        try:
            _await_answer(f"unix://{socket}", server)
            yield f"unix://{socket}"
        finally:
            server.kill()
            server.wait()


def _await_answer(url: str, server: subprocess.Popen[bytes]) -> None:
    client = redis.Redis.from_url(url)
    deadline = time.monotonic() + 10
    while True:
        try:
            client.ping()
            break
        except redis.RedisError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    client.close()
