"""Lines for a job's control stream; `supervisor/control_server.py` carries them to the job.

Guarantee  at most once: the answer says how many jobs listened when the line was sent.
"""

from __future__ import annotations

import os
from typing import cast

import redis

LISTENERS_SECONDS = 5
"""How long the line server's word on its listeners holds."""

MAX_LINE_CHARS = 1_000


def channel(port: int) -> str:
    """Redis channel of the stream on that port."""
    return f"control:{port}"


def listeners_key(port: int) -> str:
    """Redis key of how many jobs are connected to it."""
    return f"control:{port}:listeners"


def send_line(redis_url: str, port: int, line: str) -> int:
    """Send one line; how many jobs listen. 0: nobody heard it.

    Raises ValueError when it is no single line, redis.RedisError when Redis is away.
    """
    if not line.strip() or len(line) > MAX_LINE_CHARS or any(ord(one) < 32 for one in line):
        msg = f"a control line is one line of 1 to {MAX_LINE_CHARS} characters: got {line[:80]!r}"
        raise ValueError(msg)
    with redis.Redis.from_url(redis_url, socket_timeout=3) as client:
        listeners = int(cast("bytes | None", client.get(listeners_key(port))) or 0)
        return listeners if client.publish(channel(port), line) else 0


def default_port() -> int:
    """Port of the line server that `manage.py up` runs; 0 when there is none."""
    return int(os.environ.get("HEADWATER_CONTROL_PORT") or 0)
