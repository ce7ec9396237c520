"""The engine in memory behind a real address, for pages that ask an engine themselves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from engine.rest.app import create_app
from engine.testing.fake_service import FakeService


@contextmanager
def served(service: FakeService) -> Iterator[str]:
    """Its address, while it is served."""
    config = uvicorn.Config(create_app(service), port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while thread.is_alive() and not server.started:
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
