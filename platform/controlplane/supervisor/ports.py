"""Free ports on loopback."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"
TRIED = 50


class PortTaken(Exception):
    """Another program listens there."""


def is_free(port: int) -> bool:
    """Whether this process could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do it: a port that only waits for old connections to time out is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def choose(wanted: int, option: str, *, search: bool, used: set[int]) -> int:
    """The wanted port, or with `search` the next free one; it is added to `used`.

    Raises PortTaken.
    """
    last = min(wanted + TRIED, 65_535) if search else wanted
    for port in range(wanted, last + 1):
        if port not in used and is_free(port):
            used.add(port)
            return port
    msg = f"port {wanted} is taken by another program; free it, or pass {option} {wanted + 1}"
    raise PortTaken(msg)
