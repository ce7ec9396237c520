"""Connections to engines: a client for each address and patience, shared by all who ask.

Guarantee   they are closed when the process ends.
"""

from __future__ import annotations

import atexit
import threading

from controlplane.backends.tokens import Address
from engine.rest.client import EngineClient

_CLIENTS: dict[tuple[Address, float], EngineClient] = {}
_LOCK = threading.Lock()


def connection(address: Address, timeout_s: float) -> EngineClient:
    """The client that asks there, and waits so long for an answer."""
    with _LOCK:
        client = _CLIENTS.get((address, timeout_s))
        if client is None:
            client = EngineClient(address.url, address.token, timeout_s)
            _CLIENTS[address, timeout_s] = client
        return client


@atexit.register
def close_connections() -> None:
    """Close every one; who asks again gets a new one."""
    with _LOCK:
        while _CLIENTS:
            _CLIENTS.popitem()[1].close()
