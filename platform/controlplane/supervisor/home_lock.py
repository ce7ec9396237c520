"""The lock of a home: one platform at a time runs in it.

The kernel drops the lock with the process that holds it, so a killed supervisor leaves none behind.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class HomeInUse(Exception):
    """Another supervisor runs in this home."""


@contextmanager
def home_lock(home: Path) -> Iterator[None]:
    """Hold the lock. Raises HomeInUse."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home / "up.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = path.read_text().strip() or "unknown"
            msg = (
                f"headwater already runs in {home}: process {holder}; "
                "use that one, stop it first, or pass --home for another folder"
            )
            raise HomeInUse(msg) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
